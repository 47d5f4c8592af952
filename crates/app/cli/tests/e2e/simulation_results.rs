//! What a simulation leaves behind: tables, plots and traces.

use crate::{
    inputs::refuses,
    support::{Lab, good},
};
use evb_record::Record;
use std::{collections::BTreeMap, fs};

const SWEPT: &str = r#"
[network]
preset = "myrinet-oct-sw8"
[workload]
type = "random"
messages = 60
[readout]
units = 8
source = { type = "fixed", size = "2 kB" }
[builder]
units = 8
[sweep]
"readout.source.size" = ["500 B", "2 kB", "8 kB"]
"#;

/// The cells of a table without quotes, all lines of the same length.
fn table(text: &str) -> (Vec<&str>, Vec<Vec<&str>>) {
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    let rows: Vec<_> = lines.collect();
    assert!(rows.iter().all(|row| row.len() == header.len()), "{text}");
    (header, rows)
}

#[test]
fn a_sweep_leaves_records_tables_and_plots() {
    let lab = Lab::with(SWEPT);
    let outcome = lab.simulate(&["--out", "deep/results"]).run();
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(0), ""), "{outcome}");
    let records = outcome.records();
    let sizes: Vec<_> = records.iter().map(|record| record.sweep["readout.source.size"].as_str()).collect();
    assert_eq!(sizes, ["500 B", "2 kB", "8 kB"]);

    let read =
        |name: &str| fs::read_to_string(lab.path("deep/results").join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(read("records.jsonl"), outcome.stdout);
    let (points, links) = (read("points.csv"), read("links.csv"));
    let (header, rows) = table(&points);
    let column = |name: &str| header.iter().position(|cell| *cell == name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(rows.len(), 3);
    for (row, record) in rows.iter().zip(&records) {
        assert_eq!(row[0], record.sweep["readout.source.size"]);
        assert_eq!(row[column("events.built")], "480");
        let written: f64 = row[column("throughput_bytes_per_s")].parse().expect("a number");
        assert!((written / record.throughput_bytes_per_s - 1.0).abs() < 1e-12, "{written}");
    }
    let (_, rows) = table(&links);
    let count = |record: &Record| record.simulation.as_ref().unwrap().network.links.len();
    assert_eq!(rows.len(), records.iter().map(count).sum::<usize>());
    for name in ["points", "links"] {
        let table = fs::read(lab.path("deep/results").join(format!("{name}.parquet"))).expect("a table");
        assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"), "{name} is whole");
    }
    for name in ["throughput", "latency", "efficiency", "links"] {
        let svg = read(&format!("{name}.svg"));
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{name}: {svg}");
        check_nesting(&svg);
    }

    // A second time it is all the same, and the table of the sweep is shown.
    let again = lab.evb(&["simulate", "experiment.toml", "--out", "deep/results", "--resume"]).run();
    assert_eq!((again.code(), read("points.csv"), read("links.csv")), (Some(0), points, links));
    assert_eq!(read("records.jsonl"), outcome.stdout, "the earlier records are kept");
    let shown: Vec<_> = again.stdout.lines().filter(|line| sizes.iter().any(|size| line.contains(size))).collect();
    assert!(shown.len() == 3 && again.stdout.ends_with("good: all 3 points\n"), "{again}");
}

/// Every element of an SVG that begins ends, in the right order.
fn check_nesting(svg: &str) {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1).map(|rest| rest.split_once('>').expect("a tag ends").0) {
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name.trim())),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split_whitespace().next().expect("a tag has a name")),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// Each packet is sent, takes links one after the other, and is delivered, as docs/reference/trace.md says.
#[test]
fn a_trace_tells_the_way_of_every_packet() {
    let lab = Lab::with(SWEPT.split_once("[sweep]").unwrap().0);
    let record = good(&lab.simulate(&["--trace", "trace.txt"]).run());
    let trace = fs::read_to_string(lab.path("trace.txt")).unwrap();
    let mut ways: BTreeMap<u64, Vec<(u64, &str, &str)>> = BTreeMap::new();
    for line in trace.lines() {
        let [time, event, number, from, to, bytes, link] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("not seven words: {line}")
        };
        let (from, to): (u16, u16) = (from.parse().unwrap(), to.parse().unwrap());
        assert!(from < 8 && (8..16).contains(&to) && bytes == "2000", "{line}");
        ways.entry(number.parse().unwrap()).or_default().push((time.parse().unwrap(), event, link));
    }
    assert!(ways.keys().copied().eq(1..=record.simulation.unwrap().packets));
    for way in ways.values() {
        assert!(way.is_sorted_by_key(|step| step.0), "{way:?}");
        let events: Vec<_> = way.iter().map(|step| step.1).collect();
        assert!(
            events == ["send", "link", "link", "link", "link", "deliver"]
                || events == ["send", "link", "link", "deliver"],
            "{way:?}"
        );
        let links: Vec<_> = way[1..way.len() - 1].iter().map(|step| step.2.split_once('>').unwrap()).collect();
        assert!(links.windows(2).all(|pair| pair[0].1 == pair[1].0), "{way:?}");
        assert_eq!((way[0].2, way[way.len() - 1].2), ("-", "-"), "{way:?}");
    }
}

#[test]
fn results_that_cannot_be_written_are_refused_at_once() {
    let lab = Lab::with(SWEPT);
    for arguments in [["--out", "experiment.toml"], ["--trace", "."], ["--trace", "nowhere/trace"]] {
        refuses(lab.simulate(&arguments).set("readout.source.size=\"2 kB\""), &["cannot write", "hint: "]);
    }
    refuses(lab.simulate(&["--threads", "0"]), &["--threads"]);
}
