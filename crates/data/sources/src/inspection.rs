//! What a framing makes of the bytes of a front end: frames, steps of counter and clock, what does not fit, and guesses
//! about what the framing should say.

mod guesses;
mod input;

use crate::{
    board::{BoardFrame, FrameChecksum, FrameScanner, Framing, HitCutter},
    capture::Flow,
    framing::FrameError,
    live::MOST_FLOWS,
};
use evb_core::Span;
pub use input::{InspectionInput, InspectionLimits};
use serde::Serialize;
use std::{collections::BTreeMap, sync::Arc};

/// Most bytes that guesses are made from.
const MOST_SAMPLED: usize = 1 << 20;
/// Most different steps of a counter that are told apart.
const MOST_STEPS: usize = 64;
/// Most hits of a frame that are shown.
const MOST_HITS: usize = 8;
/// Most bytes of a frame or of garbage that are shown.
const MOST_SHOWN: usize = 64;

/// An inspection of the bytes of a front end.
#[derive(Debug)]
pub struct Inspection {
    framing: Arc<Framing>,
    scanner: FrameScanner,
    /// The scanners of datagrams whose frames go on in the next one, the one that was heard last at the end.
    streams: Vec<(Flow, FrameScanner)>,
    max_fragment: u32,
    most_frames: usize,
    sample: Vec<u8>,
    /// Number of bytes before the next frame.
    offset: u64,
    /// Source ids of other sources.
    others: Vec<u64>,
    /// Frames of sources that the experiment does not have fit, too.
    is_file: bool,
    report: InspectionReport,
    last: Option<(u64, Option<u64>)>,
    /// Cuts hits out of the frames, near the time of the last one.
    cutter: HitCutter,
    near: Option<i64>,
}

/// The result of an inspection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InspectionReport {
    /// The first frames.
    pub first: Vec<InspectedFrame>,
    /// Number of frames.
    pub frames: u64,
    /// Bytes of all frames.
    pub frame_bytes: u64,
    /// Frames with a wrong checksum, or flagged as damaged.
    pub damaged: u64,
    /// Frames of other sources that the experiment has for the same link.
    pub others: u64,
    /// Frames with a source id that no source has.
    pub foreign: u64,
    /// Bytes that are no frame, and the number of their stretches.
    pub skipped: (u64, u64),
    /// The place of the first of them, and their first bytes.
    pub first_skipped: Option<(u64, Vec<u8>)>,
    /// Frames above the largest size, and the first of these sizes in bytes.
    pub oversized: (u64, Option<u32>),
    /// Bytes of an unfinished frame at the end.
    pub unfinished: u64,
    /// First and last counter.
    pub counters: Option<(u64, u64)>,
    /// Number of the steps of the counter, by their size.
    pub steps: BTreeMap<i64, u64>,
    /// First and last clock in ticks.
    pub clocks: Option<(u64, u64)>,
    /// Steps of the clock backwards.
    pub clock_back: u64,
    /// Hits inside the frames, if the framing has any.
    pub hits: u64,
    /// Hits whose time is not known, because no marker came before them.
    pub hits_without_time: u64,
    /// Pieces of frames that are too short for a hit.
    pub cut_hits: u64,
    /// What the framing should perhaps say.
    pub guesses: Vec<String>,
}

/// One of the first frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InspectedFrame {
    /// Bytes before it.
    pub offset: u64,
    /// Its length in bytes.
    pub length: usize,
    /// Its first bytes.
    pub bytes: Vec<u8>,
    /// Its counter.
    pub counter: u64,
    /// The difference to the counter before, in this width.
    pub step: Option<i64>,
    /// Its clock in ticks.
    pub clock: Option<u64>,
    /// Ticks since the frame before.
    pub ticks: Option<i64>,
    /// Its mark.
    pub mark: Option<u32>,
    /// The times of its first hits in nanoseconds, where they are known.
    pub hits: Vec<Option<i64>>,
    /// It is good, and its source id is that of the framing.
    pub good: bool,
    /// Its source id is that of the framing.
    pub is_ours: bool,
}

