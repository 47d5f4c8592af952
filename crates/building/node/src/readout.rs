//! A readout unit as a node: the unit and the bytes of its fragments.

use crate::control::{Notice, Order};
use crate::error::NodeError;
use crate::node::NodeRole;
use crate::pool::Pool;
use crate::run_info::RunStart;
use apart::{ApartOptions, ApartStream};
use bytes::Bytes;
use evb_core::{EventCounter, Machine, NodeId, NodeRange, SourceId, Span, Time, Transmit};
use evb_events::ApartReason;
use evb_experiment::{Plan, StageLink};
use evb_protocol::{Arrival, Config, Fault, FragmentStatus, Message, ReadoutCommand, wire};
use evb_record::{Slots, SourceRecord};
use evb_sources::{
    DatagramBuffer, Framing, FrontEndLink, HitFault, INLET_BITS, LiveItem, LiveSource, LiveSpec, SharedLinks, Source,
    SourceSpec,
};
use evb_transport::{Buffers, Waker};
use evb_unit::{
    ReadLimits, Report, Sources, bundle, open_options,
    shaping::{self, Shaper, Slot},
};
use findings::Refusals;
use front_end::FrontEnd;
pub(crate) use input::source_error;
use input::{Input, Origin};
use source_watch::SourceWatch;
use std::{collections::VecDeque, time::Duration};

mod apart;
mod findings;
mod front_end;
mod input;
mod source_watch;

pub(crate) struct ReadoutNode {
    unit: evb_unit::ReadoutUnit<Bytes, Input>,
    /// Its live source brings bundles: the super-fragments of a first stage.
    brings_bundles: bool,
    /// The event counter of its live front end.
    counter: Option<EventCounter>,
    /// The framing of its live front end, if it is not evb's own.
    framing: Option<Framing>,
    /// The source ids of all sources that share the link of its live front end, if it is shared.
    shared: Vec<u64>,
    /// Its live source is a file of EUDAQ.
    is_eudaq: bool,
    /// Number of sources that number their fragments by themselves.
    numbered: usize,
    /// The fragments of live sources are matched by time.
    is_timed: bool,
    /// The fragments of its live source are slices of hits.
    is_sliced: bool,
    /// The file of fragments that belong to no event.
    apart: ApartStream,
    apart_options: ApartOptions,
    refusals: Refusals,
    /// Datagrams that this host had lost at the start of the run.
    lost_before: u64,
    /// Time for which its source had held up its link at the start of the run.
    held_up_before: Duration,
    /// The control connection of its live front end, if that hears run control.
    front_end: Option<FrontEnd>,
    /// The state of its live source.
    watch: SourceWatch,
    /// Number of fragments that a live front end claims to have sent.
    announced: Option<u32>,
    /// The order of the fragments on their way out, when they go in slots.
    shaper: Option<Shaper<Message<Bytes>>>,
    first_builder: NodeId,
    /// Messages that a fault holds back, each with its time of release.
    held_back: VecDeque<(Time, Transmit<Message<Bytes>>)>,
    deadline: Option<Time>,
    /// The time slots of the runs before, if this one followed them without a stop.
    slots_before: Slots,
}

