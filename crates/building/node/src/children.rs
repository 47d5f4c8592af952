//! The processes that a launch has started: they end by themselves, or are killed.

use std::{
    io,
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

/// Longest time that a process may take to end after its last order.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two checks for processes that have ended.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Processes, numbered from 0. Dropping them waits up to 5 s for all of them, then kills the rest.
#[derive(Debug, Default)]
pub struct Children(Vec<Child>);

impl Children {
    /// Starts one more process, and returns its number.
    ///
    /// # Errors
    /// The system does not start the process.
    pub fn start(&mut self, command: &mut Command) -> io::Result<usize> {
        self.0.push(command.spawn()?);
        Ok(self.0.len() - 1)
    }

    /// Number of processes that were started.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The first process that has ended: its number and exit status.
    pub fn ended(&mut self) -> Option<(usize, ExitStatus)> {
        self.0.iter_mut().enumerate().find_map(|(place, child)| Some((place, child.try_wait().ok()??)))
    }

    /// The exit status of the process with this number, if it has ended.
    pub(crate) fn status(&mut self, place: usize) -> Option<ExitStatus> {
        self.at(place)?.try_wait().ok()?
    }

    /// The process with this number.
    pub(crate) fn at(&mut self, place: usize) -> Option<&mut Child> {
        self.0.get_mut(place)
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        let end = Instant::now() + EXIT_TIMEOUT;
        for child in &mut self.0 {
            while Instant::now() < end && matches!(child.try_wait(), Ok(None)) {
                thread::sleep(LOOK_AGAIN);
            }
            let _ended_by_itself = child.kill();
            let _reaped = child.wait();
        }
    }
}
