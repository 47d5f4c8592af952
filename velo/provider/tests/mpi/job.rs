//! Jobs of Open MPI over the provider on this machine.

use evb_os::tools::skip_because;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Folder of the programs.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mpi");
/// Longest time of a job in seconds.
const PATIENCE_S: &str = "60";
/// Longest time from the end of a job to that of its processes.
const GRACE: Duration = Duration::from_secs(5);
/// Marks the processes of one job.
const MARK: &str = "EVB_VELO_JOB";

/// One job at a time: ranks that wait use their cores.
static TURN: Mutex<()> = Mutex::new(());

/// Open MPI, a program, and the provider beside it.
pub(crate) struct Job {
    folder: TempDir,
    mpirun: String,
    /// The name of hardware, if messages go through that.
    pub(crate) hardware: Option<String>,
}

/// Everything that a process has said.
pub(crate) fn text(output: &Output) -> String {
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
    /// Compiles a program; none, and says why, if Open MPI with libfabric is not installed.
    pub(crate) fn build(source: &str) -> Option<Self> {
        let [mpirun, mpicc, info] = [("mpirun", "--version"), ("mpicc", "-show"), ("ompi_info", "--parsable")]
            .map(|(name, argument)| tool(name, argument));
        let (Some((mpirun, _)), Some((mpicc, _)), Some((_, info))) = (mpirun, mpicc, info) else {
            skip_because("Open MPI is not installed");
            return None;
        };
        if !info.contains("mca:mtl:ofi:") {
            skip_because("this MPI does not use libfabric");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut compiler = Command::new(mpicc);
        compiler.args(["-O1", "-pthread", "-o"]).arg(folder.path().join("ranks")).arg(Path::new(SOURCES).join(source));
        let built = compiler.output().unwrap();
        assert!(built.status.success(), "{}", text(&built));
        let library = env::current_exe().unwrap().with_file_name("libvelo_fi.so");
        fs::copy(library, folder.path().join("libvelo_fi.so")).unwrap();
        Some(Self { folder, mpirun, hardware: None })
    }

    /// Runs the program with this many ranks.
    pub(crate) fn run(&self, ranks: &str, arguments: &[&str]) -> Output {
        let (_turn, child) = self.start(ranks, arguments);
        child.wait_with_output().unwrap()
    }

    /// Starts the program with this many ranks, in its turn.
    pub(crate) fn start(&self, ranks: &str, arguments: &[&str]) -> (MutexGuard<'static, ()>, Child) {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut command = Command::new(&self.mpirun);
        command.args(["--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "--timeout", PATIENCE_S]);
        command.args(["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "velo"]);
        command.args(["-n", ranks]).arg(self.folder.path().join("ranks")).args(arguments);
        command.env("FI_PROVIDER_PATH", self.folder.path()).env(MARK, self.folder.path());
        command.envs(self.hardware.iter().map(|name| ("FI_VELO_HARDWARE", name)));
        (turn, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Waits until no process of the job is left.
    pub(crate) fn wait_for_the_end(&self) {
        let end = Instant::now() + GRACE;
        while !self.left().is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(self.left(), Vec::<PathBuf>::new(), "processes, and their segments, are left");
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
pub(crate) fn files() -> usize {
    let names = fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().contains("velo")).count()
}