impl ReadoutNode {
    /// Opens the sources of one readout unit.
    pub(crate) fn open(
        plan: &Plan,
        (text, run): (&str, &RunStart),
        unit: SourceId,
        node: NodeId,
        (waker, buffers): (Waker, Option<Buffers>),
        links: Option<&SharedLinks>,
    ) -> Result<Self, NodeError> {
        let (mut live_counter, mut framing, mut control, mut is_sliced) = (None, None, None, false);
        let (mut is_eudaq, mut shared) = (false, Vec::new());
        let sources = Sources::open(plan, unit.0, |source| {
            if let StageLink::Inlets(paths) = &plan.link {
                live_counter = Some(EventCounter::new(INLET_BITS));
                let inlet = LiveSource::inlet(&paths[source.index()], &open_options(plan, source), waker.clone());
                let origin = Origin::Live(inlet.map_err(|error| source_error(unit, &error))?);
                return Ok(Input::new(origin, Pool::new(None)));
            }
            let (spec, options) = (plan.source(source), open_options(plan, source));
            let origin = match spec {
                SourceSpec::Live(live) => {
                    live_counter = Some(live.counter);
                    framing.clone_from(&live.framing);
                    is_eudaq = matches!(live.link, FrontEndLink::Eudaq { .. });
                    control.clone_from(&live.control);
                    is_sliced = live.slices.is_some();
                    shared.clone_from(&live.shared);
                    match links {
                        Some(links) => links.start(live, &options, waker.clone()).map(Origin::Live),
                        None if live.shared.is_empty() => {
                            LiveSource::start(live, &options, waker.clone()).map(Origin::Live)
                        }
                        None => return Err(needs_threads(unit, live)),
                    }
                }
                _ => Source::open(spec, &options).map(Origin::OnDemand),
            };
            let origin = origin.map_err(|error| source_error(unit, &error))?;
            Ok::<_, NodeError>(Input::new(origin, Pool::new(buffers.clone())))
        })?;
        let front_end = control.map(|control| FrontEnd::open(&control, unit, &run.info, waker)).transpose()?;
        let (apart_options, is_timed) = (ApartOptions::new(plan, text, unit), plan.building.coincidence.is_some());
        Ok(Self {
            apart: ApartStream::new(apart_options.of_run(run), run.clock),
            apart_options,
            unit: evb_unit::ReadoutUnit::new(plan, node, sources, live_counter),
            counter: live_counter,
            framing,
            shared,
            is_eudaq,
            brings_bundles: plan.bundling.bundles(unit.0),
            // A first stage takes care of what its fragments belong to, and clocks do where there are times.
            numbered: if plan.link == StageLink::None && !is_timed && !is_sliced {
                plan.building.numbered.len()
            } else {
                0
            },
            is_timed,
            is_sliced,
            refusals: Refusals::default(),
            front_end,
            lost_before: 0,
            held_up_before: Duration::ZERO,
            watch: SourceWatch::default(),
            announced: None,
            shaper: Shaper::new(&plan.building, unit.0),
            first_builder: plan.building.builder_nodes().first,
            held_back: VecDeque::new(),
            deadline: None,
            slots_before: Slots::default(),
        })
    }

    /// The number of fragments of the source, the number of those that belong to no event, and their source id.
    fn origin(&self) -> (u64, u64, Option<u32>) {
        let counts = self.unit.counts();
        let Some(file) = self.unit.source.only().and_then(Input::recorded) else {
            return (counts.came, counts.apart, None);
        };
        let entries = file.entries();
        let before = self.unit.machine.events_before();
        let outside = |event: Option<u64>| event.is_none_or(|event| event as i64 + before < 1);
        let apart = entries.iter().filter(|entry| outside(entry.event)).count();
        (entries.len() as u64, apart as u64, file.source_id().map(u32::from))
    }

    /// The receive buffer of a front end that sends datagrams, with the losses of this run.
    fn datagram_buffer(&self) -> Option<DatagramBuffer> {
        let Some(Input { origin: Origin::Live(live), .. }) = self.unit.source.only() else { return None };
        let buffer = live.datagram_buffer()?;
        Some(DatagramBuffer { lost: buffer.lost.map(|lost| lost - self.lost_before), ..buffer })
    }

    /// Time of this run for which its source had no room while others of its link had nothing.
    fn held_up(&self) -> Duration {
        match self.unit.source.only() {
            Some(Input { origin: Origin::Live(live), .. }) => live.held_up() - self.held_up_before,
            _ => Duration::ZERO,
        }
    }

    /// The time slots of all runs since its sources were opened.
    fn slots(&self) -> Slots {
        self.shaper.as_ref().map(Shaper::counts).unwrap_or_default()
    }

