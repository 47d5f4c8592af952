//! The fragments of a source whose hits go into slices of time.

use super::{LiveItem, LiveSource};
use crate::{
    LiveSpec, OpenOptions,
    board::{Framing, HitCutter},
    slicer::{HitFault, SlicedHit, Slicer, SlicerItem},
};
use bytes::Bytes;
use evb_core::{Span, Time};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Shortest time between two looks at a silent source.
const SHORTEST_SILENCE: Duration = Duration::from_millis(10);

/// Cuts the frames of a source into hits, and the hits into slices.
pub(super) struct Slices {
    cutter: HitCutter,
    slicer: Slicer,
    /// The host's time 0.
    begin: Instant,
    /// Time after which a silent source is looked at again.
    silence: Duration,
    /// The end of the data, which comes behind the last slice.
    has_ended: bool,
    last: u64,
    /// The run is over, and nothing more is taken.
    is_abandoned: bool,
}

impl Slices {
    /// The slices of a source, if it has any: they need a framing.
    pub(super) fn new(spec: &LiveSpec, framing: Option<&Arc<Framing>>, options: &OpenOptions) -> Option<Self> {
        let (slicing, framing) = (spec.slices?, framing?);
        let late = slicing.sort_depth.max(slicing.latency).as_duration();
        Some(Self {
            cutter: HitCutter::new(framing.clone(), slicing.offset),
            slicer: Slicer::new(&slicing, options.max_fragment, framing.hits.is_none()),
            begin: Instant::now(),
            silence: (late / 4).max(SHORTEST_SILENCE),
            has_ended: false,
            last: 0,
            is_abandoned: false,
        })
    }

    fn now(&self) -> Time {
        Time::ZERO + Span::from(self.begin.elapsed())
    }

    /// The next item that is complete.
    fn next(&mut self) -> Option<LiveItem> {
        if let Some(item) = self.slicer.pop() {
            return Some(self.item(item));
        }
        let counter = (self.last > 0).then_some(self.last);
        std::mem::take(&mut self.has_ended).then_some(LiveItem::EndOfRun { counter, sent: None })
    }

    fn item(&mut self, item: SlicerItem) -> LiveItem {
        match item {
            SlicerItem::Slice { number, bytes, is_whole } => {
                self.last = number;
                let (resynchronised, mark, clock) = (false, None, None);
                LiveItem::Fragment { counter: number, resynchronised, mark, clock, good: is_whole, bytes }
            }
            SlicerItem::Apart { number, bytes, reason } => LiveItem::Apart { counter: number, bytes, reason },
        }
    }

    fn take(&mut self, item: LiveItem) {
        match item {
            LiveItem::Fragment { counter, clock, good: true, bytes, .. } => self.take_frame(&bytes, counter, clock),
            // Its times may be wrong.
            LiveItem::Fragment { bytes, .. } => self.slicer.push_unknown(bytes, HitFault::Damaged),
            LiveItem::EndOfRun { .. } => {
                self.slicer.finish();
                self.has_ended = true;
            }
            LiveItem::Apart { .. } | LiveItem::Rejected { .. } | LiveItem::Skipped { .. } => {}
        }
    }

    fn take_frame(&mut self, frame: &Bytes, counter: u64, clock: Option<u64>) {
        let arrived = self.now();
        self.slicer.begin_frame();
        for hit in self.cutter.cut(frame, counter, clock, self.slicer.reference()) {
            match (hit.time, hit.is_whole) {
                (Some(time), _) => self.slicer.push(SlicedHit { time, bytes: hit.bytes }, arrived),
                (None, true) => self.slicer.push_unknown(hit.bytes, HitFault::OutOfStep),
                (None, false) => self.slicer.push_unknown(hit.bytes, HitFault::Damaged),
            }
        }
    }
}

impl LiveSource {
    /// The next item of a source with slices.
    pub(super) fn next_sliced(&mut self) -> Option<LiveItem> {
        let (slices, link, taken) = (self.slices.as_mut()?, &self.link, &mut self.taken);
        let queue = &self.outlet.queue;
        if slices.is_abandoned {
            return None;
        }
        loop {
            if let Some(item) = slices.next() {
                return Some(item);
            }
            let is_silent = || slices.slicer.waits() && link.sockets.are_quiet();
            let item = match queue.next(taken) {
                // What is in the queue after the look at the sockets is all that was sent before.
                None if is_silent() => queue.next(taken),
                None => return None,
                item => item,
            };
            match item {
                Some(skipped @ LiveItem::Skipped { .. }) => return Some(skipped),
                Some(item) => slices.take(item),
                None => {
                    slices.slicer.be_silent(slices.now());
                    return slices.next();
                }
            }
        }
    }

    /// Time after which [`try_next`](Self::try_next) may have something new although nothing has come: the slices of a
    /// silent source are complete by the time of the host.
    pub fn looks_again_after(&self) -> Option<Duration> {
        self.slices.as_ref().filter(|slices| slices.slicer.waits()).map(|slices| slices.silence)
    }

    /// The run is over, and none follows: the hits of slices that are not complete come from
    /// [`next_abandoned`](Self::next_abandoned).
    pub fn abandon_slices(&mut self) {
        if let Some(slices) = &mut self.slices {
            slices.slicer.abandon();
            slices.is_abandoned = true;
        }
    }

    /// The next hit that is in no slice since the run is over.
    pub fn next_abandoned(&mut self) -> Option<LiveItem> {
        self.slices.as_mut()?.next()
    }
}
