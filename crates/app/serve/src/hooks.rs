//! Hooks: programs that run before a run starts and after it has ended.

use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    io,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// The hooks of a service.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    /// Runs before each start. When it fails or takes too long, there is no run.
    pub before_start: Option<PathBuf>,
    /// Runs after each run. When it fails or takes too long, the log says so.
    pub after_stop: Option<PathBuf>,
    /// Longest time for a hook.
    pub timeout: Duration,
}

/// A hook that runs.
pub(crate) struct Hook {
    child: Child,
    name: String,
    deadline: Instant,
    timeout: Duration,
}

impl Hook {
    /// Starts a hook with these variables in its environment. What it prints goes to standard error.
    pub(crate) fn start(program: &PathBuf, variables: &[(&str, String)], timeout: Duration) -> Result<Self, String> {
        let name = program.display().to_string();
        let mut command = Command::new(program);
        // What it starts ends with it.
        command.stdin(Stdio::null()).stdout(io::stderr()).process_group(0);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let child = command.spawn().map_err(|error| format!("the hook {name} cannot start: {error}"))?;
        Ok(Self { child, name, deadline: Instant::now() + timeout, timeout })
    }

    /// How it ended; none while it goes on. One that takes too long is killed.
    pub(crate) fn outcome(&mut self) -> Option<Result<(), String>> {
        match self.child.try_wait() {
            Ok(Some(status)) if status.success() => Some(Ok(())),
            Ok(Some(status)) => Some(Err(format!("the hook {} failed: {status}", self.name))),
            Ok(None) if Instant::now() < self.deadline => None,
            Ok(None) => Some(Err(format!("the hook {} did not end within {:?}", self.name, self.timeout))),
            Err(error) => Some(Err(format!("the hook {} is lost: {error}", self.name))),
        }
    }
}

/// Neither a hook nor what it has started outlives the wait for it.
impl Drop for Hook {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
                let _gone = kill_process_group(group, Signal::KILL);
            }
            let _reaped = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn outcome(program: &str, timeout: Duration) -> Result<(), String> {
        let mut hook = Hook::start(&program.into(), &[], timeout)?;
        loop {
            match hook.outcome() {
                Some(outcome) => return outcome,
                None => thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// A script that sleeps.
    fn sleeper(folder: &std::path::Path) -> String {
        script(folder, "exec sleep 60")
    }

    /// A script, written by another process: a program that a test beside this one starts meanwhile would inherit the open file, and
    /// the system executes no file that is open for writing.
    fn script(folder: &std::path::Path, text: &str) -> String {
        let path = folder.join("script").display().to_string();
        let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$2" && chmod 755 "$2""#;
        let status = Command::new("sh").args(["-c", write, "sh", text, &path]).status().unwrap();
        assert!(status.success(), "{status}");
        path
    }

    /// A hook that does not end takes the programs that it has started with it.
    #[test]
    fn what_a_hook_has_started_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let noted = folder.path().join("child");
        let path =
            script(folder.path(), &format!("sleep 60 & echo $! > {0}.new; mv {0}.new {0}; wait", noted.display()));
        let mut hook = Hook::start(&path.into(), &[], Duration::from_secs(60)).unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        let child = loop {
            assert!(hook.outcome().is_none() && Instant::now() < end, "the script does not start its child");
            match std::fs::read_to_string(&noted) {
                Ok(child) => break child.trim().to_owned(),
                Err(_) => thread::sleep(Duration::from_millis(2)),
            }
        };
        drop(hook);
        let state = || std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        // An orphan may wait for its new parent.
        while state().rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z')) {
            assert!(Instant::now() < end, "the child is still alive");
            thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn hooks_that_fail_hang_or_do_not_exist_are_told() {
        let long = Duration::from_secs(60);
        assert_eq!(outcome("/bin/true", long), Ok(()));
        assert!(outcome("/bin/false", long).unwrap_err().contains("failed: exit status: 1"));
        assert!(outcome("/nowhere/hook", long).unwrap_err().contains("cannot start"));

        let folder = tempfile::tempdir().unwrap();
        let slow = outcome(&sleeper(folder.path()), Duration::from_millis(20));
        assert!(slow.unwrap_err().contains("did not end within 20ms"));
    }
}
