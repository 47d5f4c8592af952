//! The test of a fabric: every pair of nodes is measured, and each link is held against all others, as ClusterKit does.
//!
//! In each round every node has one partner, so all links of a round are measured at once, and `n - 1` rounds have all
//! pairs of `n` nodes. A link that is slower than the median may have suffered from the others, or from the machine. So
//! suspects are measured again alone, beside links that were as usual. Only a link that is slower each time is bad.

mod judge;
mod rounds;
mod trial;

use crate::{
    cores,
    counters::{Counters, growth, losses},
    error::BenchError,
    idle_policy::Wait,
    launch::{LaunchedNodes, NodeLauncher},
};
use evb_core::{NodeId, Span};
use evb_record::{LinkSpeed, LinkVerdict, PairOfNodes, Qualification, RecordKind};
use judge::{is_settled, is_suspect, median_of, slower};
use rounds::rounds;
use std::time::Instant;
use trial::{Trial, Trials};

/// Factor from which a link is slower than usual.
pub const SLOWER: f64 = 1.5;
/// Measurements alone that a suspect must all fail to be bad.
const TRIES: usize = 5;

/// The test of a fabric.
pub struct FabricTest<'a> {
    /// The layer and its nodes.
    pub place: NodeLauncher<'a>,
    /// Number of nodes, at least 2.
    pub nodes: u16,
    /// The host of each node, if they are on several.
    pub hosts: Vec<String>,
    /// Length of the messages of the round trips, and of those by which throughput is measured, in bytes.
    pub sizes: [usize; 2],
    /// Time before each measurement.
    pub warmup: Span,
    /// Time of each measurement.
    pub duration: Span,
    /// Behaviour of nodes without work.
    pub wait: Wait,
    /// Seed of every random stream.
    pub seed: u64,
}

/// Packets that the interfaces of all machines have lost or found damaged during a test.
#[must_use]
pub fn interface_losses(record: &Qualification) -> u64 {
    machines(record).flat_map(|(_, counters)| losses(counters)).map(|(_, count)| count).sum()
}

/// The first node of each machine, and its counters: nodes of one machine see the same interfaces.
fn machines(record: &Qualification) -> impl Iterator<Item = (u16, &Counters)> {
    let hosts = &record.hosts;
    let is_first = |node: usize| hosts.get(node).map_or(node == 0, |host| !hosts[..node].contains(host));
    let all = (0..).zip(&record.counters);
    all.filter(move |(node, _)| is_first(usize::from(*node)))
}

/// A pair of nodes, the lower first.
type Pair = [NodeId; 2];