impl Inspection {
    /// An inspection that keeps this number of frames, each of at most `max_fragment` bytes.
    pub fn new(framing: Framing, max_fragment: u32, most_frames: usize) -> Self {
        let framing = Arc::new(framing);
        Self {
            scanner: FrameScanner::new(framing.clone(), max_fragment),
            cutter: HitCutter::new(framing.clone(), Span::ZERO),
            near: None,
            streams: Vec::new(),
            max_fragment,
            framing,
            most_frames,
            sample: Vec::new(),
            offset: 0,
            others: Vec::new(),
            is_file: false,
            report: InspectionReport::default(),
            last: None,
        }
    }

    /// Knows the ids of other sources of the same link: their frames are counted, and fit.
    #[must_use]
    pub fn beside(mut self, ids: Vec<u64>) -> Self {
        self.others = ids;
        self
    }

    /// The source is a file, of which each source takes its own frames: those of others fit.
    #[must_use]
    pub const fn in_file(mut self) -> Self {
        self.is_file = true;
        self
    }

    /// Number of frames so far.
    pub const fn frames(&self) -> u64 {
        self.report.frames
    }

    /// Takes bytes of a stream.
    pub fn push(&mut self, bytes: &[u8]) {
        let header = self.scanner.header().min(bytes.len());
        self.offset += header as u64;
        self.take_sample(&bytes[header..]);
        self.scanner.push(bytes);
        self.scan(false);
    }

    /// Takes a datagram.
    pub fn push_datagram(&mut self, flow: Flow, bytes: &[u8]) {
        self.take_sample(bytes);
        if self.framing.across_datagrams {
            return self.push_to(flow, bytes);
        }
        self.scanner.clear();
        self.scanner.push(bytes);
        self.scan(true);
        self.leave();
    }

    /// Takes a datagram as the next piece of the stream of its flow.
    fn push_to(&mut self, flow: Flow, bytes: &[u8]) {
        let known = self.streams.iter().position(|(other, _)| *other == flow);
        if known.is_none() && self.streams.len() == MOST_FLOWS {
            let (_, oldest) = self.streams.remove(0);
            self.end(oldest);
        }
        let scanner = known.map(|at| self.streams.remove(at).1);
        self.scanner = scanner.unwrap_or_else(|| FrameScanner::new(self.framing.clone(), self.max_fragment));
        self.scanner.push(bytes);
        self.scan(false);
        let empty = FrameScanner::new(self.framing.clone(), self.max_fragment);
        self.streams.push((flow, std::mem::replace(&mut self.scanner, empty)));
    }

    /// Ends a stream.
    fn end(&mut self, scanner: FrameScanner) {
        self.scanner = scanner;
        self.scan(true);
        self.leave();
    }

    /// Ends the inspection.
    pub fn finish(mut self) -> InspectionReport {
        self.scan(true);
        self.leave();
        for (_, scanner) in std::mem::take(&mut self.streams) {
            self.end(scanner);
        }
        self.report.guesses = guesses::guess(&self.framing, &self.report, &self.sample);
        self.report
    }

