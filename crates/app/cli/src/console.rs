//! The operator's console: commands from standard input, one per line.

use crate::{
    failure::Failure,
    progress::{ProgressArgs, RunProgress, say},
    signals::Signals,
};
use evb::{Command, Observer, Plan, Progress, RunState};
use std::{
    io,
    sync::mpsc::{self, Receiver, TryRecvError},
    thread,
};

/// An observer that passes the commands of standard input to run control.
pub(crate) struct Console<'a> {
    progress: RunProgress<'a>,
    lines: Receiver<String>,
    state: RunState,
    /// Standard input has ended, or a signal came: the program is to end, after its run.
    leaving: bool,
}

impl<'a> Console<'a> {
    pub(crate) fn new(plan: &Plan, signals: &'a Signals, how: ProgressArgs) -> Result<Self, Failure> {
        let (sender, lines) = mpsc::channel();
        // It ends with the program: a read of standard input cannot be interrupted.
        thread::Builder::new().spawn(move || {
            for line in io::stdin().lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { progress: RunProgress::new(plan, signals, how), lines, state: RunState::Initial, leaving: false })
    }

    fn parse(line: &str) -> Option<Command> {
        let found = Command::named(line.trim());
        if found.is_none() && !line.trim().is_empty() {
            let names = Command::ALL.map(Command::name);
            say(&format!("{:?} is not a command: use {}", line.trim(), names.join(", ")));
        }
        found
    }

    /// The next command towards the end, by the state of run control.
    fn way_out(&self) -> Option<Command> {
        match self.state {
            RunState::Configuring | RunState::Running | RunState::Degraded | RunState::Paused | RunState::Splitting => {
                Some(Command::Stop)
            }
            RunState::Draining => None,
            RunState::Initial | RunState::Configured | RunState::Stopped | RunState::Failed => Some(Command::Shutdown),
        }
    }
}

impl Observer for Console<'_> {
    fn progress(&mut self, progress: &Progress) {
        self.progress.progress(progress);
    }

    fn note(&mut self, text: &str) {
        self.progress.note(text);
    }

    fn state(&mut self, state: RunState) {
        self.state = state;
        self.progress.note(&format!("run control: {state}"));
    }

    fn command(&mut self) -> Option<Command> {
        if let Some(command) = self.progress.command() {
            self.leaving = true;
            return Some(command).filter(|_| self.state == RunState::Draining).or_else(|| self.way_out());
        }
        if self.leaving {
            return self.way_out();
        }
        match self.lines.try_recv() {
            Ok(line) => Self::parse(&line).and_then(|command| match command {
                // To quit a run is to stop it first.
                Command::Shutdown => {
                    self.leaving = true;
                    None
                }
                command => Some(command),
            }),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.leaving = true;
                None
            }
        }
    }
}
