//! Processes with a time limit, their memory, and the ports at which they listen.

use std::{
    fs, io,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A process with a time limit. Dropping it kills it; its children end when they notice.
pub struct Limited {
    child: Child,
    end: Instant,
}

impl Limited {
    /// Starts `command`, which must end within `limit`.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(command: &mut Command, limit: Duration) -> io::Result<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        Ok(Self { child, end: Instant::now() + limit })
    }

    /// Waits for the end. Returns the exit status and the standard output.
    ///
    /// # Errors
    /// The process does not end in time.
    pub fn wait(&mut self) -> Result<(ExitStatus, String), String> {
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

    /// The process number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory of the process and its children in KiB; `None` if the process has ended or the memory is unknown.
    #[must_use]
    pub fn resident_kib(&self) -> Option<u64> {
        let own = self.child.id();
        Some(resident(own)? + children(own).filter_map(resident).sum::<u64>())
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _over = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn children(own: u32) -> impl Iterator<Item = u32> {
    let all = fs::read_dir("/proc").into_iter().flatten();
    let all = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    all.filter(move |&pid| parent(pid) == Some(own))
}

/// The TCP ports over IPv4 at which a process or its children listen.
#[must_use]
pub fn listening(own: u32) -> Vec<u16> {
    let files =
        std::iter::once(own).chain(children(own)).filter_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).ok());
    let links =
        files.flatten().filter_map(|file| fs::read_link(file.ok()?.path()).ok()?.into_os_string().into_string().ok());
    let sockets: Vec<_> = links.collect();
    let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    table.lines().filter_map(|line| port_of_listener(line, &sockets)).collect()
}

/// The port in a line of the kernel's table of connections, if the line is a listener among these sockets.
fn port_of_listener(line: &str, sockets: &[String]) -> Option<u16> {
    /// The state of a listener.
    const LISTEN: &str = "0A";
    let words: Vec<_> = line.split_whitespace().collect();
    let (&address, &state, &inode) = (words.get(1)?, words.get(3)?, words.get(9)?);
    let is_own = state == LISTEN && sockets.contains(&format!("socket:[{inode}]"));
    is_own.then(|| u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok())?
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