    /// Takes the fragments that have come from a live front end; returns true if there were any.
    fn take_arrivals(&mut self, now: Time) -> bool {
        let Some(Input { origin: Origin::Live(live), .. }) = self.unit.source.only_mut() else { return false };
        self.watch.look(now, || (live.connections(), self.unit.machine.is_out_of_step()));
        for count in 0..ReadLimits::TURN.fragments {
            // A front end waits while the buffer is full: that is the back-pressure.
            if !self.unit.machine.has_room() {
                return count > 0;
            }
            let (mut item, mut is_quiet) = (live.try_next(), false);
            if item.is_none() && self.is_timed {
                is_quiet = live.is_quiet();
                item = live.try_next();
            }
            let command = match item {
                None => {
                    if is_quiet {
                        self.unit.machine.handle_command(now, ReadoutCommand::Quiet);
                    }
                    return count > 0;
                }
                Some(LiveItem::Fragment { counter, resynchronised, mark, clock, good, bytes }) => {
                    let status = if good { FragmentStatus::Good } else { FragmentStatus::Corrupted };
                    // A silent source has empty slices.
                    if !(self.is_sliced && bytes.is_empty()) {
                        self.watch.note_fragment(now, counter, mark);
                    }
                    ReadoutCommand::Arrived(Arrival {
                        number: counter,
                        restarted: resynchronised,
                        arrived: now,
                        clock,
                        length: bytes.len() as u32,
                        checksum: checksum(&bytes, self.brings_bundles && good),
                        mark,
                        status,
                        payload: bytes,
                    })
                }
                Some(LiveItem::Apart { counter, bytes, reason }) => apart(now, counter, bytes, reason),
                Some(LiveItem::EndOfRun { counter, sent }) => {
                    self.announced = sent.or(self.announced);
                    self.watch.note_end();
                    match self.is_sliced {
                        true => ReadoutCommand::EndOfSlices { last: counter },
                        false => ReadoutCommand::EndOfData { last: counter },
                    }
                }
                Some(LiveItem::Skipped { bytes }) => {
                    self.apart.store(set_apart(now, 0, bytes), ApartReason::Skipped);
                    continue;
                }
                Some(LiveItem::Rejected { kind, count, first }) => {
                    self.refusals.add(kind, count, first);
                    continue;
                }
            };
            self.unit.machine.handle_command(now, command);
        }
        true
    }

    /// Sets the hits of slices apart that are not complete when the last run ends.
    fn abandon_slices(&mut self, now: Time) {
        let Some(Input { origin: Origin::Live(live), .. }) = self.unit.source.only_mut() else { return };
        live.abandon_slices();
        while let Some(item) = live.next_abandoned() {
            if let LiveItem::Apart { counter, bytes, reason } = item {
                self.unit.machine.handle_command(now, apart(now, counter, bytes, reason));
            }
        }
    }

    /// Passes fragments that were set apart to their file.
    fn take_apart(&mut self) {
        self.unit.take_events();
        if self.apart.is_finishing() {
            return;
        }
        if let Some(input) = self.unit.source.only_mut() {
            input.apart.drain(..).for_each(|(arrival, reason)| self.apart.put(arrival, reason));
        }
    }

    /// When a silent source with slices is looked at again.
    fn looks_again_at(&self, now: Time) -> Option<Time> {
        let Some(Input { origin: Origin::Live(live), .. }) = self.unit.source.only() else { return None };
        live.looks_again_after().map(|after| now + Span::from(after))
    }

    /// Hands over what the machine wants to send now, and held-back messages that are due.
    fn hand_over(&mut self, now: Time, mut send: impl FnMut(Transmit<Message<Bytes>>)) {
        while self.held_back.front().is_some_and(|(at, _)| *at <= now) {
            self.held_back.pop_front().into_iter().for_each(|(_, transmit)| send(transmit));
        }
        self.unit.transmit(usize::MAX, |transmit, delay| match delay {
            Span::ZERO => send(transmit),
            delay => self.held_back.push_back((now + delay, transmit)),
        });
    }

