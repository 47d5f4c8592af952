//! The released command as a process that cannot hang, and its memory.

use std::{
    fs, io,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A process with a limit to its life. Dropping it ends it; its children end when they notice.
pub(crate) struct Limited {
    child: Child,
    end: Instant,
}

impl Limited {
    /// Starts `command`, which must end within `limit`.
    pub(crate) fn start(command: &mut Command, limit: Duration) -> io::Result<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        Ok(Self { child, end: Instant::now() + limit })
    }

    /// Waits for the end: the exit status and standard output.
    pub(crate) fn wait(&mut self) -> Result<(ExitStatus, String), String> {
        let output = self.child.stdout.take().expect("standard output is piped");
        // Read meanwhile: a process does not end while its output is full.
        let reader = thread::spawn(move || io::read_to_string(output));
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() > self.end => return Err("it hangs".into()),
                Ok(None) => thread::sleep(Duration::from_millis(10)),
                Err(error) => return Err(error.to_string()),
            }
        };
        let output = reader.join().map_err(|_| "the reader of its output panicked")?;
        Ok((status, output.map_err(|error| error.to_string())?))
    }

    /// Resident memory of the process and its children in KiB; `None` when it cannot be known, or is over.
    pub(crate) fn resident_kib(&self) -> Option<u64> {
        let own = self.child.id();
        let children = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let children = children.filter(|&pid| parent(pid) == Some(own));
        Some(resident(own)? + children.filter_map(resident).sum::<u64>())
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _over = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn parent(pid: u32) -> Option<u32> {
    status(pid, "PPid:").map(|pid| pid as u32)
}

fn resident(pid: u32) -> Option<u64> {
    status(pid, "VmRSS:")
}

/// The first number behind `name` in the kernel's text about a process.
fn status(pid: u32, name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}
