//! The comparison of evb and its peers in turns. Its results are the rows of the table.

use super::{
    ours::{OurMeasure, Reading},
    table::{Bar, Problem, Row, Unit},
    theirs::Measure,
};

/// A task of evb and of other tools.
pub(super) struct Comparison {
    pub(super) what: String,
    pub(super) unit: Unit,
    /// Sizes in bytes; there is a row for each size and peer.
    pub(super) sizes: &'static [u32],
    pub(super) ours: OurMeasure,
    pub(super) peers: Vec<Peer>,
}

/// A comparison of evb with a peer.
pub(super) struct Peer {
    pub(super) name: String,
    /// The statistic that the peer reports of its single times, and with which it is compared.
    pub(super) statistic: Statistic,
    pub(super) bar: Option<Bar>,
    pub(super) pinned: &'static str,
    pub(super) theirs: Theirs,
    /// The reason why it is not measured.
    pub(super) skipped: Option<String>,
}

#[derive(Clone, Copy)]
pub(super) enum Statistic {
    Median,
    Mean,
}

pub(super) enum Theirs {
    /// The limit of the cores, from the record of evb.
    Limit,
    /// A tool.
    Program(Measure),
}

impl Comparison {
    /// Measures in turns. `core_to_core` measures the speed of the cores before and after.
    pub(super) fn run(&self, repetitions: usize, core_to_core: impl Fn() -> Vec<f64>) -> Vec<Row> {
        let mut rows = self.empty_rows();
        let mut cores = core_to_core();
        for repetition in 1..=repetitions {
            if rows.iter().all(|row| row.problem.is_some()) {
                break;
            }
            eprintln!("lab: {}, {repetition}/{repetitions}", self.what);
            match (self.ours)() {
                Ok(readings) => {
                    cores.extend(readings.iter().flat_map(|reading| reading.cores.clone()));
                    self.measure_peers(&readings, &mut rows);
                }
                Err(why) => {
                    rows.iter_mut().for_each(|row| row.fail(&format!("evb: {why}")));
                    break;
                }
            }
        }
        cores.extend(core_to_core());
        rows.iter_mut().for_each(|row| row.cores.clone_from(&cores));
        rows
    }

    /// A row for each size of each peer, peer by peer.
    fn empty_rows(&self) -> Vec<Row> {
        let row = |peer: &Peer, size: u32| Row {
            what: format!("{}, {size} B", self.what),
            peer: peer.name.clone(),
            unit: self.unit,
            bar: peer.bar,
            pinned: peer.pinned,
            ours: Vec::new(),
            theirs: Vec::new(),
            cores: Vec::new(),
            problem: peer.skipped.clone().map(Problem::Skipped),
        };
        self.peers.iter().flat_map(|peer| self.sizes.iter().map(move |&size| row(peer, size))).collect()
    }

    fn measure_peers(&self, readings: &[Reading], rows: &mut [Row]) {
        for (peer, rows) in self.peers.iter().zip(rows.chunks_mut(self.sizes.len())) {
            if rows.iter().any(|row| row.problem.is_some()) {
                continue;
            }
            let theirs = match &peer.theirs {
                Theirs::Limit => readings.iter().map(|reading| reading.limit.ok_or("no two cores".into())).collect(),
                Theirs::Program(measure) => measure(),
            };
            match theirs {
                Ok(theirs) if theirs.len() == rows.len() && readings.len() == rows.len() => {
                    for ((row, reading), their) in rows.iter_mut().zip(readings).zip(theirs) {
                        row.ours.push(reading.of(peer.statistic));
                        row.theirs.push(their);
                    }
                }
                Ok(theirs) => {
                    let (ours, theirs, sizes) = (readings.len(), theirs.len(), rows.len());
                    let why = format!("{sizes} sizes, but {ours} results of evb and {theirs} of the peer");
                    rows.iter_mut().for_each(|row| row.fail(&why));
                }
                Err(why) => rows.iter_mut().for_each(|row| row.fail(&why)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const SIZES: &[u32] = &[8, 64];

    fn reading(value: f64) -> Reading {
        Reading { median: value, mean: value * 2.0, limit: Some(value / 2.0), cores: vec![60.0] }
    }

    fn peer(statistic: Statistic, theirs: Theirs, skipped: Option<&str>) -> Peer {
        let skipped = skipped.map(str::to_owned);
        Peer { name: "peer".into(), statistic, bar: None, pinned: "", theirs, skipped }
    }

    fn comparison(ours: OurMeasure, peers: Vec<Peer>) -> Comparison {
        Comparison { what: "it".into(), unit: Unit::Nanoseconds, sizes: SIZES, ours, peers }
    }

    #[test]
    fn peers_are_compared_with_their_own_statistic() {
        let count = Cell::new(0.0);
        let ours = Box::new(move || {
            count.set(count.get() + 1.0);
            Ok(vec![reading(count.get()), reading(10.0 * count.get())])
        });
        let program = || Theirs::Program(Box::new(|| Ok(vec![3.0, 4.0])));
        let peers = vec![peer(Statistic::Median, Theirs::Limit, None), peer(Statistic::Mean, program(), None)];
        let rows = comparison(ours, peers).run(2, || vec![50.0]);
        let numbers = |row: usize| (&rows[row].ours[..], &rows[row].theirs[..]);
        assert_eq!(numbers(0), (&[1.0, 2.0][..], &[0.5, 1.0][..]));
        assert_eq!(numbers(1), (&[10.0, 20.0][..], &[5.0, 10.0][..]));
        assert_eq!(numbers(2), (&[2.0, 4.0][..], &[3.0, 3.0][..]));
        assert_eq!(numbers(3), (&[20.0, 40.0][..], &[4.0, 4.0][..]));
        assert_eq!(rows[0].cores, [50.0, 60.0, 60.0, 60.0, 60.0, 50.0]);
        assert_eq!(rows[3].what, "it, 64 B");
    }

    #[test]
    fn a_failure_affects_only_its_own_rows() {
        let ours = || Box::new(|| Ok(vec![reading(1.0), reading(2.0)])) as OurMeasure;
        let fails = Theirs::Program(Box::new(|| Err("it broke".into())));
        let short = Theirs::Program(Box::new(|| Ok(vec![1.0])));
        let peers = vec![
            peer(Statistic::Median, fails, None),
            peer(Statistic::Median, short, None),
            peer(Statistic::Median, Theirs::Limit, Some("no tool")),
            peer(Statistic::Median, Theirs::Limit, None),
        ];
        let rows = comparison(ours(), peers).run(3, Vec::new);
        let verdicts: Vec<_> = rows.iter().step_by(2).map(Row::verdict).collect();
        let short = "failed: 2 sizes, but 2 results of evb and 1 of the peer";
        assert_eq!(verdicts, ["failed: it broke", short, "skipped: no tool", "-"]);
        let broken = comparison(Box::new(|| Err("no evb".into())), vec![peer(Statistic::Mean, Theirs::Limit, None)]);
        assert!(broken.run(3, Vec::new).iter().all(|row| row.verdict() == "failed: evb: no evb"));
    }
}