    /// Sends messages to builders in their slots, all others at once.
    fn send_in_slots(
        &mut self,
        now: Time,
        shaper: &mut Shaper<Message<Bytes>>,
        send: &mut dyn FnMut(Transmit<Message<Bytes>>) -> bool,
    ) {
        let first = self.first_builder.0;
        let mut has_room = true;
        self.hand_over(now, |Transmit { to, message }| match message.is_data() {
            true => {
                let bytes = wire::length(&message);
                shaper.push(usize::from(to.first.0 - first), message, bytes);
            }
            false => has_room &= send(Transmit { to, message }),
        });
        if shaper.asks_time(now) {
            has_room &=
                send(Transmit { to: Config::EVENT_MANAGER.into(), message: Message::TimeRequest { asked: now } });
        }
        while has_room && let Some(Slot { builder, mut parts, told_after, round }) = shaper.next(now) {
            let to = NodeRange::from(NodeId(first + builder as u16));
            let empty = parts.is_empty();
            let end = shaper.ends_slots().then_some(Message::Slot { empty, round });
            let mut send = |message| has_room &= send(Transmit { to, message });
            parts.drain(..told_after).filter_map(shaping::cut).for_each(&mut send);
            end.into_iter().for_each(&mut send);
            parts.drain(..).filter_map(shaping::cut).for_each(&mut send);
            shaper.reuse(parts);
        }
    }
}

/// A link that sources share is read by one process.
fn needs_threads(unit: SourceId, live: &LiveSpec) -> NodeError {
    let place = live.link.place();
    NodeError::new(format!("readout unit {unit}: other units share its link {place:?}, and are other processes")).hint(
        "let the units be threads of one process: leave out --processes, and [transport] or a transport of threads",
    )
}

/// A hit that is in no slice.
fn apart(now: Time, slice: u64, bytes: Bytes, reason: HitFault) -> ReadoutCommand<Bytes> {
    let reason = match reason {
        HitFault::Late => Fault::Late,
        HitFault::Early => Fault::Early,
        HitFault::OutOfSequence => Fault::OutOfSequence,
        HitFault::OutOfStep => Fault::OutOfStep,
        HitFault::Oversized => Fault::Oversized,
        HitFault::Damaged => Fault::Corrupted,
        HitFault::Unplaced => Fault::Unplaced,
    };
    ReadoutCommand::Apart { arrival: set_apart(now, slice, bytes), reason }
}

/// Bytes that a live source has set apart itself, with a number.
fn set_apart(now: Time, number: u64, bytes: Bytes) -> Arrival<Bytes> {
    Arrival {
        number,
        restarted: false,
        arrived: now,
        clock: None,
        length: bytes.len() as u32,
        checksum: evb_core::checksum(&bytes),
        mark: None,
        status: FragmentStatus::Good,
        payload: bytes,
    }
}

/// The checksum of what a live source has brought.
fn checksum(bytes: &[u8], is_good_bundle: bool) -> u32 {
    let of_index = if is_good_bundle { bundle::checksum_of_index(bytes) } else { None };
    of_index.unwrap_or_else(|| evb_core::checksum(bytes))
}

impl NodeRole for ReadoutNode {
    fn message(&mut self, now: Time, from: NodeId, message: Message<Bytes>) {
        match (message, &mut self.shaper) {
            (Message::Credit { calm }, Some(shaper)) => {
                let builder = from.0.checked_sub(self.first_builder.0);
                builder.into_iter().for_each(|builder| shaper.credit(now, builder.into(), calm));
            }
            (Message::Round { number, calm }, Some(shaper)) => shaper.begin_round(now, number, calm),
            (Message::TimeAnswer { asked, manager }, Some(shaper)) => shaper.set_time(now, asked, manager),
            (message, _) => self.unit.handle_message(now, from, message),
        }
    }

    fn lost(&mut self, now: Time, peer: NodeId) {
        self.unit.machine.handle_command(now, ReadoutCommand::Lost(peer));
        if let (Some(shaper), Some(builder)) = (&mut self.shaper, peer.0.checked_sub(self.first_builder.0)) {
            shaper.lose(builder.into());
        }
    }

    fn order(&mut self, now: Time, order: Order) {
        self.front_end.iter_mut().for_each(|front_end| front_end.order(order));
        if order == Order::Start {
            self.unit.start(now);
            self.watch.begin(now);
            self.shaper.iter_mut().for_each(Shaper::begin);
        }
    }

