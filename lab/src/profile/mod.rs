//! The instructions of a fragment and of a packet-hop by place in the source, with callgrind: the same each time, on any
//! machine. Needs `valgrind`. Work of the system, such as waking a thread, is not counted.

mod callgrind;

use serde_json::Value;
use std::{collections::BTreeMap, fs, path::Path, process::Command};
use xtask::workspace::{Profile, Workspace, cargo, run};

/// A profiled command.
struct Case {
    /// The unit that is counted.
    unit: &'static str,
    verb: &'static str,
    file: &'static str,
    changes: &'static [&'static str],
    /// Number of units in a record.
    count: fn(&Value) -> Option<u64>,
}

const CASES: &[Case] = &[
    Case {
        unit: "fragment of 2 KiB, 2 x 2, threads, single events",
        verb: "run",
        file: "experiments/two-by-two.toml",
        changes: &["trigger.events=50000", "trigger.block=1"],
        count: |record| Some(record["events"]["built"].as_u64()? * record["readout_units"].as_u64()?),
    },
    Case {
        unit: "packet-hop, 16 x 16 crossbar, wormhole",
        verb: "simulate",
        file: "experiments/crossbar-hol.toml",
        changes: &["readout.units=16", "builder.units=16"],
        count: |record| record["packet_hops"].as_u64(),
    },
    Case {
        unit: "packet-hop, event building 8 x 8 on a Clos network",
        verb: "simulate",
        file: "experiments/demonstrator-8x8.toml",
        changes: &["trigger.events=2000"],
        count: |record| record["packet_hops"].as_u64(),
    },
];

/// Profiles a fragment and a packet-hop.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Rows of each table
    #[arg(long, default_value_t = 16)]
    rows: usize,
}

pub(crate) fn profile(options: &Options) -> Result<(), String> {
    let workspace = Workspace::find(Profile::Release)?;
    let target = workspace.target.join("profile");
    let mut build = cargo(&workspace.root, &["build", "--release", "--quiet", "--package", "evb-cli"]);
    // Without line tables, an inlined function would count as its caller.
    run(build.env("CARGO_TARGET_DIR", &target).env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only"))?;
    CASES.iter().try_for_each(|case| case.show(&workspace, &target, options.rows))
}

impl Case {
    fn show(&self, workspace: &Workspace, target: &Path, rows: usize) -> Result<(), String> {
        let counts = target.join("callgrind.out");
        let record = self.record(workspace, target, &counts)?;
        let units = (self.count)(&record).filter(|&units| units > 0).ok_or("the record has nothing to count")?;
        let text = fs::read_to_string(&counts).map_err(|error| format!("{}: {error}", counts.display()))?;
        let places = callgrind::places(&text);
        println!("{}", table(self.unit, &places, units, rows));
        Ok(())
    }

    /// The record of the command under callgrind, which writes its counts to a file.
    fn record(&self, workspace: &Workspace, target: &Path, counts: &Path) -> Result<Value, String> {
        let mut command = Command::new("valgrind");
        command.current_dir(&workspace.root).args(["--quiet", "--tool=callgrind"]);
        command.arg(format!("--callgrind-out-file={}", counts.display())).arg(target.join("release/evb"));
        command.args([self.verb, self.file, "--json", "--quiet"]);
        command.args(self.changes.iter().flat_map(|change| ["--set", change]));
        let output = command.output().map_err(|error| format!("valgrind: {error}: is it installed?"))?;
        let messages = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("evb printed an invalid record: {error}\n{messages}"))
    }
}

/// The places with the most instructions per unit.
fn table(unit: &str, places: &BTreeMap<String, u64>, units: u64, rows: usize) -> String {
    let all: u64 = places.values().sum();
    let mut sorted: Vec<_> = places.iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let line = |place: &str, count: u64| {
        let part = 100.0 * count as f64 / all.max(1) as f64;
        format!("{:>8.0} {part:>6.1} %  {place}\n", count as f64 / units as f64)
    };
    let rest: u64 = sorted.iter().skip(rows).map(|(_, count)| **count).sum();
    let listed: String = sorted.iter().take(rows).map(|(place, count)| line(place, **count)).collect();
    format!("instructions for each {unit}: {units} of them\n{}{listed}{}", line("all", all), line("the rest", rest))
}
