//! One partition of a simulation, which advances beside the others, window by window. It never waits itself, so any thread
//! can take it over, and one thread can have all.

use crate::{partition_border::PartitionMail, simulation::Simulation};
use evb_core::{Span, Time};
use rtrb::{Consumer, Producer, RingBuffer};
use std::mem;

/// Batches from one partition to another that fit into a link. There are three at most, since no partition is more than
/// two windows ahead; with more room, a sender looks less often how far the receiver is.
const BATCHES: usize = 16;

/// No time.
const NEVER: u64 = u64::MAX;

/// The end of a simulation in partitions, the same for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunOutcome {
    Ended,
    Interrupted,
    GaveUp,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowStep {
    Advanced,
    /// The partition waits for others, or has ended before.
    Waits,
    /// The partition has just ended.
    Ended,
}

/// A partition and its links to all others.
pub(super) struct PartitionRunner<'a> {
    pub(super) partition: Simulation<'a>,
    /// False to interrupt the simulation; only that of the first partition counts.
    pub(super) continues: bool,
    /// True for the partition with the event manager.
    is_first: bool,
    /// By partition, without this one.
    links: Vec<PartitionLink>,
    windows: Windows,
    /// The notices of this partition after the last window but one, and after the last one.
    said: [PartitionNotice; 2],
    /// The joint notice of the others after one window, as far as theirs were taken, and their number.
    heard: PartitionNotice,
    hears: usize,
    state: WindowState,
}

/// What a partition does next.
enum WindowState {
    Begin,
    /// Take the mail of the window before the last one, and advance.
    Receive,
    /// Go as far as the first partition has gone.
    Follow,
    /// Take the last mail.
    Close(RunOutcome),
    Over(RunOutcome),
}

/// The link of one partition to another.
struct PartitionLink {
    partition: usize,
    out: Producer<WindowBatch>,
    into: Consumer<WindowBatch>,
    /// Times up to which the first partition allows the others to go, one for each window in which it goes first.
    allows: Producer<Time>,
    allowed: Consumer<Time>,
    /// Empty mail, whose memory is used again.
    spare: Vec<PartitionMail>,
}

/// The notice and mail of a partition to another one after a window.
struct WindowBatch {
    notice: PartitionNotice,
    mail: PartitionMail,
}

/// The notice of a partition, or of several of them together, to all.
#[derive(Clone, Copy)]
struct PartitionNotice {
    /// Time of the next event, or of the first effect of mail that was not taken yet.
    next: u64,
    /// Events that this mail ends.
    ends: u64,
    gives_up: bool,
    /// Events that no control message under way in the first partition ends; only that partition knows, and what
    /// follows, too.
    stay_open: u64,
    has_ended: bool,
    is_interrupted: bool,
}

/// The windows of time of a simulation in partitions, in picoseconds.
///
/// The mail of a window is taken two windows later. So a partition does not wait for the others to do what it has just
/// done, but only what it did before, and works while they catch up.
struct Windows {
    lookahead: u64,
    /// The ends of the last window and of the one before it.
    last: u64,
    before: u64,
}

impl<'a> PartitionRunner<'a> {
    /// Links partitions that affect each other only after the lookahead.
    pub(super) fn of_all(partitions: Vec<Simulation<'a>>, lookahead: Span) -> Vec<Self> {
        let mut links: Vec<Vec<PartitionLink>> = partitions.iter().map(|_| Vec::new()).collect();
        for one in 0..partitions.len() {
            for other in 0..one {
                let [here, there] = PartitionLink::pair(one, other);
                links[one].push(here);
                links[other].push(there);
            }
        }
        let runner = |(index, (partition, links))| Self {
            partition,
            continues: true,
            is_first: index == 0,
            links,
            windows: Windows { lookahead: lookahead.0, last: 0, before: 0 },
            said: [PartitionNotice::NOTHING; 2],
            heard: PartitionNotice::NOTHING,
            hears: 0,
            state: WindowState::Begin,
        };
        partitions.into_iter().zip(links).enumerate().map(runner).collect()
    }

    /// Simulates a window, or does what else comes next, if the others have done what that needs.
    pub(super) fn step(&mut self) -> WindowStep {
        match self.state {
            WindowState::Begin => {
                self.partition.begin(&mut |_| true);
                // The beginning counts as a window, and so does one without length after it.
                self.send_mail();
                self.send_mail();
                self.state = WindowState::Receive;
            }
            WindowState::Receive => match self.receive() {
                Some(all) => self.advance(all),
                None => return WindowStep::Waits,
            },
            // The first link is that to the first partition.
            WindowState::Follow => match self.links[0].allowed.pop() {
                Ok(end) => self.run(end),
                Err(_) => return WindowStep::Waits,
            },
            WindowState::Close(end) => {
                if self.receive().is_none() {
                    return WindowStep::Waits;
                }
                self.state = WindowState::Over(end);
                return WindowStep::Ended;
            }
            WindowState::Over(_) => return WindowStep::Waits,
        }
        WindowStep::Advanced
    }

    /// How the simulation ended; `None` before.
    pub(super) const fn end(&self) -> Option<RunOutcome> {
        match self.state {
            WindowState::Over(end) => Some(end),
            _ => None,
        }
    }

