//! The builder unit: its machine, the check of every payload, the decision after a first phase, and the storage.

use crate::{
    BuilderReport, OpenCounts, Payload, Selector, Sizes, WorkDone, meter::Meter, monitor::Monitor, shaping::Turns,
    split::Splitter,
};
use evb_core::{EventId, Machine, NodeId, NodeRange, Time, Transmit};
use evb_experiment::Plan;
use evb_filter::{Answer, Question, Route, StreamId};
use evb_protocol::{
    BlockSize, BuilderCommand, BuilderCounts, BuilderEvent, BuilderMachine, Built, Config, Fault, Fragment,
    FragmentStatus, Message, Protocol,
};
use std::collections::VecDeque;

/// Where a builder puts its events.
pub trait Store<B> {
    /// Takes an event to be stored in its streams; returns it if it needs no storing, or is stored already. Others
    /// the driver returns to the machine.
    fn store(&mut self, now: Time, route: Route, built: Built<B>) -> Option<Built<B>>;

    /// True if an event of this stream is kept, and so needs its fragments.
    fn keeps(&self, stream: StreamId, event: EventId, complete: bool) -> bool;

    /// Takes an event about which the filter units are to decide. The driver passes their answer to
    /// [`BuilderUnit::answer`].
    fn ask(&mut self, now: Time, question: Question<B>);

    /// Returns true if nothing is stored for now: the node was away for long, and may have been given up.
    fn is_held(&self) -> bool {
        false
    }

    /// Continues with everything that was held: the builder was not given up.
    fn release(&mut self) {}

    /// Stores nothing any more: the builder was given up.
    fn fence(&mut self) {}
}

/// A builder unit with its storage.
pub struct BuilderUnit<B, S> {
    /// The machine.
    pub machine: BuilderMachine<B>,
    /// Where events are stored.
    pub storage: S,
    selector: Selector,
    /// Bundles of the readout units, or `None` if each fragment comes alone.
    splitter: Option<Splitter<B>>,
    readout_nodes: NodeRange,
    /// Sizes of blocks that are passed on to the readout units.
    block_sizes: VecDeque<BlockSize>,
    max_fragment: u32,
    /// It has asked whether its peers have given it up, and does not know yet.
    is_asking: bool,
    /// The turns of the readout units, when they send by credits.
    turns: Option<Turns>,
    /// Buckets of rounds that have come, for the event manager: the round, and true for an empty one.
    taken: VecDeque<(u64, bool)>,
    meter: Meter,
    sizes: Sizes,
    /// Payload bytes of complete events, and of first phases by which events were decided.
    useful_bytes: u64,
    /// Events are decided after a first phase.
    decides: bool,
    sample: Sample<B>,
    /// The histograms that it fills, if there are any.
    monitor: Option<Box<Monitor>>,
    /// The counts of the machine at the end of the run before, if this one followed it without a stop.
    before: BuilderCounts,
    /// Number of mismatches that earlier runs have reported.
    reported: usize,
}

/// An event for those who monitor the run.
enum Sample<B> {
    /// None is wanted.
    Unwanted,
    /// The next event is wanted.
    Wanted,
    /// A copy of an event; its payloads are shared.
    Taken(Box<Built<B>>),
}

impl<B: Payload, S: Store<B>> BuilderUnit<B, S> {
    /// The builder unit with this index.
    pub fn new(plan: &Plan, index: u16, storage: S) -> Self {
        Self {
            turns: Turns::new(&plan.building, index),
            machine: BuilderMachine::new(plan.building.clone(), index),
            storage,
            selector: Selector::new(plan.filter.clone()),
            splitter: Splitter::new(plan),
            readout_nodes: plan.building.readout_nodes(),
            block_sizes: VecDeque::new(),
            max_fragment: u32::try_from(plan.building.max_fragment.0).unwrap_or(u32::MAX),
            is_asking: false,
            taken: VecDeque::new(),
            meter: Meter::default(),
            sizes: Sizes::default(),
            useful_bytes: 0,
            decides: matches!(plan.building.protocol, Protocol::Phased { rest: true, .. }),
            sample: Sample::Unwanted,
            monitor: Monitor::new(plan),
            before: BuilderCounts::default(),
            reported: 0,
        }
    }

