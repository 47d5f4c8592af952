//! The processes that a launch has started: how they end by themselves, or are ended.

use std::{
    io,
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

/// Longest time that a process may take to end after its last order.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two looks whether a process has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Processes, each with a place from 0 on. Dropping them waits up to 5 s for all of them, then ends those that are left.
#[derive(Debug, Default)]
pub struct Children(Vec<Child>);

impl Children {
    /// Starts one more process, and gives its place.
    ///
    /// # Errors
    /// The system does not start it.
    pub fn start(&mut self, command: &mut Command) -> io::Result<usize> {
        self.0.push(command.spawn()?);
        Ok(self.0.len() - 1)
    }

    /// The first that has ended: its place, and how.
    pub fn ended(&mut self) -> Option<(usize, ExitStatus)> {
        self.0.iter_mut().enumerate().find_map(|(place, child)| Some((place, child.try_wait().ok()??)))
    }

    /// How the process at a place has ended, if it has.
    pub(crate) fn status(&mut self, place: usize) -> Option<ExitStatus> {
        self.at(place)?.try_wait().ok()?
    }

    /// The process at a place.
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
