//! Findings of a readout unit about its source.

use super::{Input, Origin, ReadoutNode};
use evb_core::{ByteCount, FirstCounter};
use evb_protocol::Fault;
use evb_record::{Finding, FindingKind};
use evb_sources::{DatagramBuffer, FedEntry, FedFault, FedFile, FilePadding, Refused, RejectKind, Source};
use evb_unit::SourceIdentity;
use std::collections::BTreeMap;

/// Refused fragments by kind: their number and the first one.
#[derive(Default)]
pub(super) struct Refusals(BTreeMap<RejectKind, (u64, Refused)>);

impl Refusals {
    pub(super) fn add(&mut self, kind: RejectKind, count: u64, first: Refused) {
        self.0.entry(kind).or_insert((0, first)).0 += count;
    }

    pub(super) fn count(&self) -> u64 {
        self.0.values().map(|(count, _)| count).sum()
    }
}

impl ReadoutNode {
    /// The findings about a source with `came` fragments, of which `apart` belong to no event.
    pub(super) fn findings(&self, came: u64, apart: u64) -> Vec<Finding> {
        let mut found: Vec<_> = self.refusals.0.iter().map(|(kind, refused)| self.refused(*kind, *refused)).collect();
        found.extend(match self.unit.source.only().map(|only| &only.origin) {
            Some(Origin::OnDemand(source)) => {
                let mut found = self.of_recorded(came, apart);
                found.extend(self.of_hits(source));
                found
            }
            Some(Origin::Live(_)) => {
                let mut found = self.of_live(came);
                found.extend(self.of_slices());
                found
            }
            // Sources in bundles are generated.
            None => Vec::new(),
        });
        found
    }

    fn finding(&self, kind: FindingKind, message: &str) -> Finding {
        let name = format!("ru{}", self.unit.id());
        let message = format!("{name} {message}");
        Finding::new(kind, name, message)
    }

    fn refused(&self, kind: RejectKind, (count, first): (u64, Refused)) -> Finding {
        let expected = match kind {
            RejectKind::WrongSource => match self.framing.as_ref().and_then(|framing| framing.source) {
                Some(_) if !self.shared.is_empty() => {
                    let ids: Vec<_> = self.shared.iter().map(u64::to_string).collect();
                    format!("frames with one of the source ids {} were expected", ids.join(", "))
                }
                Some((_, value)) => format!("frames with the source id {value} were expected"),
                None => format!("fragments of source {} were expected", self.unit.id()),
            },
            RejectKind::Oversized => "smaller ones were expected".to_owned(),
            _ if self.framing.is_some() => "frames of its framing were expected".to_owned(),
            _ if self.is_eudaq => "events of EUDAQ were expected".to_owned(),
            _ => "frames that begin with \"evbF\" were expected".to_owned(),
        };
        let (kind, hint) = match first.oversized {
            Some((bytes, limit)) => (
                format!("a fragment of {bytes} B where at most {limit} B are allowed"),
                Some("`readout.max_fragment` is the limit"),
            ),
            None => (kind.to_string(), self.hint_for_refused(kind)),
        };
        let message = format!("refused {count} times: {kind}; {expected}, the first came {first}");
        let finding = self.finding(FindingKind::Refused, &message);
        match hint {
            Some(hint) => finding.hint(hint),
            None => finding,
        }
    }

