//! One simulation on several cores: each has a part of the network, with some switches and the hosts on them.
//!
//! Nothing that happens in one part has an effect in another one before the lookahead has passed, which the delays of the
//! links between them give. So all parts can go on at the same time from the earliest happening in any of them up to the
//! lookahead after it; then they exchange mail (R. M. Fujimoto, Parallel discrete event simulation, Communications of the
//! ACM 33, 1990: conservative, synchronous).
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
use meeting::Meeting;
use std::{
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
    /// Two sides, used in turn: while the mail on one is taken, the other is filled.
    sides: [Side; 2],
    /// Time up to which the other parts may go when the first one has gone first.
    goes_until: AtomicU64,
    /// Links taken by the packets in each part, from time to time.
    hops: Vec<AtomicU64>,
}

/// What the parts lay down before a meeting.
struct Side {
    /// Mail, by the part that it comes from and then by that for which it is.
    mail: Vec<Vec<Mutex<Vec<Mail>>>>,
    /// The next effect of each part.
    next: Vec<AtomicU64>,
    /// Events that end by the mail of each part.
    ends: Vec<AtomicU64>,
    /// Events that no control message on its way in the first part ends.
    stay_open: AtomicU64,
    has_ended: AtomicBool,
    gives_up: AtomicBool,
    is_interrupted: AtomicBool,
}

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
        let times = |time| (0..parts).map(|_| AtomicU64::new(time)).collect();
        let side = || Side {
            mail: (0..parts).map(|_| (0..parts).map(|_| Mutex::default()).collect()).collect(),
            next: times(NEVER),
            ends: times(0),
            stay_open: AtomicU64::new(NEVER),
            has_ended: AtomicBool::new(false),
            gives_up: AtomicBool::new(false),
            is_interrupted: AtomicBool::new(false),
        };
        Self {
            partition,
            meeting: Meeting::new(parts),
            sides: [side(), side()],
            goes_until: AtomicU64::new(NEVER),
            hops: times(0),
        }
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
        let _panics_are_told = self.meeting.attend();
        part.begin(&mut |_| true);
        let (mut windows, mut goes_on) = (0_u64, true);
        loop {
            let side = &self.sides[windows as usize % 2];
            side.lay_down(index, part, goes_on);
            self.meeting.meet();
            side.take_mail(index, part);
            let start = side.next.iter().map(|next| next.load(Relaxed)).min().unwrap_or(NEVER);
            // A part that gives up has not handled all, also when everything is over.
            if side.gives_up.load(Relaxed) {
                return End::GaveUp;
            } else if side.has_ended.load(Relaxed) {
                return End::Ended;
            } else if start == NEVER {
                return if part.ends_in_silence() { End::Ended } else { End::GaveUp };
            } else if side.is_interrupted.load(Relaxed) {
                return End::Interrupted;
            }
            let end = Time(start.saturating_add(self.partition.lookahead.0));
            if side.may_end() {
                self.run_in_turn(index, part, end);
            } else {
                part.run_before(end);
                part.must_not_have_ended();
            }
            windows += 1;
            if windows.is_multiple_of(STRIDE) {
                goes_on = watch(part);
            }
        }
    }

    /// Handles what happens before `end`, or up to the time at which the simulation is over, which the first part finds
    /// out before the others go on.
    fn run_in_turn(&self, index: usize, part: &mut Simulation<'_>, end: Time) {
        if index == 0 {
            part.run_before(end);
            let until = if part.has_ended() { Time(part.now().0 + 1) } else { end };
            self.goes_until.store(until.0, Relaxed);
        }
        self.meeting.meet();
        if index != 0 {
            part.run_before(Time(self.goes_until.load(Relaxed)));
        }
    }
}

impl Side {
    /// Lays down what a part has for the others.
    fn lay_down(&self, index: usize, part: &mut Simulation<'_>, goes_on: bool) {
        for (to, mail) in self.mail[index].iter().enumerate().filter(|(to, _)| *to != index) {
            part.hand_out(to, &mut mail.lock().unwrap_or_else(PoisonError::into_inner));
        }
        self.next[index].store(part.next_effect().map_or(NEVER, |time| time.0), Relaxed);
        self.ends[index].store(part.take_ends(), Relaxed);
        if part.gives_up() {
            self.gives_up.store(true, Relaxed);
        }
        if index == 0 {
            self.stay_open.store(part.stays_open(), Relaxed);
            self.has_ended.store(part.has_ended(), Relaxed);
            self.is_interrupted.store(!goes_on, Relaxed);
        }
    }

    /// True if all events may have ended at the next meeting.
    fn may_end(&self) -> bool {
        let stay_open = self.stay_open.load(Relaxed);
        stay_open <= self.ends.iter().map(|ends| ends.load(Relaxed)).sum()
    }

    /// Takes the mail for a part.
    fn take_mail(&self, index: usize, part: &mut Simulation<'_>) {
        for (from, boxes) in self.mail.iter().enumerate().filter(|(from, _)| *from != index) {
            let mut mail = boxes[index].lock().unwrap_or_else(PoisonError::into_inner);
            mail.drain(..).for_each(|mail| part.take_mail(from, mail));
        }
    }
}
