//! The measurements of a suite.

use crate::{benchmark::Benchmark, idle_policy::Wait, measurement::Measurement, times::times, wire::SMALLEST_BYTES};
use evb_core::Span;
use evb_transport_registry::LayerChoice;

/// Sizes of ATLAS DAQ note 77 (section 2) in bytes; the smallest one here is the word with the kind of a message.
pub const NOTE_SIZES: [usize; 4] = [SMALLEST_BYTES, 64, 256, 1024];
/// Computing times of the note's farms, in microseconds.
pub const NOTE_COMPUTE_US: [u64; 4] = [0, 100, 400, 1600];
/// Nodes of the note's farms: four senders and a receiver.
pub const NOTE_FARM_NODES: u16 = 5;
/// Fewest and most buffers of an event in "The use of Ethernet in the ATLAS second level trigger" (1998), section "The
/// Macrame switching testbed".
pub const DEFAULT_GATHERS: (u16, u16) = (3, 20);
/// Rate of the events that are gathered, per second, unless it is given.
pub const GATHER_RATE_HZ: f64 = 1e3;
/// Data size in the note's farms in bytes, from which the parameters are taken.
pub const NOTE_DATA_BYTES: usize = 1024;

/// Bytes by which a size of a sweep is varied, as NetPIPE does, to find effects of alignment.
const PERTURBATION: usize = 3;

/// The selection of measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// The patterns.
    pub benchmarks: Vec<Benchmark>,
    /// Sizes of the data in bytes.
    pub sizes: Vec<usize>,
    /// Numbers of nodes; a pattern that cannot use one uses the next below. An empty list means those of the note for
    /// each pattern, up to [`most_nodes`](Suite::most_nodes).
    pub nodes: Vec<u16>,
    /// Most nodes if none are given.
    pub most_nodes: u16,
    /// Computing times of farms.
    pub compute: Vec<Span>,
    /// Messages that a sender has in flight; `None` for the default of the pattern.
    pub window: Option<u32>,
    /// Rate at which senders offer messages, per second, for patterns with a rate; of gathering: rate of events, which is
    /// [`GATHER_RATE_HZ`] without one.
    pub rate: Option<f64>,
    /// Fewest and most senders that a receiver gathers an event from.
    pub gathers: (u16, u16),
    /// The receivers of assigned senders, from 0: of the first, the second and so on, and then from the beginning again.
    pub to: Vec<u16>,
    /// Time before each measurement; `None` for that of the layer.
    pub warmup: Option<Span>,
    /// Time of each measurement; `None` for that of the layer.
    pub duration: Option<Span>,
    /// Behaviour of nodes without work.
    pub wait: Wait,
    /// Seed of every random stream.
    pub seed: u64,
}

impl Suite {
    /// All measurements on a layer, each once, pattern by pattern.
    #[must_use]
    pub fn measurements(&self, layer: &LayerChoice) -> Vec<Measurement> {
        let mut measurements = Vec::new();
        for &benchmark in &self.benchmarks {
            let nodes = self.nodes_of(benchmark, layer);
            let compute = if benchmark.computes() { &self.compute[..] } else { &[Span::ZERO] };
            for nodes in nodes {
                for &size in &self.sizes {
                    measurements.extend(
                        compute.iter().map(|&compute| self.measurement(benchmark, nodes, size, compute, layer)),
                    );
                }
            }
        }
        measurements
    }

