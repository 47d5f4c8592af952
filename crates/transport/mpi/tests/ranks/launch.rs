//! The launchers that are installed, and jobs that cannot hang.

use std::{
    env,
    io::Read,
    panic,
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Longest time of a job.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// An MPI.
pub(crate) struct Installed {
    pub(crate) mpirun: String,
    pub(crate) mpicc: String,
    is_open_mpi: bool,
}

/// The job of one case.
pub(crate) struct Job {
    pub(crate) name: &'static str,
    /// 0 for a process without a launcher.
    pub(crate) ranks: usize,
    pub(crate) expected: Expected,
    /// True for the shim of another MPI.
    pub(crate) foreign: bool,
}

/// The end of a job.
pub(crate) enum Expected {
    Good,
    /// The job fails with this message.
    Bad(&'static str),
}

impl Installed {
    /// The MPIs under the names that Debian gives them, or else the one without a name.
    pub(crate) fn find() -> Vec<Self> {
        let named = ["openmpi", "mpich"].iter().filter_map(|name| Self::open(&format!(".{name}")));
        let named: Vec<_> = named.collect();
        if named.is_empty() { Self::open("").into_iter().collect() } else { named }
    }

    fn open(suffix: &str) -> Option<Self> {
        let (mpirun, mpicc) = (format!("mpirun{suffix}"), format!("mpicc{suffix}"));
        let version = Command::new(&mpirun).arg("--version").output().ok()?;
        Command::new(&mpicc).arg("-show").output().ok()?;
        let version = String::from_utf8_lossy(&version.stdout);
        let is_open_mpi = ["OpenRTE", "Open MPI"].iter().any(|name| version.contains(name));
        Some(Self { mpirun, mpicc, is_open_mpi })
    }

    fn launch(&self, ranks: usize, program: &Path) -> Command {
        let mut command = Command::new(&self.mpirun);
        if self.is_open_mpi {
            command.args(["--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]);
        }
        command.arg("-n").arg(ranks.to_string()).arg(program);
        command
    }

    /// Runs the event builder in plain MPI, which checks its events.
    pub(crate) fn build_events(&self) {
        let folder = tempfile::tempdir().expect("a folder");
        let (program, source) = (folder.path().join("event_building"), "/tests/peer/event_building.c");
        let source = format!("{}{source}", env!("CARGO_MANIFEST_DIR"));
        let compiled = limited(Command::new(&self.mpicc).args(["-O2", "-o"]).arg(&program).arg(source));
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        for protocol in ["pull", "push"] {
            let output = limited(self.launch(5, &program).args(["2", "500", "2048", protocol, "16"]));
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains(r#""fragments":1000,"wrong":0,"#), "{protocol}: {text}");
        }
    }

    /// Runs a job to its end, with an empty cache, so that its ranks race for it.
    pub(crate) fn start(&self, job: &Job, foreign: Option<&str>) {
        let cache = tempfile::tempdir().expect("a folder");
        let program = env::current_exe().expect("this program");
        let mut command = if job.ranks > 0 { self.launch(job.ranks, &program) } else { Command::new(program) };
        command.arg(format!("case:{}", job.name)).env("XDG_CACHE_HOME", cache.path()).env_remove("EVB_MPICC");
        match foreign {
            Some(mpicc) => drop(command.env("EVB_MPICC", mpicc)),
            None if job.ranks == 0 => drop(command.env("EVB_MPICC", &self.mpicc)),
            None => {}
        }
        let output = limited(&mut command);
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        match job.expected {
            Expected::Good => assert!(output.status.success(), "{}\n{text}", output.status),
            Expected::Bad(says) => assert!(!output.status.success() && text.contains(says), "{text}"),
        }
    }
}

/// Checks that the error without a compiler has a hint.
pub(crate) fn without_mpicc() {
    let program = env::current_exe().expect("this program");
    let output = limited(Command::new(program).arg("case:start").env("EVB_MPICC", "/nonexistent/mpicc"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success());
    for part in ["no MPI found: /nonexistent/mpicc does not run: ", "hint: install an MPI", "set EVB_MPICC"] {
        assert!(text.contains(part), "{text}");
    }
    let output = limited(Command::new(env::current_exe().expect("this")).arg("case:start").env("EVB_MPICC", "false"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("no MPI found: false does not run: exit status: 1"));
}

/// Runs a test and prints its result; returns true if it passed.
pub(crate) fn run(name: &str, test: impl FnOnce()) -> bool {
    let start = Instant::now();
    let result = panic::catch_unwind(panic::AssertUnwindSafe(test));
    let word = if result.is_ok() { "ok" } else { "FAILED" };
    println!("{name} ... {word} ({:.1} s)", start.elapsed().as_secs_f64());
    result.is_ok()
}

fn limited(command: &mut Command) -> Output {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    let (mut out, mut err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let read = |pipe: &mut dyn Read| {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).map(|_| bytes).unwrap_or_default()
    };
    let readers = (thread::spawn(move || read(&mut out)), thread::spawn(move || read(&mut err)));
    let (start, mut hangs) = (Instant::now(), false);
    let status = loop {
        match child.try_wait().expect("a child") {
            Some(status) => break status,
            None if start.elapsed() > PATIENCE && !hangs => {
                hangs = true;
                child.kill().expect("a child can be ended");
            }
            None => thread::sleep(Duration::from_millis(10)),
        }
    };
    let stdout = readers.0.join().expect("a reader");
    let stderr = readers.1.join().expect("a reader");
    assert!(!hangs, "{command:?} hangs:\n{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    Output { status, stdout, stderr }
}
