//! The test of a fabric, in text and as plots.

use crate::texts::snapshot;
use evb_record::{LinkSpeed, LinkVerdict, PairOfNodes, Qualification, RecordKind, Times};
use evb_report::{qualification_plots, qualification_summary};
use std::collections::BTreeMap;

fn speed(ns: f64, bytes_per_s: f64) -> LinkSpeed {
    LinkSpeed {
        half_round_trip_ns: ns,
        mean_half_round_trip_ns: 1.5 * ns,
        least_round_trips_per_s: 0.4e9 / ns,
        bytes_per_s,
    }
}

fn link(nodes: [u16; 2], ns: f64, verdict: LinkVerdict, slower: Option<f64>) -> PairOfNodes {
    let samples = if ns > 0.0 { 100 } else { 0 };
    PairOfNodes {
        nodes,
        half_round_trip_ns: Times { p50: ns, max: 9.0 * ns, samples, ..Times::default() },
        least_round_trips_per_s: 1.0,
        bytes_per_s: [1.2e9, 0.9e9],
        least_bytes_per_s: [1e9, 0.8e9],
        verdict,
        slower,
        alone: vec![speed(ns, 0.9e9)],
        lost: 0,
    }
}

/// Four nodes: one link is bad, one was disturbed, and on one nothing came through.
fn fabric() -> Qualification {
    use LinkVerdict::{Bad, Disturbed, Good};
    let links = vec![
        link([0, 1], 6e3, Good, Some(1.0)),
        link([0, 2], 19e3, Bad, Some(3.1)),
        link([0, 3], 6.5e3, Good, Some(1.1)),
        link([1, 2], 0.0, Bad, None),
        link([1, 3], 9e3, Disturbed, Some(1.04)),
        link([2, 3], 5.5e3, Good, Some(0.92)),
    ];
    Qualification {
        kind: RecordKind::Qualification,
        experiment: "bench".into(),
        seed: 1,
        version: "0".into(),
        pattern: "all-pairs".into(),
        transport: "tcp".into(),
        nodes: 4,
        hosts: ["north", "east", "south", "west"].map(str::to_owned).to_vec(),
        size_bytes: 64,
        bulk_bytes: 65536,
        rounds: 3,
        seconds: 12.34,
        usual: speed(6e3, 1.1e9),
        usual_alone: Some(speed(5e3, 1.3e9)),
        links,
        counters: vec![BTreeMap::new(); 4],
        not_accepted: vec![
            "half_round_trip: 1 of 6 links; n0 (north) - n2 (south) has 19.000 us, the limit is 10.000 us".into(),
        ],
        notes: vec!["n2 (south): eth0 rx_dropped grew by 7".into()],
        good: false,
    }
}

#[test]
fn slow_links_stand_out() {
    snapshot("fabric", &qualification_summary(&fabric(), 80));
    let links = fabric().links.into_iter().filter(|link| link.verdict == LinkVerdict::Good).collect();
    let (not_accepted, notes) = (Vec::new(), Vec::new());
    let good = Qualification { links, not_accepted, notes, usual_alone: None, good: true, ..fabric() };
    snapshot("good_fabric", &qualification_summary(&good, 80));
}

#[test]
fn matrices_have_a_cell_for_each_way() {
    for plot in qualification_plots(&fabric()) {
        assert!(plot.svg.starts_with("<svg") && plot.svg.contains("north"), "{}", plot.name);
        let marked = plot.svg.matches("stroke=\"#D55E00\"").count();
        assert_eq!(marked, 4 + 1, "{}: two bad links, each in both ways, and the legend", plot.name);
    }
}
