//! How full the units are, on average over many samples.

use crate::{BuilderReport, ReadoutReport};
use evb_experiment::Plan;
use evb_record::{BuilderOccupancy, Occupancy, ReadoutOccupancy};

/// Sums over samples of the reports of all units.
#[derive(Clone, Debug)]
pub(crate) struct OccupancySamples {
    sums: Occupancy,
    buffer_events: f64,
    buffer_bytes: f64,
}

impl OccupancySamples {
    pub(crate) fn new(plan: &Plan) -> Self {
        let config = &plan.building;
        let sums = Occupancy {
            readouts: vec![ReadoutOccupancy::default(); config.readout_units.into()],
            builders: vec![BuilderOccupancy::default(); config.builder_units.into()],
            ..Occupancy::default()
        };
        let (buffer_events, buffer_bytes) =
            (f64::from(config.buffer_events).max(1.0), config.buffer_bytes.0.max(1) as f64);
        Self { sums, buffer_events, buffer_bytes }
    }

    /// Samples the latest reports.
    pub(crate) fn sample(&mut self, readouts: &[ReadoutReport], builders: &[BuilderReport]) {
        self.sums.looks += 1;
        for (sum, ReadoutReport { held, .. }) in self.sums.readouts.iter_mut().zip(readouts) {
            sum.filled += (held.events as f64 / self.buffer_events).max(held.bytes as f64 / self.buffer_bytes);
        }
        for (sum, BuilderReport { open, .. }) in self.sums.builders.iter_mut().zip(builders) {
            sum.building += open.building as f64;
            sum.storing += open.storing as f64;
            let waited_for = self.sums.readouts.iter_mut().zip(&open.lacking);
            waited_for.for_each(|(readout, events)| readout.waited_for += *events as f64);
        }
    }

    /// The means, or `None` without a sample.
    pub(crate) fn means(&self) -> Option<Occupancy> {
        let samples = self.sums.looks as f64;
        let mut means = self.sums.clone();
        for readout in &mut means.readouts {
            readout.filled /= samples;
            readout.waited_for /= samples;
        }
        for builder in &mut means.builders {
            builder.building /= samples;
            builder.storing /= samples;
        }
        (self.sums.looks > 0).then_some(means)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BufferFill, OpenCounts};
    use evb_protocol::Config;
    use evb_sources::SourceSpec;

    #[test]
    fn means_are_over_all_samples_and_a_buffer_is_full_by_events_or_bytes() {
        let building = Config { buffer_events: 10, buffer_bytes: evb_core::ByteCount(1000), ..Config::new(2, 1) };
        let plan = Plan::new(building, SourceSpec::Fixed { size: "2 B".parse().unwrap() });
        let mut samples = OccupancySamples::new(&plan);
        assert_eq!(samples.means(), None);
        let readout = |events, bytes| ReadoutReport { held: BufferFill { events, bytes }, ..ReadoutReport::default() };
        let open = OpenCounts { building: 4, storing: 2, lacking: vec![0, 4] };
        samples.sample(&[readout(5, 100), readout(1, 900)], &[BuilderReport { open, ..BuilderReport::default() }]);
        samples.sample(&[readout(0, 0), readout(1, 900)], &[BuilderReport::default()]);
        let means = samples.means().unwrap();
        assert_eq!((means.looks, means.readouts[0].filled, means.readouts[1].filled), (2, 0.25, 0.9));
        assert_eq!((means.readouts[0].waited_for, means.readouts[1].waited_for), (0.0, 2.0));
        assert_eq!(means.builders, [BuilderOccupancy { building: 2.0, storing: 1.0 }]);
    }
}