    fn work(&mut self, now: Time, _calm: bool) -> Result<bool, NodeError> {
        self.unit.pass(now);
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.unit.machine.handle_timeout(now);
        }
        let has_read = self.unit.read(now, ReadLimits::TURN)?;
        let moved = self.take_arrivals(now) || has_read;
        self.take_apart();
        self.front_end.iter_mut().for_each(FrontEnd::listen);
        Ok(moved)
    }

    fn is_ready(&mut self, _now: Time) -> Result<bool, NodeError> {
        self.front_end.as_mut().map_or(Ok(true), FrontEnd::is_ready)
    }

    fn hurry(&mut self) {
        self.front_end.iter_mut().for_each(FrontEnd::hurry);
    }

    fn notice(&mut self) -> Option<Notice> {
        self.front_end.as_mut()?.note().map(Notice::Note)
    }

    fn transmit(&mut self, now: Time, send: &mut dyn FnMut(Transmit<Message<Bytes>>) -> bool) {
        let mut shaper = self.shaper.take();
        match &mut shaper {
            Some(shaper) => self.send_in_slots(now, shaper, send),
            None => self.hand_over(now, |transmit| {
                send(transmit);
            }),
        }
        let shaper_at = |shaper: &Shaper<_>| shaper.deadline(now).into_iter().chain(shaper.asks_time_at()).min();
        let slots = shaper.as_ref().and_then(shaper_at);
        self.shaper = shaper;
        let machine = self.unit.machine.poll_timeout().map(|(at, _)| at);
        let held_back = self.held_back.front().map(|(at, _)| *at);
        let slices = self.looks_again_at(now);
        self.deadline = machine.into_iter().chain(held_back).chain(slots).chain(slices).min();
    }

    fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    fn is_punctual(&self) -> bool {
        self.shaper.as_ref().is_some_and(Shaper::is_by_clock)
    }

    fn next_run(&mut self, now: Time, run: &RunStart) -> Result<(), NodeError> {
        self.apart = ApartStream::new(self.apart_options.of_run(run), run.clock);
        self.unit.next_run(now);
        self.watch.begin(now);
        self.refusals = Refusals::default();
        self.lost_before += self.datagram_buffer().and_then(|buffer| buffer.lost).unwrap_or(0);
        self.held_up_before += self.held_up();
        self.front_end.iter_mut().for_each(|front_end| front_end.next_run(&run.info));
        self.slots_before = self.slots();
        Ok(())
    }

    fn report(&self, now: Time) -> Report {
        let (came, apart, source_id) = self.origin();
        let mut report = self.unit.report(now);
        report.counts.came = came;
        report.counts.apart = apart;
        report.counts.apart_files = self.apart.files();
        report.counts.apart_unstored = self.apart.unstored();
        report.counts.source_id = source_id;
        report.counts.rejected = self.refusals.count();
        report.counts.source = self.counter.map(|_| SourceRecord {
            lost: self.datagram_buffer().and_then(|buffer| buffer.lost),
            control: self.front_end.as_ref().map(FrontEnd::record),
            ..self.watch.record()
        });
        let (slots, before) = (self.slots(), self.slots_before);
        report.slots = Slots {
            used: slots.used - before.used,
            empty: slots.empty - before.empty,
            passed: slots.passed - before.passed,
        };
        report.clock_error = self.shaper.as_ref().and_then(Shaper::clock_error);
        report.identity = self.identity();
        report.findings = self.findings(came, apart);
        report.findings.extend(self.apart.finding());
        report.findings.extend(self.front_end.iter().flat_map(FrontEnd::findings));
        Report::Readout(report.into())
    }

    fn finish(&mut self, now: Time, is_last: bool) -> Result<bool, NodeError> {
        if is_last {
            self.abandon_slices(now);
            self.unit.machine.handle_command(now, ReadoutCommand::Finish);
        }
        self.take_apart();
        let has_stopped = !is_last || self.front_end.as_mut().is_none_or(FrontEnd::finish);
        Ok(self.apart.finish() && has_stopped)
    }
}