    /// Takes the next mail of all others. Returns their notices with it, and that of this partition at that time.
    fn receive(&mut self) -> Option<PartitionNotice> {
        while let Some(link) = self.links.get_mut(self.hears) {
            let WindowBatch { notice, mut mail } = link.into.pop().ok()?;
            self.partition.take_mail(link.partition, &mut mail);
            link.spare.push(mail);
            self.heard = self.heard.and(notice);
            self.hears += 1;
        }
        self.hears = 0;
        Some(mem::replace(&mut self.heard, PartitionNotice::NOTHING).and(self.said[0]))
    }

    /// Advances after the notices of all, or ends.
    fn advance(&mut self, all: PartitionNotice) {
        if let Some(end) = all.end(self.partition.ends_in_silence()) {
            self.state = WindowState::Close(end);
            return;
        }
        let end = self.windows.next(all.next);
        if !all.may_end() {
            self.partition.run_before(end);
            self.partition.must_not_have_ended();
            self.send_mail();
        } else if self.is_first {
            // It finds out at which time the simulation is over before the others advance.
            self.partition.run_before(end);
            let until = if self.partition.has_ended() { Time(self.partition.now().0 + 1) } else { end };
            for link in &mut self.links {
                assert!(link.allows.push(until).is_ok(), "a partition is two windows ahead at most");
            }
            self.send_mail();
        } else {
            self.state = WindowState::Follow;
        }
    }

    /// Advances up to the time that the first partition allowed.
    fn run(&mut self, end: Time) {
        self.partition.run_before(end);
        self.send_mail();
        self.state = WindowState::Receive;
    }

    /// Sends the mail of this partition to the others.
    fn send_mail(&mut self) {
        let notice = PartitionNotice::of(self);
        for link in &mut self.links {
            let mail = self.partition.hand_out(link.partition, link.spare.pop().unwrap_or_default());
            assert!(link.out.push(WindowBatch { notice, mail }).is_ok(), "a partition is two windows ahead at most");
        }
        self.said = [self.said[1], notice];
    }
}

impl PartitionLink {
    /// The ends of the link between two partitions.
    fn pair(one: usize, other: usize) -> [Self; 2] {
        let ((out, into_other), (out_of_other, into)) = (RingBuffer::new(BATCHES), RingBuffer::new(BATCHES));
        let ((allows, allowed_other), (allows_of_other, allowed)) =
            (RingBuffer::new(BATCHES), RingBuffer::new(BATCHES));
        let here = Self { partition: other, out, into, allows, allowed, spare: Vec::new() };
        let there = Self {
            partition: one,
            out: out_of_other,
            into: into_other,
            allows: allows_of_other,
            allowed: allowed_other,
            spare: Vec::new(),
        };
        [here, there]
    }
}

impl PartitionNotice {
    /// The notice without content.
    const NOTHING: Self =
        Self { next: NEVER, ends: 0, gives_up: false, stay_open: NEVER, has_ended: false, is_interrupted: false };

    /// The notice of a partition after a window.
    fn of(runner: &mut PartitionRunner<'_>) -> Self {
        let PartitionRunner { partition, is_first, continues, .. } = runner;
        let effects = partition.next_effects();
        let next = effects.first.map_or(NEVER, |time| time.0);
        let notice = Self { next, ends: effects.ends, gives_up: partition.gives_up(), ..Self::NOTHING };
        if !*is_first {
            return notice;
        }
        Self {
            stay_open: partition.stays_open(),
            has_ended: partition.has_ended(),
            is_interrupted: !*continues,
            ..notice
        }
    }

    /// Both notices together.
    fn and(self, other: Self) -> Self {
        Self {
            next: self.next.min(other.next),
            ends: self.ends + other.ends,
            gives_up: self.gives_up || other.gives_up,
            stay_open: self.stay_open.min(other.stay_open),
            has_ended: self.has_ended || other.has_ended,
            is_interrupted: self.is_interrupted || other.is_interrupted,
        }
    }

    /// The end of the simulation, if it is over after the notices of all.
    fn end(self, ends_in_silence: bool) -> Option<RunOutcome> {
        // A partition that gives up has not handled all, also when everything is over.
        if self.gives_up {
            Some(RunOutcome::GaveUp)
        } else if self.has_ended {
            Some(RunOutcome::Ended)
        } else if self.next == NEVER {
            Some(if ends_in_silence { RunOutcome::Ended } else { RunOutcome::GaveUp })
        } else {
            self.is_interrupted.then_some(RunOutcome::Interrupted)
        }
    }

    /// True if all events may have ended before more mail is taken.
    const fn may_end(self) -> bool {
        self.stay_open <= self.ends
    }
}

impl Windows {
    /// The end of the next window. `start` is the time of what came next after the window before the last one.
    ///
    /// The last window had nothing before that time, so its mail has no effect before the lookahead has passed since. Each
    /// window is half as long as the lookahead, so that all have the same length.
    fn next(&mut self, start: u64) -> Time {
        let latest = start.max(self.before).saturating_add(self.lookahead);
        let half = start.max(self.last).saturating_add(self.lookahead.div_ceil(2));
        (self.before, self.last) = (self.last, latest.min(half));
        Time(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_half_the_lookahead_and_no_effect_comes_before_its_mail_is_taken() {
        let mut windows = Windows { lookahead: 100, last: 0, before: 0 };
        let starts = [0, 3, 50, 104, 900, 900, 910, 2000, NEVER - 1];
        let ends = starts.map(|start| {
            let before = windows.before;
            let end = windows.next(start).0;
            assert!(end <= start.max(before).saturating_add(100), "{start}: {end}");
            end
        });
        assert_eq!(ends, [50, 100, 150, 200, 950, 1000, 1050, 2050, NEVER]);
    }
}
