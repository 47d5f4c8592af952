//! One simulation on several cores: each has a part of the network, with some switches and the hosts on them.
//!
//! Nothing that happens in one part has an effect in another one before the lookahead has passed, which the delays of the
//! links between them give. So all parts can go on at the same time from the earliest happening in any of them, and exchange
//! mail before the lookahead is over (R. M. Fujimoto, Parallel discrete event simulation, Communications of the ACM 33, 1990:
//! conservative, synchronous). They do so in windows of half the lookahead, and take the mail of the window before the last
//! one: so none waits for the others to end the window that it has just ended itself.
//!
//! The record does not depend on the number of parts. What happens in different parts at one time does not depend on each
//! other; what comes from another part has its place among what happens at that time by its own time and sender. The few
//! things that need more than one part knows, such as a run in which nothing moves any more, make the parts give up, and
//! the whole is simulated in one.

mod meeting;

use crate::{
    Packets, SimulateError,
    arrivals::mean_size,
    border::{self, Border, Mail, Partition},
    simulation::{Observe, Progress, Simulation},
    trace::Trace,
};
use evb_core::Time;
use evb_experiment::Plan;
use evb_fabric::Network;
use evb_protocol::Shaping;
use meeting::{Attendance, Meeting};
use std::{
    array,
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
};

/// Windows between two looks at the progress.
const STRIDE: u64 = 1 << 10;

/// Fewest fragments, or parts of them in packets, that all hosts together send from one meeting to the next, for which the
/// parts are worth their meetings.
const FEWEST: f64 = 4.0;

/// Packets of a message from which on it is simulated faster as a train, in one part.
const TRAIN: f64 = 4.0;

/// Simulates a plan in at most so many parts. There is no simulation if that does not pay, if the plan has no parts, or if
/// they gave up.
///
/// # Errors
/// As for a simulation in one part.
pub(crate) fn run<'a>(
    plan: &'a Plan,
    most: NonZeroUsize,
    observe: &mut Observe<'_>,
) -> Result<Option<Simulation<'a>>, SimulateError> {
    match divide(plan, most)? {
        Some((network, partition)) if pays(plan, &network, &partition) => in_parts(plan, &network, &partition, observe),
        _ => Ok(None),
    }
}

/// The network of a plan and its parts, at most so many; none if it has no two parts.
pub(crate) fn divide(plan: &Plan, most: NonZeroUsize) -> Result<Option<(Network, Arc<Partition>)>, SimulateError> {
    if most.get() < 2 || !border::may_part(plan) {
        return Ok(None);
    }
    let network = Network::build(&plan.network.config)?;
    let partition = Partition::of(plan, &network, most.get());
    Ok(partition.map(|partition| (network, Arc::new(partition))))
}

/// True if the parts have enough to do between two meetings, and messages are not so long that trains are faster.
fn pays(plan: &Plan, network: &Network, partition: &Partition) -> bool {
    let (link, nic) = (&network.config.link, &network.config.nic);
    let (fragment, packet) = (mean_size(plan, 0), nic.packet.0 as f64);
    let message = match plan.building.shaping {
        Shaping::BarrelShifter { bucket, .. } => bucket.0 as f64,
        _ => fragment,
    };
    let seconds = fragment.min(packet) / link.rate.as_bytes_per_second();
    let between_meetings = network.hosts() as f64 * partition.lookahead.as_secs_f64() / seconds;
    message / packet < TRAIN && between_meetings >= FEWEST
}

/// Simulates the parts of a plan. There is no simulation if they gave up.
pub(crate) fn in_parts<'a>(
    plan: &'a Plan,
    network: &Network,
    partition: &Arc<Partition>,
    observe: &mut Observe<'_>,
) -> Result<Option<Simulation<'a>>, SimulateError> {
    let part = |index| {
        let border = Border::new(partition.clone(), index);
        Simulation::of_part(plan, network.clone(), Trace::new(None), Packets::OneByOne, border)
    };
    let first = part(0)?;
    if !first.net.is_steady() {
        return Ok(None);
    }
    let others = (1..partition.parts).map(part).collect::<Result<_, _>>()?;
    Ok(Table::new(partition).run(first, others, observe))
}

/// The table at which the parts meet.
struct Table<'a> {
    partition: &'a Partition,
    meeting: Meeting,
    /// Sides, used in turn, one for each window.
    sides: [Side; SIDES],
    /// Links taken by the packets in each part, from time to time.
    hops: Vec<AtomicU64>,
}

