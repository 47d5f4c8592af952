//! libfabric programs in C over the provider: one process for each case of `tests/conformance`.

mod hardware;

use evb_os::tools::skip_because;
use hardware::Hardware;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance");
const SOURCES: &[&str] =
    &["main", "common", "objects", "messages", "tagged", "queues", "remote", "together", "missing", "hardware"];

/// Cases that need neither remote memory nor long messages, and wait for what arrives.
const HARDWARE_CASES: &[&str] = &["hardware", "addresses", "matching", "cancel", "waiting", "full", "missing"];

/// Cases that run at the same time.
const LANES: usize = 3;

/// Output of a command that must succeed.
fn ran(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out.into_owned()
}

/// Flags of libfabric for a compiler, or none if it is not installed.
fn flags() -> Option<Vec<String>> {
    let output = Command::new("pkg-config").args(["--cflags", "--libs", "libfabric"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.split_whitespace().map(str::to_owned).collect())
}

/// Compiles the cases into a folder, and puts the provider beside them.
fn built(folder: &Path, flags: &[String]) -> PathBuf {
    let binary = folder.join("conformance");
    let sources = SOURCES.iter().map(|name| format!("{CASES}/{name}.c"));
    let strict = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations", "-pthread"];
    ran(Command::new("cc").args(strict).args(sources).arg("-o").arg(&binary).args(flags));
    let library = env::current_exe().unwrap().with_file_name("libvelo_fi.so");
    fs::copy(library, folder.join("libvelo_fi.so")).unwrap();
    binary
}

#[test]
fn programs_of_libfabric_conform() {
    conform(&[]);
}

#[test]
fn programs_conform_when_long_messages_come_in_blocks() {
    conform(&[("EVBVELO_NO_FETCH", "1")]);
}

#[test]
fn programs_conform_over_simulated_hardware() {
    let Some(flags) = flags() else { return skip_because("pkg-config does not know libfabric") };
    let folder = tempfile::tempdir().unwrap();
    let binary = built(folder.path(), &flags);
    for case in HARDWARE_CASES {
        let Some(hardware) = Hardware::start(2) else { return };
        let mut command = Command::new(&binary);
        command.arg(case).env("FI_PROVIDER_PATH", folder.path()).env("FI_VELO_HARDWARE", &hardware.name);
        assert_eq!(ran(&mut command), "conforms\n", "{case}");
        let report = hardware.finish();
        let moved: u64 = report.nodes.iter().map(|[sent, ..]| sent).sum();
        assert!(moved == report.packets && report.cycles >= 20 * moved.min(1), "{case}: {report:?}");
        assert!(*case == "missing" || moved > 0, "{case} sends nothing through the hardware");
    }
}

fn conform(variables: &[(&str, &str)]) {
    let Some(flags) = flags() else { return skip_because("pkg-config does not know libfabric") };
    let folder = tempfile::tempdir().unwrap();
    let binary = built(folder.path(), &flags);
    let run = &|case: &[&str]| {
        ran(Command::new(&binary).args(case).env("FI_PROVIDER_PATH", folder.path()).envs(variables.iter().copied()))
    };
    let cases = run(&[]);
    let cases: Vec<_> = cases.lines().collect();
    let declared = fs::read_to_string(format!("{CASES}/common.h")).unwrap().matches("void case_").count();
    assert_eq!(cases.len(), declared, "cases that are listed, and that are declared");
    thread::scope(|scope| {
        for lane in 0..LANES {
            let mine = cases.iter().skip(lane).step_by(LANES);
            scope.spawn(move || mine.for_each(|case| assert_eq!(run(&[case]), "conforms\n", "{case}")));
        }
    });
}
