//! The histograms of a builder unit, which it fills from the events that it builds, before any filter decides.
//!
//! A plan says where the values are, in bytes; nothing is looked up by name for an event. Only good fragments are looked
//! at. What cannot be counted is counted as such: a fragment that is missing or bad, and a payload that does not fit.

use crate::Payload;
use evb_core::{EventId, SourceId};
use evb_experiment::{HistogramPlan, PayloadLayout, PayloadPart, Plan, Quantity};
use evb_protocol::{Built, Fragment, FragmentStatus};
use evb_record::Histogram;
use std::collections::BTreeSet;
use tally::Tally;

mod numbers;
mod tally;

/// The histograms of one builder unit.
pub(crate) struct Monitor {
    fillers: Vec<Filler>,
    /// The places of the histograms of each source, by its number.
    of_source: Vec<Vec<usize>>,
    /// Each interval between events that some histogram looks at.
    intervals: BTreeSet<u64>,
}

/// A histogram that is being filled.
struct Filler {
    plan: HistogramPlan,
    tally: Tally,
    fragments: u64,
    unfit: u64,
    missing: u64,
}

impl Monitor {
    /// The histograms of a plan, all empty; `None` if it has none.
    pub(crate) fn new(plan: &Plan) -> Option<Box<Self>> {
        if plan.histograms.is_empty() {
            return None;
        }
        let mut of_source = Vec::new();
        for (place, histogram) in plan.histograms.iter().enumerate() {
            let source = histogram.source.index();
            of_source.resize_with(of_source.len().max(source + 1), Vec::new);
            of_source[source].push(place);
        }
        let intervals = plan.histograms.iter().map(|histogram| histogram.one_in).collect();
        Some(Box::new(Self { fillers: plan.histograms.iter().map(Filler::new).collect(), of_source, intervals }))
    }

    /// True if any histogram looks at this event.
    pub(crate) fn wants(&self, event: EventId) -> bool {
        self.intervals.iter().any(|interval| event.0.is_multiple_of(*interval))
    }

    /// Counts the values of an event.
    pub(crate) fn fill<B: Payload>(&mut self, built: &Built<B>) {
        for (index, fragment) in built.wanted() {
            // Where fragments are split from bundles, their place is not the number of their source.
            let source = fragment.map_or(index, |fragment| fragment.source);
            self.fill_source(built.event, source, fragment);
        }
    }

    fn fill_source<B: Payload>(&mut self, event: EventId, source: SourceId, fragment: Option<&Fragment<B>>) {
        for &place in self.of_source.get(source.index()).into_iter().flatten() {
            let filler = &mut self.fillers[place];
            if filler.wants(event) {
                filler.fill(fragment.filter(|fragment| fragment.status == FragmentStatus::Good));
            }
        }
    }

    /// What was counted so far, in the order of the plan.
    pub(crate) fn histograms(&self) -> Vec<Histogram> {
        self.fillers.iter().map(Filler::histogram).collect()
    }

    /// Counts anew: the next run begins.
    pub(crate) fn next_run(&mut self) {
        self.fillers.iter_mut().for_each(|filler| *filler = Filler::new(&filler.plan));
    }
}

impl Filler {
    fn new(plan: &HistogramPlan) -> Self {
        Self { plan: plan.clone(), tally: Tally::new(plan.bins, plan.range), fragments: 0, unfit: 0, missing: 0 }
    }

    #[inline]
    const fn wants(&self, event: EventId) -> bool {
        self.plan.one_in == 1 || event.0.is_multiple_of(self.plan.one_in)
    }

    /// Counts the values of a fragment, or that it is missing.
    fn fill<B: Payload>(&mut self, fragment: Option<&Fragment<B>>) {
        let Some(fragment) = fragment else {
            self.missing += 1;
            return;
        };
        match count(&mut self.tally, &self.plan.quantity, fragment) {
            Some(()) => self.fragments += 1,
            None => self.unfit += 1,
        }
    }

    fn histogram(&self) -> Histogram {
        let HistogramPlan { name, source_name, field, range, channels, one_in, .. } = &self.plan;
        Histogram {
            name: name.clone(),
            source: source_name.clone(),
            field: field.clone(),
            range: *range,
            channels: *channels,
            one_in: *one_in,
            entries: self.tally.entries(),
            mean: self.tally.mean(),
            underflow: self.tally.underflow,
            overflow: self.tally.overflow,
            fragments: self.fragments,
            unfit: self.unfit,
            missing: self.missing,
            bins: self.tally.bins.clone(),
        }
    }
}

/// Counts the values of a fragment; `None` if its payload does not fit the decoder. Lengths need no bytes, so they are
/// counted in a simulation as well.
fn count<B: Payload>(tally: &mut Tally, quantity: &Quantity, fragment: &Fragment<B>) -> Option<()> {
    match quantity {
        Quantity::Size => tally.count(f64::from(fragment.length)),
        Quantity::Hits(layout) => tally.count(f64::from(items_in(layout, fragment.length)?)),
        Quantity::Field(layout, field) => {
            let bytes = fragment.payload.bytes()?;
            let items = items_in(layout, u32::try_from(bytes.len()).ok()?)?;
            let (start, stride, repeats) = match field.part {
                PayloadPart::Header => (0, layout.header, 1),
                PayloadPart::Items => (layout.header, layout.item, items),
                PayloadPart::Trailer => (layout.header + items * layout.item, layout.trailer, 1),
            };
            let part = bytes.get(start as usize..(start + stride * repeats) as usize)?;
            numbers::read(field, part, stride as usize, |value| tally.count(value));
        }
    }
    Some(())
}

/// Number of items in a payload of this length; `None` if it does not fit.
fn items_in(layout: &PayloadLayout, length: u32) -> Option<u32> {
    let rest = length.checked_sub(layout.header.checked_add(layout.trailer)?)?;
    rest.is_multiple_of(layout.item).then(|| rest / layout.item)
}

#[cfg(test)]
mod tests;