/// What the parts lay down after a window.
struct Side {
    /// Notices of the parts.
    notices: Vec<Notice>,
    /// Mail, by the part that it comes from and then by that for which it is.
    mail: Vec<Vec<MailBox>>,
    /// Time up to which the other parts may go when the first one has gone first.
    goes_until: AtomicU64,
}

/// What one part has to say to all, on cache lines of its own (two, because of the adjacent-line prefetcher).
#[derive(Default)]
#[repr(align(128))]
struct Notice {
    /// Time of its next happening, or of the first effect of its mail that nobody has taken.
    next: AtomicU64,
    /// Events that this mail ends.
    ends: AtomicU64,
    gives_up: AtomicBool,
    /// Events that no control message on its way in this part ends; only the first part knows, and what follows, too.
    stay_open: AtomicU64,
    has_ended: AtomicBool,
    is_interrupted: AtomicBool,
}

/// Mail from one part to another.
#[derive(Default)]
#[repr(align(128))]
struct MailBox(Mutex<Mail>);

/// The windows of time of a simulation in parts, in picoseconds.
///
/// The mail of a window is taken two windows later. So a part does not wait for the others to do what it has just done, but
/// only what it did before, and works while they catch up.
struct Windows {
    lookahead: u64,
    /// The ends of the last window and of the one before it.
    last: u64,
    before: u64,
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

/// Number of sides. While one part takes the mail of a window, another may lay down that of three windows later.
const SIDES: usize = 4;

/// No time.
const NEVER: u64 = u64::MAX;

/// The end of the work of a part, the same for all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Ended,
    Interrupted,
    GaveUp,
}

/// Looks at a part now and then; returns true to go on.
type Watch<'a> = dyn FnMut(&Simulation<'_>) -> bool + 'a;

impl<'a> Table<'a> {
    fn new(partition: &'a Partition) -> Self {
        let parts = partition.parts;
        let side = || Side {
            notices: (0..parts).map(|_| Notice::default()).collect(),
            mail: (0..parts).map(|_| (0..parts).map(|_| MailBox::default()).collect()).collect(),
            goes_until: AtomicU64::new(NEVER),
        };
        let hops = (0..parts).map(|_| AtomicU64::new(0)).collect();
        Self { partition, meeting: Meeting::new(parts), sides: array::from_fn(|_| side()), hops }
    }

    /// Simulates all parts, the first of them in this thread, and joins them. There is no simulation if they gave up, or if
    /// the system gives no more threads.
    fn run<'b>(
        &self,
        mut first: Simulation<'b>,
        others: Vec<Simulation<'b>>,
        observe: &mut Observe<'_>,
    ) -> Option<Simulation<'b>> {
        let (end, mut others) = thread::scope(|scope| {
            let start = |index| {
                // A thread begins when it gets its part: when all have been started.
                let (give, take) = mpsc::channel();
                let work = move || Some(self.work_elsewhere(index, take.recv().ok()?));
                Some((give, thread::Builder::new().spawn_scoped(scope, work).ok()?))
            };
            let threads = (1..=others.len()).map(start).collect::<Option<Vec<_>>>()?;
            for ((give, _), part) in threads.iter().zip(others) {
                give.send(part).ok()?;
            }
            let mut watch = |part: &Simulation<'_>| {
                let elsewhere: u64 = self.hops.iter().map(|hops| hops.load(Relaxed)).sum();
                let here = part.progress();
                observe(&Progress { packet_hops: here.packet_hops + elsewhere, ..here })
            };
            let end = self.work(0, &mut first, &mut watch);
            let others = threads.into_iter().map(|(_, thread)| thread.join().expect("no part panics"));
            Some((end, others.collect::<Option<Vec<_>>>()?))
        })?;
        match end {
            End::GaveUp => return None,
            End::Interrupted => first.interrupt(),
            End::Ended => {}
        }
        let now = others.iter().map(Simulation::now).fold(first.now(), Time::max);
        others.iter().for_each(|part| first.tally.hear_last(&part.tally));
        let end = first.tally.ends_at(now.0);
        first.end_part(end);
        others.iter_mut().for_each(|part| part.end_part(end));
        first.join(others, self.partition);
        Some(first)
    }

    /// Simulates a part that is not the first one; returns it.
    fn work_elsewhere<'b>(&self, index: usize, mut part: Simulation<'b>) -> Simulation<'b> {
        let mut tell = |part: &Simulation<'_>| {
            self.hops[index].store(part.net.packet_hops(), Relaxed);
            true
        };
        self.work(index, &mut part, &mut tell);
        part
    }

    /// Simulates one part to the end.
    fn work(&self, index: usize, part: &mut Simulation<'_>, watch: &mut Watch<'_>) -> End {
        let mut attendance = self.meeting.attend(index);
        part.begin(&mut |_| true);
        let (mut number, mut goes_on) = (0_u64, true);
        let mut windows = Windows { lookahead: self.partition.lookahead.0, last: 0, before: 0 };
        // The beginning counts as a window, and so does one without length after it.
        self.side(number).lay_down(index, part, goes_on);
        attendance.arrive();
        loop {
            number += 1;
            self.side(number).lay_down(index, part, goes_on);
            attendance.arrive();
            attendance.wait_for_last_but_one();
            let side = self.side(number - 1);
            side.take_mail(index, part);
            if let Some(end) = side.end(part) {
                attendance.wait_for_last();
                self.side(number).take_mail(index, part);
                return end;
            }
            let end = windows.next(side.next());
            if side.may_end() {
                self.side(number).run_in_turn(index, part, end, &mut attendance);
            } else {
                part.run_before(end);
                part.must_not_have_ended();
            }
            if number.is_multiple_of(STRIDE) {
                goes_on = watch(part);
            }
        }
    }

    /// The side of a window.
    fn side(&self, window: u64) -> &Side {
        &self.sides[window as usize % SIDES]
    }
}

