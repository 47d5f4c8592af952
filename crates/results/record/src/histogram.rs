//! The histograms of a run, which builder units fill while they build its events.
//!
//! A channel is remarked only on evidence. What its count is compared with is the median of all channels that have
//! entries, and the median of its nearest neighbours: a beam spot makes neighbours alike, and noise does not.

use crate::{Finding, FindingKind};
use serde::{Deserialize, Serialize};

/// A noisy channel has more than this many times the entries of the channels that it is compared with.
const NOISY: f64 = 10.0;
/// Standard deviations of the two counts by which a channel must differ.
const DEVIATIONS: f64 = 5.0;
/// Neighbours on each side with which a channel is compared.
const NEIGHBOURS: usize = 2;
/// Channels with entries below which nothing is compared.
const LEAST_CHANNELS: usize = 4;
/// Most channels that a finding lists.
const MOST_LISTED: usize = 8;

/// A histogram of one quantity of the fragments of one source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Its name, which no other histogram of the run has.
    pub name: String,
    /// The source of the fragments, such as `ru3`, or `source 5` of a readout unit with several.
    pub source: String,
    /// The quantity: `size`, `hits` or a field of the decoder.
    pub field: String,
    /// The lower and the upper end of all bins. Values at the upper end are above it.
    pub range: [f64; 2],
    /// The bins are channels: one for each whole number of the range.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub channels: bool,
    /// One event in this many was looked at: those whose number is a multiple.
    pub one_in: u64,
    /// Values that were counted, inside the range and outside.
    pub entries: u64,
    /// The mean of the values inside the range; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Values below the range.
    pub underflow: u64,
    /// Values at its upper end or above, and those that are not a number.
    pub overflow: u64,
    /// Fragments whose values were counted.
    pub fragments: u64,
    /// Fragments whose payload does not fit the decoder.
    pub unfit: u64,
    /// Fragments that were missing or bad.
    pub missing: u64,
    /// Entries of each bin, all of one width.
    pub bins: Vec<u64>,
}

/// The channels of a histogram that stand out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OddChannels {
    /// Channels with far more entries than the others.
    pub noisy: Vec<i64>,
    /// Channels without entries whose neighbours have many.
    pub silent: Vec<i64>,
}

impl Histogram {
    /// Values inside the range.
    pub const fn inside(&self) -> u64 {
        self.entries.saturating_sub(self.outside())
    }

    /// Values outside the range.
    pub const fn outside(&self) -> u64 {
        self.underflow.saturating_add(self.overflow)
    }

    /// The number of the first channel.
    fn first_channel(&self) -> i64 {
        self.range[0] as i64
    }

    /// Adds what another builder has filled into the same histogram.
    pub fn add(&mut self, other: &Self) {
        let (mine, theirs) = (self.inside() as f64, other.inside() as f64);
        self.mean = match (self.mean, other.mean) {
            (Some(one), Some(two)) => Some(one + (two - one) * (theirs / (mine + theirs))),
            (one, two) => one.or(two),
        };
        self.entries += other.entries;
        self.underflow += other.underflow;
        self.overflow += other.overflow;
        self.fragments += other.fragments;
        self.unfit += other.unfit;
        self.missing += other.missing;
        self.bins.iter_mut().zip(&other.bins).for_each(|(all, one)| *all += one);
    }

    /// The channels that stand out. Without [`channels`](Self::channels) there are none.
    ///
    /// A channel is noisy if it has more than 10 times the entries of the channels that it is compared with, by more than
    /// 5 standard deviations. It is silent if it has none where those channels have more than 25.
    pub fn odd_channels(&self) -> OddChannels {
        let mut odd = OddChannels::default();
        let with_entries: Vec<u64> = self.bins.iter().copied().filter(|&count| count > 0).collect();
        if !self.channels || with_entries.len() < LEAST_CHANNELS {
            return odd;
        }
        let all = medians(with_entries);
        for (channel, (bin, &count)) in (self.first_channel()..).zip(self.bins.iter().enumerate()) {
            let (count, near) = (count as f64, self.near(bin));
            if is_noisy(count, all.1.max(near.1)) {
                odd.noisy.push(channel);
            } else if count == 0.0 && all.0.min(near.0) > DEVIATIONS * DEVIATIONS {
                odd.silent.push(channel);
            }
        }
        odd
    }

    /// The medians of the nearest neighbours of a bin.
    fn near(&self, bin: usize) -> (f64, f64) {
        let before = &self.bins[bin.saturating_sub(NEIGHBOURS)..bin];
        let behind = &self.bins[bin + 1..(bin + 1 + NEIGHBOURS).min(self.bins.len())];
        medians([before, behind].concat())
    }

