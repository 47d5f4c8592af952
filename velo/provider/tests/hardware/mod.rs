//! The program with simulated hardware, as tests use it.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

/// Longest time in seconds until the first program comes: jobs take turns.
const PATIENCE_S: &str = "600";
/// Longest time from the end of the last program to that of the hardware.
const GRACE: Duration = Duration::from_secs(10);

/// Hardware that runs.
pub(crate) struct Hardware {
    child: Child,
    output: BufReader<ChildStdout>,
    pub(crate) name: String,
}

/// What the hardware says at its end.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) cycles: u64,
    pub(crate) packets: u64,
    /// Of each node: packets sent and received, packets dropped, and errors of its link.
    pub(crate) nodes: Vec<[u64; 4]>,
}

impl Hardware {
    /// Hardware with its own name, whose nodes can be opened; `None`, with a message, if it cannot be simulated here.
    pub(crate) fn start(nodes: usize) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut command = Command::new(env!("CARGO_BIN_EXE_evb-velo-hardware"));
        command
            .args([&name, "--nodes", &nodes.to_string(), "--patience-s", PATIENCE_S])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut line, mut output) = (String::new(), BufReader::new(child.stdout.take().unwrap()));
        output.read_line(&mut line).unwrap();
        if line == format!("{name}: {nodes} nodes are ready\n") {
            return Some(Self { child, output, name });
        }
        let says = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
        assert!(says.contains("the hardware cannot be simulated"), "{line}{says}");
        evb_os::tools::skip_because(says);
        None
    }

    /// Kills the program.
    #[allow(dead_code, reason = "not all tests kill it")]
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until the hardware ends by itself, since it is not used any more.
    pub(crate) fn finish(mut self) -> Report {
        let end = Instant::now() + GRACE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "the hardware does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(self.child.wait().unwrap().success());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        let mut lines = text.lines().map(numbers);
        let [cycles, packets] = lines.next().unwrap()[..] else { panic!("{text}") };
        Report { cycles, packets, nodes: lines.map(|line| line[1..].try_into().unwrap()).collect() }
    }
}

impl Drop for Hardware {
    fn drop(&mut self) {
        // An end that came before is not an error here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The numbers in a line.
fn numbers(line: &str) -> Vec<u64> {
    let words = line.split(|character: char| !character.is_ascii_digit());
    words.filter(|word| !word.is_empty()).map(|word| word.parse().unwrap()).collect()
}
