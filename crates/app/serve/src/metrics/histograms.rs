//! The metrics of the histograms of `[[monitor]]`.

use super::{Labels, Metric};
use evb_record::Histogram;

/// The metrics of histograms, in numbers that do not grow with their bins.
pub(super) fn metrics(histograms: &[Histogram]) -> Vec<Metric> {
    if histograms.is_empty() {
        return Vec::new();
    }
    let labels = |one: &Histogram| vec![("histogram", one.name.clone()), ("source", one.source.clone())];
    let counts = |what: &'static str, of: &dyn Fn(&Histogram) -> Vec<(&'static str, u64)>| -> Vec<(Labels, f64)> {
        let with = |one: &Histogram, (name, count): (&str, u64)| {
            (labels(one).into_iter().chain([(what, name.to_owned())]).collect(), count as f64)
        };
        histograms.iter().flat_map(|one| of(one).into_iter().map(move |count| with(one, count))).collect()
    };
    let entries =
        counts("place", &|one| vec![("inside", one.inside()), ("below", one.underflow), ("above", one.overflow)]);
    let fragments =
        counts("state", &|one| vec![("counted", one.fragments), ("unfit", one.unfit), ("missing", one.missing)]);
    let odd = counts("kind", &|one| {
        let odd = one.odd_channels();
        let channels = [("noisy", odd.noisy.len() as u64), ("silent", odd.silent.len() as u64)];
        channels.into_iter().filter(|_| one.channels).collect()
    });
    let means = histograms.iter().filter_map(|one| Some((labels(one), one.mean?))).collect();
    vec![
        Metric::counter("histogram_entries", "Values that a histogram counted, by place", entries),
        Metric::counter("histogram_fragments", "Fragments that a histogram looked at, by state", fragments),
        Metric::gauge("histogram_mean", "Mean of the values inside the range of a histogram", means),
        Metric::gauge("histogram_odd_channels", "Channels of a histogram that stand out, by kind", odd),
    ]
}