    /// Remarks about the channels that stand out.
    pub fn findings(&self) -> Vec<Finding> {
        let OddChannels { noisy, silent } = self.odd_channels();
        let finding = |kind, channels: &[i64], what: &str| {
            let message = format!("{}: {} {what}", self.name, listed(channels));
            // A histogram may have the name of a node.
            (!channels.is_empty()).then(|| Finding::new(kind, format!("histogram {}", self.name), message))
        };
        let noisy = finding(FindingKind::NoisyChannel, &noisy, "far more entries than the others");
        let silent = finding(FindingKind::SilentChannel, &silent, "no entries, and the neighbours have many");
        noisy.into_iter().chain(silent).collect()
    }
}

/// True if a count is far above another one.
fn is_noisy(count: f64, other: f64) -> bool {
    count > NOISY * other && count - other > DEVIATIONS * (count + other).sqrt()
}

/// The lower and the upper median, which differ if there are two in the middle; 0 of nothing.
fn medians(mut counts: Vec<u64>) -> (f64, f64) {
    counts.sort_unstable();
    let at = |place: usize| counts.get(place).copied().unwrap_or(0) as f64;
    (at(counts.len().saturating_sub(1) / 2), at(counts.len() / 2))
}

/// The names of channels in a sentence, with the verb.
fn listed(channels: &[i64]) -> String {
    let names: Vec<_> = channels.iter().take(MOST_LISTED).map(i64::to_string).collect();
    let more = channels.len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    match channels.len() {
        1 => format!("channel {} has", names[0]),
        _ => format!("channels {}{more} have", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_channels(bins: &[u64]) -> Histogram {
        let entries = bins.iter().sum();
        let range = [0.0, bins.len() as f64];
        Histogram {
            name: "channel of ru0".into(),
            range,
            channels: true,
            entries,
            bins: bins.into(),
            ..Histogram::default()
        }
    }

    fn odd(bins: &[u64]) -> (Vec<i64>, Vec<i64>) {
        let OddChannels { noisy, silent } = of_channels(bins).odd_channels();
        (noisy, silent)
    }

    #[test]
    fn a_noisy_and_a_silent_channel_stand_out() {
        assert_eq!(odd(&[100, 90, 5000, 110, 0, 95, 105, 98]), (vec![2], vec![4]));
        assert_eq!(odd(&[100, 5000, 6000, 110, 95, 105, 98]), (vec![1, 2], vec![]), "two of them side by side");
        let findings = of_channels(&[100, 5000, 6000, 110, 0, 105, 98]).findings();
        let messages: Vec<_> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "channel of ru0: channels 1, 2 have far more entries than the others",
                "channel of ru0: channel 4 has no entries, and the neighbours have many"
            ]
        );
    }

    #[test]
    fn channels_are_named_by_their_number() {
        let histogram = Histogram { range: [-4.0, 4.0], ..of_channels(&[9, 9, 9, 9, 9, 900, 9, 9]) };
        assert_eq!(histogram.odd_channels().noisy, [1]);
    }

    #[test]
    fn nothing_is_remarked_without_evidence() {
        assert_eq!(odd(&[1, 1, 1, 12, 1, 1, 1, 1]), (vec![], vec![]), "few entries");
        assert_eq!(odd(&[20, 25, 22, 0, 24, 21]), (vec![], vec![]), "few entries");
        assert_eq!(odd(&[2, 3, 20, 150, 900, 2000, 1000, 160, 15, 2, 1]), (vec![], vec![]), "a beam spot");
        assert_eq!(odd(&[100, 100, 100, 100, 0, 0, 0, 0]), (vec![], vec![]), "half of it may have no detector");
        assert_eq!(odd(&[0, 0, 5000, 1]), (vec![], vec![]), "too few channels");
        assert_eq!(odd(&[]), (vec![], vec![]));
        let no_channels = Histogram { channels: false, ..of_channels(&[100, 90, 5000, 110, 0, 95]) };
        assert_eq!(no_channels.odd_channels(), OddChannels::default());
    }

    #[test]
    fn a_long_list_of_channels_is_cut() {
        let mut bins = vec![10; 100];
        (0..10).for_each(|nth| bins[5 + 10 * nth] = 10_000);
        let message = of_channels(&bins).findings()[0].message.clone();
        assert!(message.contains("channels 5, 15, 25, 35, 45, 55, 65, 75 and 2 more have far more"), "{message}");
    }

    #[test]
    fn the_sum_of_two_builders_is_that_of_one() {
        let one = Histogram { mean: Some(1.0), underflow: 1, entries: 5, bins: vec![3, 1], ..Histogram::default() };
        let two = Histogram { mean: Some(2.0), overflow: 2, entries: 14, bins: vec![4, 8], ..Histogram::default() };
        let mut all = one.clone();
        all.add(&two);
        assert_eq!((all.entries, all.inside(), all.outside(), all.bins.as_slice()), (19, 16, 3, &[7, 9][..]));
        assert_eq!(all.mean, Some(1.75));
        let mut empty = Histogram { bins: vec![0, 0], ..Histogram::default() };
        empty.add(&one);
        assert_eq!(empty, one);
    }
}