    /// Begins.
    pub fn start(&mut self, now: Time) {
        self.meter.start(now, &[0, 0]);
        self.machine.handle_command(now, BuilderCommand::Start);
        if let Some(turns) = &mut self.turns {
            turns.start(now);
        }
    }

    /// Marks the time in what it counts. To be called before anything is counted that happens now.
    #[inline]
    pub fn pass(&mut self, now: Time) {
        let (counts, before, splitter) = (self.machine.counts(), &self.before, &self.splitter);
        self.meter.pass(now, || {
            let fragments = || counts.fragments - before.fragments;
            [counts.bytes - before.bytes, splitter.as_ref().map_or_else(fragments, Splitter::fragments)]
        });
    }

    /// Fragments that have come and their bytes. Of those in bundles the fragments count when the bundle is split.
    pub fn work_done(&self) -> WorkDone {
        let counts = self.machine.counts();
        let fragments = self.splitter.as_ref().map_or(counts.fragments, Splitter::fragments);
        WorkDone { blocks: counts.fragments, fragments, bytes: counts.bytes }
    }

    /// Takes in a message; a fragment after a look at every byte of it.
    #[inline]
    pub fn handle_message(&mut self, now: Time, from: NodeId, message: Message<B>) {
        let late = self.late_bundles();
        let of_block = match &message {
            Message::Fragment(fragment) => fragment.event,
            _ => EventId(0),
        };
        match message {
            Message::BlockSize(size) => self.change_blocks(size),
            Message::Fragment(fragment) if !self.is_as_sent(&fragment) => self.receive_bad(now, from, fragment),
            Message::Slot { empty, round: 0 } => self.turns.iter_mut().for_each(|turns| turns.taken(now, from, empty)),
            Message::Slot { empty, round } => self.taken.push_back((round, empty)),
            message => self.machine.handle_message(now, from, message),
        }
        if self.late_bundles() > late
            && let Some(splitter) = &mut self.splitter
        {
            splitter.count_late(from.0.wrapping_sub(self.readout_nodes.first.0), of_block);
        }
    }

    /// Takes the number of events in a block, from a block on, and passes it on before any request for them.
    fn change_blocks(&mut self, size: BlockSize) {
        self.block_sizes.push_back(size);
        if let Some(splitter) = &mut self.splitter {
            splitter.change_blocks(size);
        }
    }

    /// Number of bundles that came too late, or `None` without bundles.
    #[inline]
    fn late_bundles(&self) -> Option<u64> {
        self.splitter.as_ref().map(|_| self.machine.counts().faults.get(Fault::Late))
    }

    /// True when a fragment has its bytes and no more than allowed.
    #[inline]
    fn is_as_sent(&mut self, fragment: &Fragment<B>) -> bool {
        B::length(fragment) <= self.max_fragment
            && match &mut self.splitter {
                Some(splitter) => splitter.is_as_sent(fragment),
                None => B::checksum(fragment) == fragment.checksum,
            }
    }

    #[cold]
    fn receive_bad(&mut self, now: Time, from: NodeId, mut fragment: Fragment<B>) {
        if B::length(&fragment) > self.max_fragment {
            B::resize(&mut fragment, self.max_fragment);
            fragment.status = FragmentStatus::Oversized;
        }
        let found = B::checksum(&fragment);
        if found == fragment.checksum {
            return self.machine.handle_message(now, from, Message::Fragment(fragment));
        }
        // Should no better copy come, the file keeps the bytes as they are, and a checksum that fits them.
        fragment.checksum = found;
        self.machine.handle_command(now, BuilderCommand::Damaged { from, fragment });
    }

    /// Does what the machine wants; true when there was something. A decision takes no time.
    #[inline]
    pub fn handle_events(&mut self, now: Time) -> bool {
        let mut moved = false;
        while let Some(event) = self.machine.poll_event() {
            let answer = match event {
                BuilderEvent::Built(built) => {
                    self.take_built(now, built);
                    None
                }
                BuilderEvent::Decide { event, complete } => {
                    if complete {
                        self.useful_bytes += bytes_of(self.machine.fragments(event).iter().flatten());
                    }
                    match &mut self.splitter {
                        Some(splitter) => {
                            let accepted = splitter.decide(event, complete);
                            Some(BuilderCommand::Decided { event, accepted })
                        }
                        None => {
                            let (asked, fragments) = (self.machine.first_phase(event), self.machine.fragments(event));
                            self.selector.take_phase(&mut self.storage, now, (event, complete), asked, fragments)
                        }
                    }
                }
                BuilderEvent::Confirmed => {
                    self.is_asking = false;
                    self.storage.release();
                    continue;
                }
                BuilderEvent::Fenced => {
                    self.storage.fence();
                    continue;
                }
                BuilderEvent::Orphaned => continue,
            };
            moved = true;
            if let Some(answer) = answer {
                self.machine.handle_command(now, answer);
            }
        }
        moved
    }

