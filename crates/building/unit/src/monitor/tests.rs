//! Histograms of fragments with known bytes.

use super::*;
use bytes::Bytes;
use evb_core::Time;
use evb_experiment::{FieldLayout, NumberType};
use evb_protocol::{Config, Region};
use evb_sources::SourceSpec;

/// A board number, items of a channel and a charge, and a checksum.
const LAYOUT: PayloadLayout = PayloadLayout { header: 2, item: 3, trailer: 1 };

fn field(part: PayloadPart, at: u32, number: NumberType) -> Quantity {
    Quantity::Field(LAYOUT, FieldLayout { part, at, count: 1, number, big_endian: false, bits: None })
}

fn histogram(source: u16, quantity: Quantity) -> HistogramPlan {
    HistogramPlan {
        name: format!("of source {source}"),
        source: SourceId(source),
        source_name: format!("ru{source}"),
        field: "field".into(),
        quantity,
        bins: 10,
        range: [0.0, 1000.0],
        channels: false,
        one_in: 1,
    }
}

fn monitor(histograms: Vec<HistogramPlan>) -> Box<Monitor> {
    let mut plan = Plan::new(Config::new(2, 1), SourceSpec::Fixed { size: "2 B".parse().unwrap() });
    plan.histograms = histograms;
    Monitor::new(&plan).expect("there are histograms")
}

fn payload(board: u16, items: &[(u8, u16)]) -> Vec<u8> {
    let item = |(channel, charge): &(u8, u16)| [&[*channel][..], &charge.to_le_bytes()].concat();
    [&board.to_le_bytes()[..], &items.iter().flat_map(item).collect::<Vec<_>>(), &[0xee]].concat()
}

fn fragment(source: u16, payload: Vec<u8>) -> Option<Fragment<Bytes>> {
    Some(Fragment {
        event: EventId(1),
        source: SourceId(source),
        length: payload.len() as u32,
        checksum: 0,
        mark: None,
        counter: None,
        status: FragmentStatus::Good,
        payload: payload.into(),
    })
}

fn event(number: u64, fragments: Vec<Option<Fragment<Bytes>>>) -> Built<Bytes> {
    Built { event: EventId(number), opened: Time::ZERO, complete: true, asked: Region::ALL, fragments }
}

#[test]
fn each_source_has_its_own_values() {
    let charge = field(PayloadPart::Items, 1, NumberType::U2);
    let mut monitor = monitor(vec![histogram(0, charge), histogram(1, charge)]);
    let fragments = [&[(7, 10), (8, 250), (9, 1000)][..], &[(1, 999)]].map(|items| payload(3, items));
    let fragments = (0..).zip(fragments).map(|(source, payload)| fragment(source, payload)).collect();
    monitor.fill(&event(1, fragments));
    let filled = monitor.histograms();
    assert_eq!(filled[0].bins, [1, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!((filled[0].entries, filled[0].overflow, filled[0].fragments), (3, 1, 1));
    assert_eq!((filled[0].mean, filled[1].mean), (Some(130.0), Some(999.0)));
    assert_eq!((filled[1].source.as_str(), filled[1].bins[9]), ("ru1", 1));
    monitor.next_run();
    assert!(monitor.histograms().iter().all(|histogram| histogram.entries == 0 && histogram.mean.is_none()));
}

#[test]
fn headers_trailers_and_lengths_have_one_value_for_a_fragment() {
    let board = histogram(0, field(PayloadPart::Header, 0, NumberType::U2));
    let sum = histogram(0, field(PayloadPart::Trailer, 0, NumberType::U1));
    let mut monitor = monitor(vec![board, sum, histogram(0, Quantity::Size), histogram(0, Quantity::Hits(LAYOUT))]);
    monitor.fill(&event(1, vec![fragment(0, payload(512, &[(1, 2); 40]))]));
    let means: Vec<_> = monitor.histograms().iter().map(|histogram| histogram.mean).collect();
    assert_eq!(means, [Some(512.0), Some(238.0), Some(123.0), Some(40.0)]);
}

#[test]
fn what_cannot_be_counted_is_counted_as_such() {
    let mut monitor = monitor(vec![histogram(0, field(PayloadPart::Items, 1, NumberType::U2))]);
    let mut bad = fragment(0, payload(1, &[(1, 2)]));
    bad.iter_mut().for_each(|fragment| fragment.status = FragmentStatus::Corrupted);
    for odd in [None, bad, fragment(0, vec![0; 5]), fragment(0, vec![0; 2]), fragment(0, payload(1, &[]))] {
        monitor.fill(&event(1, vec![odd]));
    }
    let filled = monitor.histograms().remove(0);
    assert_eq!((filled.missing, filled.unfit, filled.fragments, filled.entries), (2, 2, 1, 0));
}

#[test]
fn a_fragment_that_was_not_asked_for_is_not_missing() {
    let mut monitor = monitor(vec![histogram(0, Quantity::Size), histogram(1, Quantity::Size)]);
    let asked = evb_protocol::FirstPhase::Units(1).of(EventId(1), 2);
    monitor.fill(&Built { asked, ..event(1, vec![fragment(0, payload(1, &[])), None]) });
    assert_eq!(monitor.histograms().iter().map(|filled| filled.missing).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn one_event_in_n_is_looked_at() {
    let mut monitor = monitor(vec![HistogramPlan { one_in: 10, ..histogram(0, Quantity::Size) }]);
    (1..=100).for_each(|number| monitor.fill(&event(number, vec![fragment(0, payload(1, &[]))])));
    assert_eq!((monitor.wants(EventId(20)), monitor.wants(EventId(21))), (true, false));
    assert_eq!(monitor.histograms()[0].entries, 10);
}

#[test]
fn items_are_counted_without_bytes() {
    assert_eq!(items_in(&LAYOUT, 3), Some(0));
    assert_eq!(items_in(&LAYOUT, 9), Some(2));
    assert_eq!((items_in(&LAYOUT, 8), items_in(&LAYOUT, 2)), (None, None));
    let huge = PayloadLayout { header: u32::MAX, item: 1, trailer: u32::MAX };
    assert_eq!(items_in(&huge, u32::MAX), None);
}