impl Side {
    /// Lays down what a part has for the others.
    fn lay_down(&self, index: usize, part: &mut Simulation<'_>, goes_on: bool) {
        for (to, mail) in self.mail[index].iter().enumerate().filter(|(to, _)| *to != index) {
            part.hand_out(to, &mut mail.0.lock().unwrap_or_else(PoisonError::into_inner));
        }
        let (notice, effects) = (&self.notices[index], part.next_effects());
        notice.next.store(effects.first.map_or(NEVER, |time| time.0), Relaxed);
        notice.ends.store(effects.ends, Relaxed);
        notice.gives_up.store(part.gives_up(), Relaxed);
        if index == 0 {
            notice.stay_open.store(part.stays_open(), Relaxed);
            notice.has_ended.store(part.has_ended(), Relaxed);
            notice.is_interrupted.store(!goes_on, Relaxed);
        }
    }

    /// The time of the next happening in any part.
    fn next(&self) -> u64 {
        self.notices.iter().map(|notice| notice.next.load(Relaxed)).min().unwrap_or(NEVER)
    }

    /// The end of the simulation, if it is over.
    fn end(&self, part: &Simulation<'_>) -> Option<End> {
        let first = &self.notices[0];
        // A part that gives up has not handled all, also when everything is over.
        if self.notices.iter().any(|notice| notice.gives_up.load(Relaxed)) {
            Some(End::GaveUp)
        } else if first.has_ended.load(Relaxed) {
            Some(End::Ended)
        } else if self.next() == NEVER {
            Some(if part.ends_in_silence() { End::Ended } else { End::GaveUp })
        } else {
            first.is_interrupted.load(Relaxed).then_some(End::Interrupted)
        }
    }

    /// Handles what happens before `end`, or up to the time at which the simulation is over, which the first part finds
    /// out before the others go on.
    fn run_in_turn(&self, index: usize, part: &mut Simulation<'_>, end: Time, attendance: &mut Attendance<'_>) {
        if index == 0 {
            part.run_before(end);
            let until = if part.has_ended() { Time(part.now().0 + 1) } else { end };
            self.goes_until.store(until.0, Relaxed);
        }
        attendance.meet();
        if index != 0 {
            part.run_before(Time(self.goes_until.load(Relaxed)));
        }
    }

    /// True if all events may have ended before more mail is taken.
    fn may_end(&self) -> bool {
        let stay_open = self.notices[0].stay_open.load(Relaxed);
        stay_open <= self.notices.iter().map(|notice| notice.ends.load(Relaxed)).sum()
    }

    /// Takes the mail for a part.
    fn take_mail(&self, index: usize, part: &mut Simulation<'_>) {
        for (from, boxes) in self.mail.iter().enumerate().filter(|(from, _)| *from != index) {
            part.take_mail(from, &mut boxes[index].0.lock().unwrap_or_else(PoisonError::into_inner));
        }
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
