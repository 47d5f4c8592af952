//! The `evb` command as a process that cannot hang a test.

use super::{Group, wait_until};
use evb_record::Record;
use rustix::process::Signal;
use std::{
    fmt,
    io::{Read, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// What takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(180);

/// A command that is being put together.
pub(crate) struct Evb {
    command: Command,
}

impl Evb {
    pub(crate) fn new(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evb"));
        command.current_dir(folder);
        Self { command }.args(arguments)
    }

    /// Another program in front of `evb`: the command line, in which `evb` follows.
    pub(crate) fn under(self, wrapper: &[&str]) -> Self {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(self.command.get_program()).args(self.command.get_args());
        command.current_dir(self.command.get_current_dir().expect("the folder of the test"));
        Self { command }
    }

    pub(crate) fn args(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn paths(mut self, paths: &[PathBuf]) -> Self {
        self.command.args(paths);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn set(self, change: &str) -> Self {
        self.args(&["--set", change])
    }

    /// Runs it to its end.
    pub(crate) fn run(self) -> Outcome {
        self.start().wait()
    }

    /// Starts it as the leader of its own process group.
    pub(crate) fn start(self) -> Running {
        self.start_with(Stdio::null())
    }

    /// Starts it with standard input for [`Running::say`].
    pub(crate) fn start_listening(self) -> Running {
        self.start_with(Stdio::piped())
    }

    fn start_with(mut self, stdin: Stdio) -> Running {
        use std::os::unix::process::CommandExt as _;
        for (name, _) in std::env::vars_os() {
            let ours = name.to_string_lossy().starts_with("EVB_");
            if ours && !self.command.get_envs().any(|(set, _)| set == name) {
                self.command.env_remove(name);
            }
        }
        self.command.env("NO_COLOR", "1").env("COLUMNS", "100");
        self.command.process_group(0).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("evb starts");
        let stdin = child.stdin.take();
        let stdout = Tap::new(child.stdout.take().expect("stdout is piped"));
        let stderr = Tap::new(child.stderr.take().expect("stderr is piped"));
        Running { child, stdin, stdout, stderr, heard: 0, since: Instant::now() }
    }
}

/// A command that runs. Dropping it ends its whole group.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Tap,
    stderr: Tap,
    /// Bytes of standard error that were waited for.
    heard: usize,
    since: Instant,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn group(&self) -> Group {
        Group(self.pid())
    }

    /// A signal to the command itself, not to its nodes.
    pub(crate) fn signal(&self, signal: Signal) {
        Group::signal_one(self.pid(), signal);
    }

    pub(crate) fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Waits until standard error holds `text`.
    pub(crate) fn wait_for(&mut self, text: &str) {
        wait_until(&format!("{text:?} on standard error"), || {
            let said = self.stderr();
            if said.contains(text) {
                return Some(());
            }
            let ended = self.child.try_wait().expect("the command can be waited for");
            assert!(ended.is_none(), "ended without saying {text:?}: {said}\n{}", self.stdout.text());
            None
        });
    }

    /// Writes a line to standard input.
    pub(crate) fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("it listens");
        stdin.write_all(format!("{line}\n").as_bytes()).expect("it listens");
    }

    /// Closes standard input.
    pub(crate) fn say_no_more(&mut self) {
        self.stdin = None;
    }

    /// Waits until standard error holds `text` behind what was waited for before.
    pub(crate) fn wait_for_new(&mut self, text: &str) {
        let heard = self.heard;
        self.heard = wait_until(&format!("{text:?} behind byte {heard} on standard error"), || {
            let said = self.stderr();
            let at = said[heard..].find(text).map(|at| heard + at + text.len());
            let ended = self.child.try_wait().expect("the command can be waited for");
            assert!(at.is_some() || ended.is_none(), "ended without saying {text:?}: {said}\n{}", self.stdout.text());
            at
        });
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the command can be waited for").is_none()
    }

    /// Waits for the end, and fails when it does not come in time: from now on, since a service may have lived for hours.
    pub(crate) fn wait(mut self) -> Outcome {
        let end = Instant::now() + DEADLINE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("the command can be waited for") {
                break status;
            }
            if Instant::now() > end {
                self.group().signal(Signal::KILL);
                panic!("evb hangs\nstdout: {}\nstderr: {}", self.stdout.text(), self.stderr.text());
            }
            thread::sleep(Duration::from_millis(2));
        };
        let seconds = self.since.elapsed().as_secs_f64();
        Outcome { status, stdout: self.stdout.finish(), stderr: self.stderr.finish(), seconds }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.group().signal(Signal::KILL);
        let _reaped = self.child.wait();
    }
}

/// Reads a pipe to its end in its own thread.
struct Tap {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Tap {
    fn new(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = bytes.clone();
        let thread = thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut chunk) {
                sink.lock().expect("no thread panics while it holds the lock").extend_from_slice(&chunk[..count]);
            }
        });
        Self { bytes, thread: Some(thread) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().expect("no thread panics while it holds the lock")).into_owned()
    }

    /// Everything, once all that write have gone: a node that outlives its run would be seen here as a hang.
    fn finish(&mut self) -> String {
        let thread = self.thread.take().expect("finished once");
        wait_until("all processes of the run have ended", || thread.is_finished().then_some(()));
        self.text()
    }
}

/// What a command did.
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) seconds: f64,
}

impl Outcome {
    /// The exit status; `None` when a signal ended it.
    pub(crate) fn code(&self) -> Option<i32> {
        assert!(!self.stderr.contains("panicked"), "{self}");
        self.status.code()
    }

    /// The one record on standard output.
    pub(crate) fn record(&self) -> Record {
        let mut records = self.records();
        assert_eq!(records.len(), 1, "{self}");
        records.remove(0)
    }

    /// All records on standard output, which holds nothing else.
    pub(crate) fn records(&self) -> Vec<Record> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self}")))
            .collect()
    }

    /// The one JSON object on standard output.
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {:.1} s\nstdout: {}\nstderr: {}", self.status, self.seconds, self.stdout, self.stderr)
    }
}