    fn nodes_of(&self, benchmark: Benchmark, layer: &LayerChoice) -> Vec<u16> {
        let most = layer.info().most_nodes.map_or(self.most_nodes, |most| most.min(self.most_nodes));
        let wanted = match &self.nodes[..] {
            [] if benchmark == Benchmark::Assigned => vec![fewest_nodes(&self.to)],
            [] => benchmark.note_nodes().iter().copied().filter(|&nodes| nodes <= most).collect(),
            given => given.to_vec(),
        };
        let mut nodes: Vec<_> = wanted.into_iter().filter_map(|most| benchmark.nodes_of(most)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    fn measurement(
        &self,
        benchmark: Benchmark,
        nodes: u16,
        size: usize,
        compute: Span,
        layer: &LayerChoice,
    ) -> Measurement {
        let (warmup, duration) = times(layer, size, compute);
        Measurement {
            benchmark,
            nodes,
            size: size.max(SMALLEST_BYTES),
            compute,
            window: self.window.unwrap_or(benchmark.default_window()),
            rate: match self.rate {
                None if benchmark.needs_rate() => Some(GATHER_RATE_HZ),
                rate => rate.filter(|_| benchmark.takes_rate()),
            },
            gathers: self.gathers,
            to: self.to.clone(),
            warmup: self.warmup.unwrap_or(warmup),
            duration: self.duration.unwrap_or(duration),
            wait: self.wait,
            seed: self.seed,
        }
    }
}

/// Fewest nodes for assigned senders with these receivers: as many senders, and every receiver that is named.
#[must_use]
pub fn fewest_nodes(to: &[u16]) -> u16 {
    let most = to.iter().max().map_or(1, |&most| most.saturating_add(1));
    most.max(to.len() as u16).saturating_mul(2)
}

/// Sizes of a sweep up to `longest` bytes: powers of two, each with 3 bytes less and more.
#[must_use]
pub fn perturbed_sizes(longest: usize) -> Vec<usize> {
    let powers = (SMALLEST_BYTES.ilog2()..usize::BITS - 1).map(|power| 1 << power).take_while(|&size| size <= longest);
    let sizes = powers.flat_map(|size: usize| [size - PERTURBATION, size, size + PERTURBATION]);
    sizes.filter(|size| (SMALLEST_BYTES..=longest).contains(size)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite() -> Suite {
        Suite {
            benchmarks: Benchmark::ALL.to_vec(),
            sizes: NOTE_SIZES.to_vec(),
            nodes: vec![2, 4, 5],
            most_nodes: 9,
            compute: NOTE_COMPUTE_US.map(Span::from_micros).to_vec(),
            window: None,
            rate: Some(1e3),
            gathers: DEFAULT_GATHERS,
            to: vec![0],
            warmup: None,
            duration: Some(Span::from_millis(1)),
            wait: Wait::Yield,
            seed: 1,
        }
    }

    fn layer(name: &str) -> LayerChoice {
        name.parse().expect("a layer")
    }

    #[test]
    fn each_pattern_has_the_nodes_that_it_can_use() {
        let measurements = suite().measurements(&layer("tcp"));
        let nodes = |benchmark| {
            let mut nodes: Vec<_> = measurements.iter().filter(|c| c.benchmark == benchmark).map(|c| c.nodes).collect();
            nodes.dedup();
            nodes
        };
        assert_eq!(nodes(Benchmark::PingPong), [2]);
        assert_eq!(nodes(Benchmark::Pairs), [2, 4], "pairs of five nodes are those of four");
        assert_eq!(nodes(Benchmark::AllToAll), [2, 4, 5]);
        let farms = measurements.iter().filter(|measurement| measurement.benchmark == Benchmark::PullFarm).count();
        assert_eq!(farms, 3 * 4 * 4, "nodes, sizes, times of computing");
        assert!(
            measurements.iter().all(|measurement| measurement.rate.is_some() == measurement.benchmark.takes_rate())
        );
    }

    #[test]
    fn without_a_rate_events_are_gathered_at_one_and_others_go_as_fast_as_they_can() {
        let measurements = Suite { rate: None, ..suite() }.measurements(&layer("tcp"));
        for measurement in measurements {
            let expected = measurement.benchmark.needs_rate().then_some(GATHER_RATE_HZ);
            assert_eq!(measurement.rate, expected, "{measurement:?}");
        }
    }

    #[test]
    fn without_a_number_the_nodes_are_those_of_the_note() {
        let suite = Suite { nodes: Vec::new(), ..suite() };
        let nodes = |benchmark| suite.nodes_of(benchmark, &layer("tcp"));
        assert_eq!(nodes(Benchmark::Broadcast), [2, 3, 5, 9], "1, 2, 4 and 8 receivers");
        assert_eq!(nodes(Benchmark::AllToAll), [2, 4, 8]);
        assert_eq!(nodes(Benchmark::Funnel), [5]);
    }

    #[test]
    fn a_layer_has_its_own_times_and_limits() {
        let suite = Suite { nodes: Vec::new(), most_nodes: 99, duration: None, ..suite() };
        let nodes = |layer| suite.measurements(&layer).iter().map(|measurement| measurement.nodes).max();
        assert_eq!(nodes(layer("tcp")), Some(65));
        assert_eq!(nodes(layer("velo-rtl")), Some(16), "its switch has as many ports");
        let farms =
            suite.measurements(&layer("velo-rtl")).into_iter().filter(|measurement| measurement.compute > Span::ZERO);
        assert!(
            farms
                .map(|measurement| (measurement.compute, measurement.duration))
                .all(|(compute, duration)| duration > compute)
        );
        let measurements = suite.measurements(&layer("tcp"));
        assert!(
            measurements.iter().all(|measurement| measurement.duration == Span::from_millis(100)),
            "real time, whatever is computed"
        );
    }

    #[test]
    fn sizes_are_disturbed() {
        assert_eq!(perturbed_sizes(40), [8, 11, 13, 16, 19, 29, 32, 35]);
    }
}
