//! A small MPI program over the provider: Open MPI with two and four ranks on this machine.

use std::{
    env, fs,
    path::PathBuf,
    process::{Command, Output},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};
use tempfile::TempDir;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mpi/ranks.c");
/// Longest time of a job in seconds.
const PATIENCE_S: &str = "60";
/// Longest time from the end of a job to that of its processes.
const GRACE: Duration = Duration::from_secs(5);
/// Marks the processes of one job.
const MARK: &str = "EVB_VELO_JOB";

/// One job at a time: ranks that wait use their cores.
static TURN: Mutex<()> = Mutex::new(());

/// Open MPI, the program, and the provider beside it.
struct Job {
    folder: TempDir,
    mpirun: String,
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A tool of Open MPI under the name that Debian gives it, or under the usual one.
fn tool(name: &str, argument: &str) -> Option<(String, String)> {
    [format!("{name}.openmpi"), name.to_owned()].into_iter().find_map(|name| {
        let output = Command::new(&name).arg(argument).output().ok()?;
        output.status.success().then(|| (name, text(&output)))
    })
}

impl Job {
    /// Compiles the program; none, and says why, if Open MPI with libfabric is not installed.
    fn build() -> Option<Self> {
        let [mpirun, mpicc, info] = [("mpirun", "--version"), ("mpicc", "-show"), ("ompi_info", "--parsable")]
            .map(|(name, argument)| tool(name, argument));
        let (Some((mpirun, _)), Some((mpicc, _)), Some((_, info))) = (mpirun, mpicc, info) else {
            eprintln!("skipped: Open MPI is not installed");
            return None;
        };
        if !info.contains("mca:mtl:ofi:") {
            eprintln!("skipped: this MPI does not use libfabric");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let built =
            Command::new(mpicc).args(["-O1", "-o"]).arg(folder.path().join("ranks")).arg(SOURCE).output().unwrap();
        assert!(built.status.success(), "{}", text(&built));
        let library = env::current_exe().unwrap().with_file_name("libvelo_fi.so");
        fs::copy(library, folder.path().join("libvelo_fi.so")).unwrap();
        Some(Self { folder, mpirun })
    }

    fn run(&self, ranks: &str, argument: Option<&str>) -> Output {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut command = Command::new(&self.mpirun);
        command.args(["--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "--timeout", PATIENCE_S]);
        command.args(["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "velo"]);
        command.args(["-n", ranks]).arg(self.folder.path().join("ranks")).args(argument);
        command.env("FI_PROVIDER_PATH", self.folder.path()).env(MARK, self.folder.path());
        command.output().unwrap()
    }

    /// Processes of this job that still run.
    fn left(&self) -> Vec<PathBuf> {
        let mark = format!("{MARK}={}", self.folder.path().display());
        let has_mark = |path: &PathBuf| {
            let variables = fs::read(path.join("environ")).unwrap_or_default();
            variables.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
        processes.filter(has_mark).collect()
    }
}

/// Files in memory whose name speaks of VELO.
fn files() -> usize {
    let names = fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().contains("velo")).count()
}

fn all_right(ranks: &str) {
    let Some(job) = Job::build() else { return };
    let output = job.run(ranks, None);
    assert!(output.status.success() && text(&output).contains("all right\n"), "{}: {}", output.status, text(&output));
}

#[test]
fn two_ranks_exchange_all_kinds_of_messages() {
    all_right("2");
}

#[test]
fn four_ranks_exchange_all_kinds_of_messages() {
    all_right("4");
}

/// A segment lives as long as a process that maps it, so it is gone when all of them are, and has no name.
#[test]
fn a_killed_rank_ends_the_job_and_leaves_no_segment() {
    let Some(job) = Job::build() else { return };
    let (before, output) = (files(), job.run("3", Some("dies")));
    assert!(text(&output).contains("signal 9 (Killed)"), "{}: {}", output.status, text(&output));
    let end = Instant::now() + GRACE;
    while !job.left().is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(job.left(), Vec::<PathBuf>::new(), "processes, and their segments, are left");
    assert_eq!(files(), before, "files are left");
}