    const fn hint_for_refused(&self, kind: RejectKind) -> Option<&'static str> {
        match kind {
            _ if self.framing.is_some() => Some("`evb sources try` shows what a framing makes of data"),
            RejectKind::CutOff => None,
            _ if self.is_eudaq => {
                Some("the rest of the file was not read: an event is found only behind the one before")
            }
            _ => None,
        }
    }

    fn of_live(&self, came: u64) -> Vec<Finding> {
        let (counts, of_all_runs) = (self.unit.counts(), self.unit.machine.counts());
        let faults = |fault| counts.faults.get(fault);
        let (out_of_step, early) = (faults(Fault::OutOfStep), faults(Fault::Early));
        let mut found = Vec::new();
        let mut add_if = |holds: bool, finding: Finding| found.extend(holds.then_some(finding));
        let silent = match self.refusals.count() {
            0 => "was never sent a fragment".to_owned(),
            refused => format!("was sent no fragment; {refused} times it was sent something else"),
        };
        let silent = self.finding(FindingKind::SilentSource, &silent);
        let silent = match self.is_eudaq {
            true => silent.hint("`evb sources try` lists the producers of its file"),
            false => silent,
        };
        add_if(came == 0, silent);
        let turns = counts.faults.get(Fault::Resynchronised);
        let message = format!(
            "could not tell to which events {out_of_step} of its fragments belong: its counter started again or leapt \
             {turns} times"
        );
        // The event manager tells of clocks, and slices of their hits.
        let counts_wrong = out_of_step > 0 && !self.is_timed && !self.is_sliced;
        add_if(counts_wrong, self.finding(FindingKind::OutOfStep, &message).hint(self.hint_for_turns()));
        found.extend(self.of_datagrams());
        found.extend(self.of_hold_up());
        let mut add_if = |holds: bool, finding: Finding| found.extend(holds.then_some(finding));
        let disputed = faults(Fault::Disputed);
        let message =
            format!("sent {disputed} fragments with numbers that others of its fragments have, and other contents");
        add_if(disputed > 0, self.finding(FindingKind::DuplicateNumbers, &message));
        let message = format!("sent {} fragments again; the copies were set apart", faults(Fault::Duplicate));
        add_if(faults(Fault::Duplicate) > 0, self.finding(FindingKind::Repeated, &message));
        let leaps = counts.identity.leaps;
        let message = format!("skipped numbers {leaps} times: the triggers between were lost, or its counter leapt");
        add_if(leaps > 0, self.finding(FindingKind::Leapt, &message));
        // A front end counts from its own start, through all runs that have followed each other.
        let came_in_all = of_all_runs.came;
        let announced = self.announced.map_or(came_in_all, u64::from);
        let message = format!("was announced {announced} fragments at the end of run, and {came_in_all} came");
        // What is announced is counted modulo 2^32.
        add_if(announced != came_in_all & u64::from(u32::MAX), self.finding(FindingKind::MissedEnd, &message));
        let skipped = counts.skipped;
        let message = format!("lacks {skipped} fragments that its counter has passed");
        // A front end that announces its number of fragments may leave numbers out. That of a clock may count anything.
        let kind = if self.is_timed { FindingKind::CounterGaps } else { FindingKind::MissedEnd };
        add_if(self.announced.is_none() && skipped > 0, self.finding(kind, &message));
        let message = format!("set {early} fragments apart from before the first event that all sources had");
        add_if(early > 0, self.finding(FindingKind::Early, &message));
        let message =
            "has no second identity beside its event counter: should it start again, its fragments are set apart";
        let alone = self.numbered < 2 || came == 0 || of_all_runs.identity.marked > 0 || !self.is_declared();
        add_if(!alone, self.finding(FindingKind::NoSecondIdentity, message));
        found
    }

    /// The finding about datagrams that this host has lost.
    fn of_datagrams(&self) -> Option<Finding> {
        let DatagramBuffer { bytes, is_limited, lost } = self.datagram_buffer()?;
        let lost = lost.filter(|lost| *lost > 0)?;
        let message = format!("lost {lost} datagrams in this host: its socket buffer of {} was full", ByteCount(bytes));
        let hint = match is_limited {
            true => "`sysctl -w net.core.rmem_max=33554432` allows a buffer that holds more",
            false => "the readout unit is slower than its front end: see which of its parts are busy",
        };
        Some(self.finding(FindingKind::LostInHost, &message).hint(hint))
    }

    /// The finding about a source that had no room while others of its link waited for what is behind.
    fn of_hold_up(&self) -> Option<Finding> {
        let seconds = self.held_up().as_secs();
        let message = format!("had no room for {seconds} s while other sources of its link had nothing to take");
        let hint = "the front end sends longer stretches of one source than a unit holds: raise `readout.buffer_events` and \
                    `readout.buffer_bytes`";
        (seconds > 0).then(|| self.finding(FindingKind::LinkHeldUp, &message).hint(hint))
    }

    /// The findings about hits that are in no slice.
    fn of_slices(&self) -> Vec<Finding> {
        let faults = &self.unit.counts().faults;
        let finding = |(fault, what, hint): (Fault, &str, &str)| {
            let message = format!("set {} hits apart that {what}", faults.get(fault));
            (faults.get(fault) > 0).then(|| self.finding(FindingKind::Unsliced, &message).hint(hint))
        };
        let known = [
            (Fault::Late, "came when their slice was over", "`sort_depth` and `latency` say how late a hit may come"),
            (
                Fault::OutOfSequence,
                "have times far ahead, which no other frames confirmed",
                "`evb sources try` shows the times of hits",
            ),
            (
                Fault::OutOfStep,
                "came behind no marker of their chip",
                "frames may be missing: see the counter of the frames",
            ),
            (Fault::Oversized, "are above the largest fragment of their slice", "`readout.max_fragment` is the limit"),
        ];
        if self.is_sliced { known.into_iter().filter_map(finding).collect() } else { Vec::new() }
    }

    /// Returns true if the experiment file says with which number the source begins.
    fn is_declared(&self) -> bool {
        self.counter.is_some_and(|counter| counter.first != FirstCounter::Unknown)
    }

    /// How the numbers and marks of a live source tell its events, where there are several such sources.
    pub(super) fn identity(&self) -> Option<SourceIdentity> {
        let counts = self.unit.counts();
        let tolerated_mismatches = counts.tolerated_mismatches(self.is_declared());
        let of_live = self.counter.filter(|_| self.numbered > 1);
        of_live.map(|_| SourceIdentity { counters: counts.identity.counters, tolerated_mismatches })
    }

    /// Advice for a source whose counter started again.
    fn hint_for_turns(&self) -> String {
        let identity = self.unit.machine.counts().identity;
        let narrower = self.counter.and_then(|counter| identity.narrower(counter.bits));
        match (narrower, identity.last_turn) {
            (Some(bits), Some((from, to))) => format!("{to} follows {from}: `counter_bits = {bits}`?"),
            _ => "fragments that carry a mark beside the counter bring a source back by themselves: see the framing"
                .into(),
        }
    }

    /// The finding about hits before the first slice.
    fn of_hits(&self, source: &Source) -> Option<Finding> {
        let early = source.early_hits();
        let message = format!("has {early} hits from before the first slice, which belong to no event");
        let hint = "`readout.slices_from` is the time of the first slice";
        (early > 0).then(|| self.finding(FindingKind::Early, &message).hint(hint))
    }

    fn of_recorded(&self, came: u64, apart: u64) -> Vec<Finding> {
        let Some(file) = self.unit.source.only().and_then(Input::recorded) else {
            return Vec::new();
        };
        let mut found = self.of_end(file);
        if apart > 0 {
            found.push(self.unmatched(file, came, apart));
        }
        found
    }

    /// The findings about the end of a recording.
    fn of_end(&self, file: &FedFile) -> Vec<Finding> {
        let name = file.path().display();
        let cut = file.cut().map(|FedEntry { offset, length, .. }| {
            format!("reads {name}, which ends within a fragment: {length} bytes from byte {offset} have no trailer")
        });
        let padding = file.padding().map(|FilePadding { offset, bytes }| {
            format!("reads {name}, whose last {bytes} bytes, from byte {offset}, are not a fragment")
        });
        cut.into_iter().chain(padding).map(|message| self.finding(FindingKind::Truncated, &message)).collect()
    }

    fn unmatched(&self, file: &FedFile, came: u64, apart: u64) -> Finding {
        let kinds = FedFault::ALL.iter().map(|fault| (*fault, file.entries().iter()));
        let kinds = kinds.map(|(fault, entries)| {
            (fault, entries.filter(|entry| entry.event.is_none() && entry.fault == Some(fault)).count())
        });
        let kinds: Vec<_> = kinds.filter(|(_, count)| *count > 0).map(|(fault, n)| format!("{n} {fault}")).collect();
        let kinds = if kinds.is_empty() { "before the first event of all".into() } else { kinds.join(", ") };
        let message = format!("{apart} of {came} fragments belong to no event: {kinds}");
        self.finding(FindingKind::Unmatched, &message)
    }
}