    /// Takes note that a node is gone.
    pub fn lose(&mut self, now: Time, node: NodeId) {
        self.machine.handle_command(now, BuilderCommand::Lost(node));
        if let Some(turns) = &mut self.turns {
            turns.lose(now, node);
        }
    }

    /// The next message to send.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<Transmit<Message<B>>> {
        if let Some(size) = self.block_sizes.pop_front() {
            return Some(Transmit { to: self.readout_nodes, message: Message::BlockSize(size) });
        }
        if let Some((unit, calm)) = self.turns.as_mut().and_then(Turns::poll) {
            return Some(Transmit { to: unit.into(), message: Message::Credit { calm } });
        }
        if let Some((round, empty)) = self.taken.pop_front() {
            let message = Message::Taken { round, empty };
            return Some(Transmit { to: Config::EVENT_MANAGER.into(), message });
        }
        self.machine.poll_transmit()
    }

    /// Takes note that a [`deadline`](Self::deadline) has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        self.machine.handle_timeout(now);
        if let Some(turns) = &mut self.turns {
            turns.handle_timeout(now);
        }
    }

    /// The time at which [`handle_timeout`](Self::handle_timeout) must be called next.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        let machine = self.machine.poll_timeout().map(|(at, _)| at);
        let turns = self.turns.as_ref().and_then(Turns::deadline);
        machine.into_iter().chain(turns).min()
    }

    /// Decides about what the machine has built: one event, or the events of a bundle.
    #[inline]
    fn take_built(&mut self, now: Time, built: Built<B>) {
        let useful = self.bytes_of_second_phase(&built);
        let Some(splitter) = &mut self.splitter else {
            self.useful_bytes += if built.complete { useful } else { 0 };
            self.count_sizes(&built);
            self.sample.offer(&built);
            if let Some(monitor) = &mut self.monitor {
                monitor.fill(&built);
            }
            let ended = self.selector.take_built(&mut self.storage, now, built);
            return ended.into_iter().for_each(|ended| self.end(now, ended));
        };
        let (selector, storage, monitor) = (&mut self.selector, &self.storage, self.monitor.as_deref());
        let mut samples = matches!(self.sample, Sample::Wanted);
        let (events, ended) = splitter.split(built, |event, complete| {
            let is_seen = std::mem::take(&mut samples) || monitor.is_some_and(|monitor| monitor.wants(event));
            selector.foresee(storage, event, complete, is_seen)
        });
        self.useful_bytes += splitter.complete_part(useful);
        for event in events {
            self.sample.offer(&event);
            if let Some(monitor) = &mut self.monitor {
                monitor.fill(&event);
            }
            let ended = self.selector.take_built(&mut self.storage, now, event);
            ended.into_iter().for_each(|ended| self.end(now, ended));
        }
        if let Some(block) = ended {
            self.machine.handle_command(now, BuilderCommand::Stored(block));
        }
    }

    /// Payload bytes of an event; those of its first phase were counted when it was decided.
    #[inline]
    fn bytes_of_second_phase(&self, built: &Built<B>) -> u64 {
        let fragments = built.fragments.iter().enumerate();
        if !self.decides {
            return bytes_of(built.fragments.iter().flatten());
        }
        let first = self.machine.first_phase(built.event);
        bytes_of(fragments.filter(|(source, _)| !first.contains(*source)).filter_map(|(_, fragment)| fragment.as_ref()))
    }

    /// Counts the sizes of an event and of its fragments. Where fragments come in bundles the splitter does.
    #[inline]
    fn count_sizes(&mut self, built: &Built<B>) {
        let mut all = 0;
        for length in built.fragments.iter().flatten().map(|fragment| u64::from(fragment.length)) {
            self.sizes.fragments.count(length);
            all += length;
        }
        self.sizes.events.count(all);
    }

    /// Tells the machine the end of an event; that of a bundle when all its events have ended.
    fn end(&mut self, now: Time, ended: BuilderCommand<B>) {
        let command = match (ended, &mut self.splitter) {
            (BuilderCommand::Stored(event), Some(splitter)) => splitter.stored(event).map(BuilderCommand::Stored),
            (BuilderCommand::Rejected(event), Some(splitter)) => splitter.rejected(event).map(BuilderCommand::Stored),
            (command, _) => Some(command),
        };
        if let Some(command) = command {
            self.machine.handle_command(now, command);
        }
    }

    /// Takes an event that the storage has kept and stored now.
    pub fn stored(&mut self, now: Time, event: Built<B>) {
        self.end(now, BuilderCommand::Stored(event));
    }

    /// Takes the decision of the filter units about an event.
    pub fn answer(&mut self, now: Time, answer: Answer<B>) {
        if let Some(ended) = self.selector.take_answer(&mut self.storage, now, answer) {
            self.end(now, ended);
        }
    }

    /// Asks whether it is still one of the run, when its storage is held for that.
    pub fn look_at_standing(&mut self, now: Time) {
        if !self.is_asking && self.storage.is_held() {
            self.is_asking = true;
            self.machine.handle_command(now, BuilderCommand::Away);
        }
    }

    /// Wants a copy of the next event.
    pub fn want_sample(&mut self) {
        if let Sample::Unwanted = self.sample {
            self.sample = Sample::Wanted;
        }
    }

    /// The event that was wanted, if it has come.
    #[inline]
    pub fn take_sample(&mut self) -> Option<Built<B>> {
        let Sample::Taken(_) = self.sample else { return None };
        match std::mem::replace(&mut self.sample, Sample::Unwanted) {
            Sample::Taken(built) => Some(*built),
            Sample::Unwanted | Sample::Wanted => None,
        }
    }

    /// Begins the account of the next run, with another storage. The machine continues. All events must have ended.
    pub fn next_run(&mut self, now: Time, storage: S) {
        self.before = *self.machine.counts();
        self.machine.reset_source_faults();
        self.reported = self.machine.mismatches().len();
        self.storage = storage;
        self.sizes = Sizes::default();
        self.useful_bytes = 0;
        self.selector.next_run();
        if let Some(monitor) = &mut self.monitor {
            monitor.next_run();
        }
        if let Some(splitter) = &mut self.splitter {
            splitter.next_run();
        }
        self.meter.start(now, &[0, 0]);
    }

    /// The present report. The driver adds what is stored.
    pub fn report(&self, now: Time) -> BuilderReport {
        let counts = self.machine.counts().since(&self.before);
        let fragments = self.splitter.as_ref().map_or(counts.fragments, Splitter::fragments);
        let series = self.meter.series(now, &[counts.bytes, fragments]);
        let filter = self.selector.filtering().map(Box::new);
        let (building, storing) = self.machine.open_events();
        let open = OpenCounts { building, storing, lacking: self.machine.lacking() };
        let sizes = self.splitter.as_ref().map_or(&self.sizes, Splitter::sizes).clone();
        let histograms = self.monitor.as_ref().map(|monitor| monitor.histograms()).unwrap_or_default();
        let mut report = BuilderReport {
            histograms,
            series,
            filter,
            open,
            sizes,
            ..BuilderReport::of(&counts, &self.machine.mismatches()[self.reported..])
        };
        report.counts.useful_bytes = self.useful_bytes;
        report.sources = match &self.splitter {
            Some(splitter) => splitter.report(&mut report.counts, &mut report.faults),
            None => {
                self.machine.source_faults().map(|(source, counts)| (source.0, crate::report::faults(counts))).collect()
            }
        };
        report
    }
}

/// Payload bytes of fragments.
#[inline]
fn bytes_of<'a, B: 'a>(fragments: impl Iterator<Item = &'a Fragment<B>>) -> u64 {
    fragments.map(|fragment| u64::from(fragment.length)).sum()
}

impl<B: Clone> Sample<B> {
    /// Takes a copy of an event, if one is wanted.
    #[inline]
    fn offer(&mut self, built: &Built<B>) {
        if let Self::Wanted = self {
            *self = Self::Taken(Box::new(built.clone()));
        }
    }
}
