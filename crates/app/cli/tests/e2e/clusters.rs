//! Sweeps on a cluster. Small scripts stand for the commands of Slurm; `cargo xtask slurm` has its daemons.

use crate::{
    inputs::refuses,
    support::{Evb, Lab},
};
use rustix::process::Signal;
use std::{collections::BTreeMap, env, fs, os::unix::fs::PermissionsExt as _};

/// Six points.
const SWEPT: &str = r#"
[trigger]
events = 100
[readout]
units = 2
source = { type = "log-normal", mean = "2 kB", rms = "500 B" }
[sweep]
"builder.units" = [1, 2, 3]
"readout.source.mean" = ["1 kB", "2 kB"]
"#;

/// Carries out the tasks of the script at once, but for the one in the file `lost`, and notes its options.
const SBATCH: &str = r#"
echo "$@" > options
for script; do :; done
for task in $(sed -n 's/^#SBATCH --array=//p' "$script" | tr , ' '); do
    [ "$task" = "$(cat lost)" ] || SLURM_ARRAY_TASK_ID=$task sh "$script" || exit 1
done
echo "a word of the site"
echo 42
"#;

fn lab() -> Lab {
    let lab = Lab::with(SWEPT);
    fs::create_dir(lab.path("bin")).unwrap();
    lab.write("lost", "0");
    lab.write("tasks", "");
    program(&lab, "sbatch", SBATCH);
    program(&lab, "squeue", "cat tasks");
    program(&lab, "sacct", "echo '42_2|OUT_OF_MEMORY'");
    lab
}

fn program(lab: &Lab, name: &str, text: &str) {
    let path = lab.write(&format!("bin/{name}"), format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// `evb sweep` with these commands of Slurm.
fn sweep(lab: &Lab, arguments: &[&str]) -> Evb {
    let path = format!("{}:{}", lab.path("bin").display(), env::var("PATH").unwrap());
    lab.evb(&["sweep"]).args(arguments).env("PATH", path)
}

fn submit(lab: &Lab, arguments: &[&str]) -> Evb {
    sweep(lab, &["submit", "experiment.toml", "--slurm"]).args(arguments)
}

/// The tables and plots of a folder.
fn tables(lab: &Lab, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(lab.path(folder)).unwrap().map(|entry| entry.unwrap().path());
    let drawn = entries
        .filter(|path| ["csv", "parquet", "svg"].iter().any(|end| path.extension().is_some_and(|it| it == *end)));
    drawn.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())).collect()
}

#[test]
fn the_tasks_of_a_job_make_the_whole() {
    let lab = lab();
    let whole = lab.evb(&["simulate", "experiment.toml", "--out", "whole"]).run();
    let outcome = submit(&lab, &["--parts", "4", "--out", "out's", "--wait", "--", "--time=1:00", "-p", "short"]).run();
    assert_eq!(outcome.code(), whole.code(), "{outcome}");
    assert_eq!(outcome.stdout, format!("42\n{}", whole.stdout));
    assert!(tables(&lab, "whole").len() > 4 && tables(&lab, "out's") == tables(&lab, "whole"));
    let options = fs::read_to_string(lab.path("options")).unwrap();
    assert!(options.starts_with("--parsable --time=1:00 -p short /"), "{options}");
    // Collected once more they are drawn again, and nothing can be submitted.
    assert_eq!(sweep(&lab, &["collect", "out's"]).run().stdout, whole.stdout);
    refuses(submit(&lab, &["--out", "out's"]), &["out's: it holds records of this sweep already"]);
}

