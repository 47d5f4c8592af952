//! Assignment of recorded fragments to events by their headers.
//!
//! A good fragment belongs to the event of its level-1 id, wherever in the file it is. Nothing in a damaged fragment
//! can be trusted. It gets an event that good fragments leave between them, if there is exactly one for each damaged
//! fragment, and can never make an event complete. Any other fragment is kept out of all events.

use super::{FedEntry, FedFault};
use evb_core::{Apart, Numbered, Numbering, NumberingEvent};
use std::collections::BTreeSet;

/// Bits of a level-1 id.
pub(crate) const ID_BITS: u8 = 24;

/// Assigns events, counted from 1 for the first of the file, to all fragments that have one.
pub(super) fn number(entries: &mut [FedEntry]) {
    number_good(entries);
    number_damaged(entries);
    let below = entries.iter().filter_map(|entry| entry.event).min().map_or(0, |first| first - 1);
    entries.iter_mut().for_each(|entry| entry.event = entry.event.map(|event| event - below));
}

/// First event of good fragments, so that damaged ones may precede them.
const ORIGIN: u64 = 1 << 32;

fn number_good(entries: &mut [FedEntry]) {
    let mut numbering = Numbering::new(ID_BITS);
    for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.fault.is_none()) {
        let content = u64::from(entry.bunch_crossing) << 32 | u64::from(entry.length);
        let number = entry.level1_id.into();
        // The ids of a file decide by value, since builders compare the bunch crossings.
        numbering.push(Numbered { number, declared: false, marked: false, digest: content, item: index });
    }
    numbering.end(None);
    let mut segments = Segments { first: Some(ORIGIN), last: None, before: None, leapt: Vec::new() };
    while let Some(step) = numbering.pop() {
        match step {
            NumberingEvent::Placed { position, item } => segments.place(entries, position, item),
            NumberingEvent::Apart { item, reason: Apart::Repeated | Apart::Disputed } => {
                entries[item].fault = Some(FedFault::Repeated);
            }
            NumberingEvent::Apart { item, reason: Apart::Misnumbered | Apart::Late } => {
                entries[item].fault = Some(FedFault::Order);
            }
            NumberingEvent::Turn { number, .. } => segments.turn(entries, |id| numbering.ahead(id.into(), number)),
            NumberingEvent::Skipped(_) | NumberingEvent::Wrapped => {}
        }
    }
}

/// An event and its level-1 id.
type Known = (u64, u32);

/// The turns of the ids, and whether their values tell how the numbering continues.
struct Segments {
    /// The event of position 0; `None` if the ids have restarted and nothing tells their events.
    first: Option<u64>,
    /// The last good fragment with an event.
    last: Option<Known>,
    /// The last one before the ids leapt, and the fragments since then.
    before: Option<Known>,
    leapt: Vec<usize>,
}

impl Segments {
    fn place(&mut self, entries: &mut [FedEntry], position: u64, index: usize) {
        let Some(first) = self.first else { return entries[index].fault = Some(FedFault::OutOfStep) };
        entries[index].event = Some(first + position);
        self.last = Some((first + position, entries[index].level1_id));
        if self.before.is_some() {
            self.leapt.push(index);
        }
    }

    /// Continues after a long gap, or at the ids before a leap. `ahead` returns how far the new id is ahead of another
    /// one.
    fn turn(&mut self, entries: &mut [FedEntry], ahead: impl Fn(u32) -> Option<u64>) {
        let behind = |(event, id): Known| Some(event + ahead(id)?);
        self.first = self.last.map_or(Some(ORIGIN), behind);
        if self.first.is_some() {
            (self.before, self.leapt) = (self.last, Vec::new());
            return;
        }
        self.first = self.before.and_then(behind);
        if self.first.is_some() {
            for index in self.leapt.drain(..) {
                (entries[index].event, entries[index].fault) = (None, Some(FedFault::OutOfStep));
            }
            self.last = self.before.take();
        }
    }
}

/// Assigns events to damaged fragments between good ones, before the first and after the last.
fn number_damaged(entries: &mut [FedEntry]) {
    let taken: BTreeSet<u64> = entries.iter().filter_map(|entry| entry.event).collect();
    let mut at = 0;
    while at < entries.len() {
        let run = entries[at..].iter().take_while(|entry| entry.event.is_none()).count();
        let before = at.checked_sub(1).and_then(|before| entries[before].event);
        let after = entries.get(at + run).and_then(|entry| entry.event);
        fill(&mut entries[at..at + run], before, after, &taken);
        at += run + 1;
    }
}

/// Gives a run of fragments without events those between `before` and `after`, if the damaged ones fit exactly.
fn fill(run: &mut [FedEntry], before: Option<u64>, after: Option<u64>, taken: &BTreeSet<u64>) {
    let damaged = run.iter().filter(|entry| entry.fault.is_some_and(FedFault::is_damage)).count() as u64;
    let first = match (before, after) {
        (Some(before), Some(after)) if after > before && after - before - 1 == damaged => before + 1,
        (None, Some(after)) => after - damaged,
        (Some(before), None) => before + 1,
        _ => return,
    };
    // A fragment that came late may have one of these events.
    if taken.range(first..first + damaged).next().is_some() {
        return;
    }
    let damaged = run.iter_mut().filter(|entry| entry.fault.is_some_and(FedFault::is_damage));
    damaged.zip(first..).for_each(|(entry, event)| entry.event = Some(event));
}