impl FabricTest<'_> {
    /// Measures all links. `step` takes the progress: what is measured now, the steps done and their number. `notice`
    /// takes messages about long steps.
    ///
    /// # Errors
    /// If the layer does not work here, a node was lost, or the test was stopped.
    pub fn run(
        &self,
        step: &mut dyn FnMut(&str, usize, usize),
        notice: &mut dyn FnMut(&str),
    ) -> Result<Qualification, BenchError> {
        let begin = Instant::now();
        let mut nodes = self.place.start([self.nodes], notice)?;
        let before = nodes.counters()?;
        let rounds = rounds(self.nodes);
        let mut links = Vec::new();
        for (index, round) in rounds.iter().enumerate() {
            step("all links", index, rounds.len());
            links.extend(round.iter().copied().zip(self.trials().measure(&mut *nodes, round)?));
        }
        links.sort_by_key(|(pair, _)| *pair);
        let usual = median_of(links.iter().map(|(_, trial)| trial.speed()));
        let mut record = self.record(&links, usual, rounds.len());
        record.usual_alone = self.look_again(&mut *nodes, &mut record.links, step)?;
        let after = nodes.counters()?;
        record.counters = before.iter().zip(&after).map(|(before, after)| growth(before, after)).collect();
        record.notes = self.notes(&record);
        record.good = record.links.iter().all(|link| link.verdict != LinkVerdict::Bad && link.lost == 0);
        record.seconds = begin.elapsed().as_secs_f64();
        Ok(record)
    }

    fn trials(&self) -> Trials {
        let Self { sizes, warmup, duration, wait, seed, .. } = *self;
        Trials { sizes, warmup, duration, wait, seed }
    }

    /// Measures suspects alone, and returns their verdicts. Each is measured just before or just after a link that was as usual,
    /// so that what slows down the whole machine slows down both. Returns the usual speed of a link that is
    /// measured alone, if there were suspects.
    fn look_again(
        &self,
        nodes: &mut dyn LaunchedNodes,
        links: &mut [PairOfNodes],
        step: &mut dyn FnMut(&str, usize, usize),
    ) -> Result<Option<LinkSpeed>, BenchError> {
        let (mut suspects, others): (Vec<_>, Vec<_>) =
            (0..links.len()).partition(|&index| is_suspect(links[index].slower));
        // Where all are suspects, each is held against another.
        let known = if others.is_empty() { suspects.clone() } else { others };
        let mut alone = |link: &PairOfNodes| -> Result<LinkSpeed, BenchError> {
            Ok(self.trials().measure(nodes, &[link.nodes.map(NodeId)])?[0].speed())
        };
        let mut references = Vec::new();
        for &index in &suspects {
            (links[index].verdict, links[index].slower) = (LinkVerdict::Bad, None);
        }
        for turn in 0..TRIES {
            suspects.retain(|&index| !is_settled(turn, links[index].slower));
            for (done, pair) in suspects.chunks(2).enumerate() {
                step("suspects alone", 2 * done, suspects.len());
                let mut others = known.iter().cycle().skip(references.len()).take(known.len());
                let other = *others.find(|link| !pair.contains(link)).unwrap_or(&pair[0]);
                let mut speeds = vec![alone(&links[pair[0]])?];
                let reference = alone(&links[other])?;
                for &suspect in &pair[1..] {
                    speeds.push(alone(&links[suspect])?);
                }
                references.push(reference);
                for (&suspect, speed) in pair.iter().zip(speeds) {
                    let link = &mut links[suspect];
                    link.alone.push(speed);
                    link.slower = link.slower.into_iter().chain(slower(speed, reference)).reduce(f64::min);
                    if !is_suspect(link.slower) {
                        link.verdict = LinkVerdict::Disturbed;
                    }
                }
            }
            suspects.retain(|&index| links[index].verdict == LinkVerdict::Bad);
            tracing::debug!(turn, suspects = suspects.len(), "suspects measured alone");
        }
        Ok((!references.is_empty()).then(|| median_of(references.into_iter())))
    }

    fn record(&self, links: &[(Pair, Trial)], usual: LinkSpeed, rounds: usize) -> Qualification {
        let link = |(pair, trial): &(Pair, Trial)| PairOfNodes {
            nodes: pair.map(|node| node.0),
            half_round_trip_ns: trial.half_round_trip_ns,
            least_round_trips_per_s: trial.least_round_trips_per_s,
            bytes_per_s: trial.bytes_per_s,
            least_bytes_per_s: trial.least_bytes_per_s,
            verdict: LinkVerdict::Good,
            slower: slower(trial.speed(), usual),
            alone: Vec::new(),
            lost: trial.lost,
        };
        Qualification {
            kind: RecordKind::Qualification,
            experiment: "bench".into(),
            seed: self.seed,
            version: evb_node::VERSION.into(),
            pattern: "all-pairs".into(),
            transport: self.place.layer.to_string(),
            nodes: self.nodes,
            hosts: self.hosts.clone(),
            size_bytes: self.sizes[0] as u64,
            bulk_bytes: self.sizes[1] as u64,
            rounds: rounds as u16,
            seconds: 0.0,
            usual,
            usual_alone: None,
            links: links.iter().map(link).collect(),
            counters: Vec::new(),
            not_accepted: Vec::new(),
            notes: Vec::new(),
            good: false,
        }
    }

    fn notes(&self, record: &Qualification) -> Vec<String> {
        let mut notes = Vec::new();
        for (node, counters) in machines(record) {
            notes
                .extend(losses(counters).map(|(name, count)| format!("{}: {name} grew by {count}", record.name(node))));
        }
        if self.hosts.is_empty() && usize::from(self.nodes) > cores::allowed().len() {
            notes.push("there are more nodes than cores: links wait for processors, too".into());
        }
        if self.nodes == 2 {
            notes.push("with two nodes there is one link, and nothing that it could be held against".into());
        }
        notes
    }
}
