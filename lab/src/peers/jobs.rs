//! Programs that are bound to cores and have a time limit.

use super::{Effort, ours, outputs::listens};
use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use xtask::{processes::Limited, workspace::is_installed};

/// Longest time of a program.
const LIMIT: Duration = Duration::from_secs(60);
/// Folder with the headers of the event builders in C.
const HEADERS: &str = "crates/transport/mpi/tests/peer";
/// Longest time until a server listens.
const LISTEN_LIMIT: Duration = Duration::from_secs(5);

/// The tools and folders of all measurements.
#[derive(Clone)]
pub(super) struct Bench {
    pub(super) evb: PathBuf,
    /// The root of the repository.
    pub(super) root: PathBuf,
    /// The folder in which programs are compiled and run.
    pub(super) scratch: PathBuf,
    /// The two cores of all programs.
    pub(super) cores: [u64; 2],
    pub(super) effort: Effort,
}

impl Bench {
    /// Nanoseconds of a word between the cores now; empty if they cannot be measured.
    pub(super) fn core_to_core(&self) -> Vec<f64> {
        ours::core_to_core(&self.evb, &self.scratch).unwrap_or_default()
    }

    /// Compiles a C program of the repository. `options` are those of the compiler, libraries among them.
    pub(super) fn compile(&self, compiler: &str, source: &str, options: &[&str]) -> Result<PathBuf, String> {
        let name = Path::new(source).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let program = self.scratch.join(format!("{name}.{compiler}{}", options.concat().replace('/', "")));
        let mut command = Command::new(compiler);
        command.arg("-O2").arg("-I").arg(self.root.join(HEADERS)).arg(self.root.join(source)).args(options);
        command.arg("-o").arg(&program);
        let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{compiler}: {error}"))?;
        if output.status.success() { Ok(program) } else { Err(format!("{compiler} does not compile {source}")) }
    }

    /// `program` on the first or the second core.
    pub(super) fn on_core(&self, which: usize, program: &str) -> Command {
        self.bound(&self.cores[which].to_string(), program)
    }

    /// `program` and its children on both cores.
    pub(super) fn on_both(&self, program: impl AsRef<Path>) -> Command {
        let [first, second] = self.cores;
        self.bound(&format!("{first},{second}"), program)
    }

    fn bound(&self, cores: &str, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", cores]).arg(program.as_ref()).current_dir(&self.scratch);
        command
    }
}

/// Fails if a program is not on the path. The error is the reason of a skipped row.
pub(super) fn installed(program: &str) -> Result<(), String> {
    if is_installed(program) { Ok(()) } else { Err(format!("{program} is not installed")) }
}

/// The standard output of a program that must succeed in time.
pub(super) fn output(command: &mut Command) -> Result<String, String> {
    let program = name(command);
    let mut job = Limited::start(command, LIMIT).map_err(|error| format!("{program}: {error}"))?;
    match job.wait() {
        Ok((status, text)) if status.success() => Ok(text),
        Ok((status, _)) => Err(format!("{program}: {status}")),
        Err(why) => Err(format!("{program}: {why}")),
    }
}

/// Starts `server`, and `client` once the server listens; both get the port. Returns the output of the client.
pub(super) fn output_of_pair(
    server: impl FnOnce(&str) -> Command,
    client: impl FnOnce(&str) -> Command,
) -> Result<String, String> {
    let port = free_port()?;
    let mut server = server(&port.to_string());
    let program = name(&server);
    let server = Limited::start(server.stderr(Stdio::null()), LIMIT);
    let _until_the_client_is_done = server.map_err(|error| format!("{program}: {error}"))?;
    wait_for_listener(port, &program)?;
    output(&mut client(&port.to_string()))
}

/// The program behind `taskset -c CORES`, or the command itself.
fn name(command: &Command) -> String {
    let program = command.get_args().nth(2).filter(|_| command.get_program() == "taskset");
    let path = Path::new(program.unwrap_or(command.get_program()));
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}

/// Waits until the kernel lists the listener: the server would take a test connection for the client.
fn wait_for_listener(port: u16, program: &str) -> Result<(), String> {
    let end = Instant::now() + LISTEN_LIMIT;
    let is_up = |table: &str| fs::read_to_string(table).is_ok_and(|table| listens(&table, port));
    while !["/proc/net/tcp", "/proc/net/tcp6"].into_iter().any(is_up) {
        if Instant::now() > end {
            return Err(format!("{program} does not listen on port {port}"));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
