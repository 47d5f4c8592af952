//! The states of run control.

use crate::Command;
use core::fmt;
use evb_core::Time;

/// A state of run control, as an operator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// Nothing is configured.
    Initial,
    /// Nodes are gathered, connected or prepared.
    Configuring,
    /// All nodes are connected to each other, and a run may start.
    Configured,
    /// Triggers are taken.
    Running,
    /// Triggers are taken, and at least one node is lost.
    Degraded,
    /// Triggers are turned away until the operator resumes.
    Paused,
    /// Triggers are turned away for a moment, until the next run has begun.
    Splitting,
    /// No more triggers are taken, and what was triggered is built.
    Draining,
    /// The run is over, and another may start.
    Stopped,
    /// The configuration failed, or the run ended without its event manager or any builder unit.
    Failed,
}

impl RunState {
    /// The name that people read.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Configuring => "configuring",
            Self::Configured => "configured",
            Self::Running => "running",
            Self::Degraded => "degraded",
            Self::Paused => "paused",
            Self::Splitting => "splitting",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }

    /// Returns true if the command has a meaning in this state.
    pub const fn accepts(self, command: Command) -> bool {
        match command {
            Command::Configure | Command::Start => {
                matches!(self, Self::Initial | Self::Configured | Self::Stopped | Self::Failed)
            }
            Command::Pause | Command::Split => matches!(self, Self::Running | Self::Degraded),
            Command::Resume => matches!(self, Self::Paused),
            Command::Stop | Command::Abort => self.is_active() || matches!(self, Self::Configuring),
            Command::Shutdown => !self.is_active(),
        }
    }

    /// Returns true during a run, from its start to the last report.
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Running | Self::Degraded | Self::Paused | Self::Splitting | Self::Draining)
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A step of the configuration, which ends when all nodes have done it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigureStep {
    /// All nodes join.
    Join,
    /// All nodes open their endpoints.
    Open,
    /// All nodes connect to their peers.
    Connect,
    /// All nodes open their sources and files, and front ends that hear run control take their settings.
    Prepare,
    /// Front ends that hear run control start. None does before all have their settings: a run that cannot begin starts
    /// no board.
    Arm,
}

/// The phase that the machine is in: the states, and the parts of those that have several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Initial,
    /// The nodes do a step; a run begins behind the last one if `start` says so.
    Configuring {
        step: ConfigureStep,
        until: Time,
        start: bool,
    },
    Configured,
    Running,
    Paused {
        since: Time,
    },
    /// The last events of a run end, before the next one begins.
    Settling {
        since: Time,
    },
    /// Nodes close the files of a run and open those of the next one. What ends the run waits until they have.
    Switching {
        since: Time,
        then: AfterSplit,
    },
    Draining,
    /// Builders end their events with the fragments that are there.
    Cutting,
    /// Nodes close their files.
    Finishing {
        since: Time,
    },
    Stopped,
    Failed,
}

/// What follows when the next run has begun. Of two the later one in this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AfterSplit {
    GoOn,
    Stop,
    Finish,
}

impl Phase {
    /// Returns true during a run that has not begun to finish.
    pub(crate) const fn is_building(self) -> bool {
        self.takes_triggers() || self.is_splitting() || matches!(self, Self::Draining | Self::Cutting)
    }

    /// Returns true while the operator has neither stopped nor split the run.
    pub(crate) const fn takes_triggers(self) -> bool {
        matches!(self, Self::Running | Self::Paused { .. })
    }

    /// Returns true between one run and the next.
    pub(crate) const fn is_splitting(self) -> bool {
        matches!(self, Self::Settling { .. } | Self::Switching { .. })
    }

    /// Returns true while no more triggers are taken and the run must make progress.
    pub(crate) const fn is_ending(self) -> bool {
        self.is_splitting() || matches!(self, Self::Draining | Self::Cutting | Self::Finishing { .. })
    }
}
