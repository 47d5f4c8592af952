//! Sweeps of runs beside their simulation.

use evb_record::{Agreement, Bounds, RecordKind, Twin, TwinFigure};
use evb_report::{NARROW, twin_csv, twin_plots, twin_plots_along, twin_table};
use std::collections::BTreeMap;

fn figure(name: &str, real: [f64; 3], simulated: f64, band: Option<f64>) -> TwinFigure {
    let range = |band: f64| Bounds { low: simulated * (1.0 - band), high: simulated * (1.0 + band) };
    TwinFigure { figure: name.into(), real: real.to_vec(), simulated, simulated_range: band.map(range), agrees: true }
}

/// A point of a sweep over sizes, in bytes.
fn twin(size: f64, agreement: Agreement) -> Twin {
    let rate = 4e9 / (size + 1000.0);
    Twin {
        kind: RecordKind::Twin,
        experiment: "two-by-two".into(),
        sweep: BTreeMap::from([("readout.source.size".into(), format!("{size} B"))]),
        seed: 1,
        version: "0.1.0".into(),
        transport: "in-process".into(),
        turns: 3,
        band_percent: 15.0,
        fitted_reference_hz: 1e6,
        reference_hz: vec![1e6; 3],
        figures: vec![
            figure("event rate, Hz", [rate * 0.95, rate, rate * 1.05], rate * 1.1, Some(0.15)),
            figure("latency median, us", [90.0, 100.0, 110.0], 120.0, None),
        ],
        simulated_work: Vec::new(),
        agreement,
        explanation: "a reason".into(),
        loads: Vec::new(),
    }
}

fn sweep() -> Vec<Twin> {
    vec![
        twin(256.0, Agreement::Agree),
        twin(4096.0, Agreement::Differ),
        twin(16384.0, Agreement::NotComparable),
        twin(65536.0, Agreement::Agree),
    ]
}

#[test]
fn a_sweep_has_one_row_for_each_point_and_the_worst_verdict_below() {
    insta::assert_snapshot!(twin_table(&sweep(), NARROW));
    assert!(twin_table(&sweep()[..1], NARROW).ends_with("\nagree: all 1 points\n"));
    assert!(twin_table(&sweep()[2..], NARROW).ends_with("\nnot comparable: 1 of 2 points\n"));
}

#[test]
fn csv_has_every_figure_of_each_point() {
    insta::assert_snapshot!(twin_csv(&sweep()[..2]));
}

/// How often a tag has this colour.
fn count(svg: &str, tag: &str, colour: &str) -> usize {
    svg.lines().filter(|line| line.starts_with(tag) && line.contains(colour)).count()
}

#[test]
fn plots_show_real_marks_in_the_band_of_the_simulated_line() {
    let plots = twin_plots(&sweep());
    assert_eq!(plots.iter().map(|plot| plot.name.as_str()).collect::<Vec<_>>(), ["event-rate", "latency"]);
    let rate = &plots[0].svg;
    // Four points, and the one in the legend.
    assert_eq!(count(rate, "<polygon", "opacity=\"1\" fill=\"#0072B2\""), 5, "{rate}");
    // The area, and its sample in the legend.
    let shaded =
        |tag: &str| rate.lines().filter(|line| line.starts_with(tag) && line.contains("opacity=\"0.2\"")).count();
    assert_eq!((shaded("<polygon"), shaded("<rect")), (1, 1), "{rate}");
    // Three points that were comparable, and the one in the legend.
    assert_eq!(count(rate, "<polyline", "stroke=\"#D55E00\" stroke-width=\"2\""), 4, "{rate}");
    for text in ["band of the fit", "least to most of the runs", "event rate (kHz)", "fragment size (bytes)"] {
        assert!(rate.contains(text), "{text}: {rate}");
    }
    assert!(!plots[1].svg.contains("band of the fit"), "latencies have no band");
    assert_eq!(twin_plots_along(&sweep(), "readout.source.size"), plots);
    assert!(twin_plots(&sweep()[..1]).is_empty(), "a single point is no sweep");
}