    fn take_sample(&mut self, bytes: &[u8]) {
        let room = MOST_SAMPLED - self.sample.len();
        self.sample.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn scan(&mut self, settles: bool) {
        loop {
            match if settles { self.scanner.settle() } else { self.scanner.pop() } {
                Ok(None) => return,
                Ok(Some(frame)) => self.take(&frame),
                Err(FrameError::Skipped { bytes }) => self.skip(bytes),
                Err(FrameError::Oversized { bytes, .. }) => {
                    self.report.oversized.0 += 1;
                    self.report.oversized.1.get_or_insert(bytes);
                }
                Err(_) => return self.skip(0),
            }
        }
    }

    /// Counts the bytes of an unfinished frame.
    fn leave(&mut self) {
        let left = self.scanner.unfinished().len() as u64;
        self.report.unfinished += left;
        self.offset += left;
        self.scanner.clear();
    }

    fn skip(&mut self, bytes: u64) {
        let report = &mut self.report;
        report.skipped = (report.skipped.0 + bytes, report.skipped.1 + 1);
        let skipped = self.scanner.skipped();
        let first = || (self.offset, skipped[..skipped.len().min(MOST_SHOWN)].to_vec());
        report.first_skipped.get_or_insert_with(first);
        self.offset += bytes;
    }

    fn take(&mut self, frame: &BoardFrame) {
        let is_known = |id: u64| self.is_file || self.others.contains(&id);
        if !frame.is_ours && frame.source.is_some_and(is_known) {
            self.report.others += 1;
            self.offset += frame.bytes.len() as u64;
            return;
        }
        let counter_bits = self.framing.counter_bits();
        let clock_bits = self.framing.clock.map_or(64, |clock| clock.field.bits);
        let step = self.last.map(|(last, _)| signed(frame.counter.wrapping_sub(last), counter_bits));
        let clocks = self.last.and_then(|(_, clock)| clock).zip(frame.clock);
        let ticks = clocks.map(|(last, clock)| signed(clock.wrapping_sub(last), clock_bits));
        self.last = Some((frame.counter, frame.clock));
        let hits = self.take_hits(frame);
        let report = &mut self.report;
        report.frames += 1;
        report.frame_bytes += frame.bytes.len() as u64;
        report.damaged += u64::from(!frame.good);
        report.foreign += u64::from(!frame.is_ours);
        report.counters = Some((report.counters.map_or(frame.counter, |(first, _)| first), frame.counter));
        report.clocks = frame.clock.map(|clock| (report.clocks.map_or(clock, |(first, _)| first), clock));
        report.clock_back += u64::from(ticks.is_some_and(|ticks| ticks < 0));
        if let Some(step) = step
            && (report.steps.len() < MOST_STEPS || report.steps.contains_key(&step))
        {
            *report.steps.entry(step).or_default() += 1;
        }
        if report.first.len() < self.most_frames {
            report.first.push(InspectedFrame {
                offset: self.offset,
                length: frame.bytes.len(),
                bytes: frame.bytes[..frame.bytes.len().min(MOST_SHOWN)].to_vec(),
                counter: frame.counter,
                step,
                clock: frame.clock,
                ticks,
                mark: frame.mark,
                hits,
                good: frame.good,
                is_ours: frame.is_ours,
            });
        }
        self.offset += frame.bytes.len() as u64;
    }
}

impl Inspection {
    /// Counts the hits of a frame, and returns the times of the first ones.
    fn take_hits(&mut self, frame: &BoardFrame) -> Vec<Option<i64>> {
        if self.framing.hits.is_none() || !frame.good || !frame.is_ours {
            return Vec::new();
        }
        let mut times = Vec::new();
        for hit in self.cutter.cut(&frame.bytes, frame.counter, frame.clock, self.near) {
            if !hit.is_whole {
                self.report.cut_hits += 1;
                continue;
            }
            self.report.hits += 1;
            self.report.hits_without_time += u64::from(hit.time.is_none());
            self.near = hit.time.or(self.near);
            if times.len() < MOST_HITS {
                times.push(hit.time);
            }
        }
        times
    }
}

impl InspectionReport {
    /// Returns true if every byte is in a good frame of this source, and no counter or clock goes backwards.
    pub fn fits(&self) -> bool {
        let bad = self.cut_hits
            + self.damaged
            + self.foreign
            + self.skipped.0
            + self.oversized.0
            + self.unfinished
            + self.clock_back;
        self.frames > 0 && bad == 0 && self.steps.keys().all(|step| *step > 0)
    }
}

/// A difference of this number of bits with its sign.
const fn signed(difference: u64, bits: u8) -> i64 {
    let shift = 64 - bits as u32;
    ((difference << shift) as i64) >> shift
}