#[test]
fn a_lost_part_is_named_and_submitted_again_alone() {
    let lab = lab();
    lab.write("lost", "2");
    assert_eq!(submit(&lab, &["--parts", "3"]).run().code(), Some(0));
    refuses(
        sweep(&lab, &["collect", "experiment"]),
        &[
            "1 of 3 parts of experiment are not whole",
            "part 2/3: 2 of 2 points are missing, OUT_OF_MEMORY; see experiment/part-2.log",
        ],
    );
    refuses(submit(&lab, &["--parts", "2"]), &["it has a sweep in 3 parts, and not in 2"]);
    refuses(submit(&lab, &["--set", "trigger.events=7"]), &["experiment", "with another experiment"]);
    lab.write("tasks", "2 RUNNING None\n1 COMPLETED None\n");
    refuses(submit(&lab, &[]), &["job 42 still simulates the parts of experiment", "scancel 42"]);
    lab.write("tasks", "2 FAILED NonZeroExitCode\n");
    refuses(sweep(&lab, &["collect", "experiment"]), &["missing, FAILED (NonZeroExitCode); see experiment/part-2.log"]);
    lab.write("lost", "0");
    let outcome = submit(&lab, &["--wait"]).run();
    assert!(
        outcome.stdout.contains("6 points") && outcome.stderr.contains("simulates 2 points in 1 of 3 parts"),
        "{outcome}"
    );
    assert!(fs::read_to_string(lab.path("experiment/submit.sh")).unwrap().contains("--array=2\n"));
}

#[test]
fn ctrl_c_leaves_the_job_running() {
    let lab = lab();
    assert_eq!(submit(&lab, &["--out", "out"]).run().code(), Some(0));
    lab.write("tasks", "1 PENDING Resources\n2 PENDING Resources\n3 RUNNING None\n");
    let mut waiting = sweep(&lab, &["collect", "out"]).start();
    waiting.wait_for("job 42: 2 PENDING (Resources), 1 RUNNING");
    waiting.signal(Signal::INT);
    let outcome = waiting.wait();
    assert_eq!(outcome.code(), Some(2));
    assert!(
        outcome.stderr.contains("job 42 goes on") && outcome.stderr.contains("`evb sweep collect out`"),
        "{outcome}"
    );
}

/// The script of a dry run can be submitted by hand, and its parts collected.
#[test]
fn a_dry_run_only_writes_the_script() {
    let lab = lab();
    let outcome = submit(&lab, &["--dry-run", "--out", "a b", "--parts", "3", "--", "--time=9"]).run();
    let line = outcome.stdout.trim();
    assert!(line.starts_with("sbatch --time=9 '/") && line.ends_with("/a b/submit.sh'"), "{outcome}");
    assert!(!lab.path("options").exists(), "nothing is submitted");
    refuses(sweep(&lab, &["collect", "a b"]), &["3 of 3 parts of a b are not whole"]);
    let path = format!("{}:{}", lab.path("bin").display(), env::var("PATH").unwrap());
    let mut shell = std::process::Command::new("sh");
    let status = shell
        .args(["-c", line])
        .env("PATH", path)
        .current_dir(lab.path(""))
        .stdout(std::process::Stdio::null())
        .status();
    assert!(status.unwrap().success());
    assert!(sweep(&lab, &["collect", "a b"]).run().stdout.contains("6 points"));
}

#[test]
fn what_cannot_be_submitted_is_told() {
    let lab = lab();
    refuses(submit(&lab, &["--parts", "7"]), &["7 parts are more than the 6 points"]);
    refuses(submit(&lab, &["--out", "a\"b"]), &["a batch script cannot name this folder"]);
    refuses(sweep(&lab, &["submit", "experiment.toml"]), &["--slurm"]);
    refuses(sweep(&lab, &["collect", "bin"]), &["bin: no sweep was submitted here"]);
    program(&lab, "sbatch", "echo 'sbatch: error: invalid partition specified: nowhere' >&2; exit 1");
    refuses(
        submit(&lab, &["--", "-p", "nowhere"]),
        &["sbatch: exit status: 1: sbatch: error: invalid partition", "hint: "],
    );
    let nothing = lab.evb(&["sweep", "submit", "experiment.toml", "--slurm"]).env("PATH", lab.path("nothing"));
    refuses(nothing, &["there is no `sbatch` in PATH", "--dry-run"]);
}
