//! The counts of a histogram.

/// Bins of one width, and what is outside.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tally {
    low: f64,
    high: f64,
    /// Width of a bin.
    width: f64,
    /// Bins per unit.
    scale: f64,
    pub(super) bins: Vec<u64>,
    pub(super) underflow: u64,
    pub(super) overflow: u64,
    /// Values inside.
    inside: u64,
    /// Sum of the distances of these values from the lower end.
    sum: f64,
}

impl Tally {
    pub(super) fn new(bins: u32, [low, high]: [f64; 2]) -> Self {
        let width = (high - low) / f64::from(bins);
        let scale = f64::from(bins) / (high - low);
        Self { low, high, width, scale, bins: vec![0; bins as usize], underflow: 0, overflow: 0, inside: 0, sum: 0.0 }
    }

    /// Counts a value. One that is not a number is above all bins, as in other libraries of histograms.
    #[inline]
    pub(super) fn count(&mut self, value: f64) {
        if value < self.low {
            self.underflow += 1;
        } else if value < self.high {
            self.sum += value - self.low;
            self.inside += 1;
            let bin = self.bin(value);
            self.bins[bin] += 1;
        } else {
            self.overflow += 1;
        }
    }

    /// The bin of a value inside. Rounding may lead to the bin beside it, and its edges decide.
    #[inline]
    fn bin(&self, value: f64) -> usize {
        let near = (((value - self.low) * self.scale) as usize).min(self.bins.len() - 1);
        let edge = |bin: usize| bin as f64 * self.width + self.low;
        if value < edge(near) {
            near.saturating_sub(1)
        } else if value >= edge(near + 1) {
            (near + 1).min(self.bins.len() - 1)
        } else {
            near
        }
    }

    /// Values inside and outside.
    pub(super) const fn entries(&self) -> u64 {
        self.inside + self.underflow + self.overflow
    }

    /// The mean of the values inside.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.inside > 0).then(|| self.low + self.sum / self.inside as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bins: u32, range: [f64; 2], values: &[f64]) -> Tally {
        let mut tally = Tally::new(bins, range);
        values.iter().for_each(|value| tally.count(*value));
        tally
    }

    #[test]
    fn values_are_in_their_bins_or_outside() {
        let tally = of(4, [0.0, 4.0], &[-0.5, 0.0, 0.5, 1.0, 3.999, 4.0, 1e300, f64::NAN, f64::NEG_INFINITY]);
        assert_eq!((tally.bins.as_slice(), tally.underflow, tally.overflow), (&[2, 1, 0, 1][..], 2, 3));
        assert_eq!((tally.entries(), tally.mean()), (9, Some((0.5 + 1.0 + 3.999) / 4.0)));
        assert_eq!(of(4, [0.0, 4.0], &[9.0]).mean(), None);
    }

    /// Counts of `numpy.histogram(values, bins=7, range=(-1, 2))` with `values = numpy.arange(-15, 25) / 10`.
    #[test]
    fn bins_are_those_of_numpy() {
        let values: Vec<_> = (-15..25).map(|tenth| f64::from(tenth) / 10.0).collect();
        let tally = of(7, [-1.0, 2.0], &values);
        assert_eq!((tally.bins.as_slice(), tally.underflow, tally.overflow), (&[5, 4, 4, 5, 4, 4, 4][..], 5, 5));
    }

    /// Every edge belongs to the bin above it, whatever the rounding.
    #[test]
    fn a_value_at_an_edge_is_in_the_upper_bin() {
        for (bins, low, high) in
            [(10, 0.0, 1.0), (49, 0.0, 7.0), (1000, -3.3, 4.7), (128, 0.0, 4096.0), (3, 1e-9, 2e-9)]
        {
            let mut tally = Tally::new(bins, [low, high]);
            let width = (high - low) / f64::from(bins);
            (0..bins).for_each(|bin| tally.count(f64::from(bin) * width + low));
            assert!(tally.bins.iter().all(|&count| count == 1), "{bins} bins from {low} to {high}: {:?}", tally.bins);
        }
    }
}
