//! Sweeps that are left alone: killed and gone on with, in parts on several machines, with replicates.

use crate::{
    inputs::refuses,
    support::{Lab, Outcome, wait_until},
};
use evb_record::Record;
use rustix::process::Signal;
use std::{collections::BTreeMap, fs, path::Path};

/// Twelve points, of which three differ only in their seed.
const SWEPT: &str = r#"
[network]
preset = "myrinet-oct-sw8"
[workload]
type = "random"
messages = 400
[readout]
units = 8
source = { type = "log-normal", mean = "2 kB", rms = "500 B" }
[builder]
units = 8
[sweep]
"readout.source.mean" = ["500 B", "1 kB", "2 kB", "4 kB"]
"run.seed" = [1, 2, 3]
"#;

/// The files of a folder; of the records without the time that they took.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let named =
        entries.map(|entry| (entry.file_name().into_string().expect("a name"), fs::read(entry.path()).unwrap()));
    let mut files: BTreeMap<_, _> = named.collect();
    let records = String::from_utf8(files.remove("records.jsonl").expect("records")).unwrap();
    let timeless = records.lines().map(|line| {
        let mut record: Record = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        record.simulation.as_mut().expect("a simulation").wall_seconds = 0.0;
        serde_json::to_string(&record).unwrap() + "\n"
    });
    files.insert("records.jsonl".into(), timeless.collect::<String>().into_bytes());
    files
}

/// Two folders have the same files, byte for byte.
fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (contents(one), contents(other));
    assert!(one.keys().eq(other.keys()), "{:?} {:?}", one.keys(), other.keys());
    for (name, bytes) in &one {
        assert!(bytes == &other[name], "{name} differs");
    }
}

fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(str::to_owned).collect()
}

fn simulated(lab: &Lab, arguments: &[&str]) -> Outcome {
    let outcome = lab.evb(&["simulate", "experiment.toml"]).args(arguments).run();
    assert_eq!(outcome.code(), Some(0), "{outcome}");
    outcome
}

#[test]
fn a_killed_sweep_goes_on_and_ends_with_the_same_bytes() {
    let lab = Lab::with(SWEPT);
    simulated(&lab, &["--out", "whole"]);
    for (signal, kept) in [(Signal::KILL, 1), (Signal::KILL, 7), (Signal::INT, 3), (Signal::TERM, 10)] {
        let folder = format!("{signal:?}-{kept}");
        let records = lab.path(&folder).join("records.jsonl");
        let running = lab.evb(&["simulate", "experiment.toml", "--out", &folder, "--threads", "2"]).start();
        wait_until("records are there", || (lines(&records).len() >= kept).then_some(()));
        running.signal(signal);
        drop(running.wait());
        let before = lines(&records);
        assert!(before.len() >= kept);
        let plain = lab.evb(&["simulate", "experiment.toml", "--out", &folder]);
        refuses(plain, &["holds the records of", "of 12 points", "--resume"]);
        assert_eq!(lines(&records), before, "nothing has changed");
        simulated(&lab, &["--out", &folder, "--resume"]);
        assert_same(&lab.path("whole"), &lab.path(&folder));
        let after = lines(&records);
        let is_kept = |line: &&String| !line.contains("\"interrupted\"");
        assert!(before.iter().filter(is_kept).all(|line| after.contains(line)), "records are kept as they were");
    }
}

#[test]
fn a_torn_line_is_dropped_and_a_damaged_one_is_told() {
    let lab = Lab::with(SWEPT);
    simulated(&lab, &["--out", "whole"]);
    simulated(&lab, &["--out", "torn"]);
    let path = lab.path("torn").join("records.jsonl");
    let text = fs::read(&path).unwrap();
    let last = 1 + text[..text.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
    for length in [0, 1, last - 1, last, last + 1, text.len() - 1] {
        fs::write(&path, &text[..length]).unwrap();
        simulated(&lab, &["--out", "torn", "--resume"]);
        assert_same(&lab.path("whole"), &lab.path("torn"));
    }
    let mut damaged = text;
    damaged[last - 3] = b'\n';
    fs::write(&path, &damaged).unwrap();
    let resume = || lab.evb(&["simulate", "experiment.toml", "--out", "torn", "--resume"]);
    refuses(resume(), &["records.jsonl: line 11: not a record"]);
    assert!(fs::read(&path).unwrap() == damaged, "it is as it was");
}

#[test]
fn a_folder_of_another_experiment_is_refused_with_the_first_difference() {
    let lab = Lab::with(SWEPT);
    simulated(&lab, &["--out", "out"]);
    let before = contents(&lab.path("out"));
    let resume = || lab.evb(&["simulate", "experiment.toml", "--out", "out", "--resume"]);
    refuses(resume().set("workload.messages=401"), &["another experiment: `workload.messages` is 400 in it and 401"]);
    refuses(resume().set("run.seed=7"), &["another experiment", "no point", "run.seed=1"]);
    let path = lab.path("out").join("records.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    fs::write(&path, text.replacen(&version, "\"version\":\"0.0.1\"", 1)).unwrap();
    refuses(resume(), &["another experiment", "evb 0.0.1"]);
    fs::write(&path, &text).unwrap();
    assert!(contents(&lab.path("out")) == before, "nothing has changed");

    // What somebody else keeps there is kept.
    fs::create_dir(lab.path("mine")).unwrap();
    lab.write("mine/resolved.toml", "[trigger]\nevents = 1\n");
    refuses(lab.evb(&["simulate", "experiment.toml", "--out", "mine"]), &["resolved.toml", "another folder"]);
    fs::create_dir(lab.path("old")).unwrap();
    fs::write(lab.path("old/records.jsonl"), &text).unwrap();
    refuses(lab.evb(&["simulate", "experiment.toml", "--out", "old"]), &["resolved.toml", "hint: "]);
}

#[test]
fn a_sweep_with_more_values_simulates_the_new_ones() {
    let lab = Lab::with(SWEPT);
    simulated(&lab, &["--out", "out"]);
    let before = lines(&lab.path("out").join("records.jsonl"));
    lab.write("experiment.toml", SWEPT.replace("[1, 2, 3]", "[1, 2, 9, 3]"));
    simulated(&lab, &["--out", "out", "--resume"]);
    simulated(&lab, &["--out", "whole"]);
    assert_same(&lab.path("whole"), &lab.path("out"));
    let after = lines(&lab.path("out").join("records.jsonl"));
    assert!(after.len() == 16 && before.iter().all(|line| after.contains(line)));
}

#[test]
fn two_sweeps_do_not_write_into_one_folder() {
    let lab = Lab::with(&SWEPT.replace("messages = 400", "messages = 100_000_000"));
    let running = lab.evb(&["simulate", "experiment.toml", "--out", "out"]).start();
    wait_until("the sweep has begun", || lab.path("out/records.jsonl").exists().then_some(()));
    refuses(lab.evb(&["simulate", "experiment.toml", "--out", "out", "--resume"]), &["another evb writes into it"]);
    drop(running);
}

/// A hundred points in seven parts are what one machine makes of them.
#[test]
fn the_parts_of_a_sweep_make_the_whole() {
    let seeds: Vec<_> = (1..=25).collect();
    let lab = Lab::with(&SWEPT.replace("messages = 400", "messages = 40").replace("[1, 2, 3]", &format!("{seeds:?}")));
    let _no_steady_state = lab.evb(&["simulate", "experiment.toml", "--out", "whole"]).run();
    let folders: Vec<_> = (1..=7).map(|number| format!("part-{number}")).collect();
    for (number, folder) in (1..).zip(&folders) {
        let part = format!("{number}/7");
        let outcome = lab.simulate(&["--out", folder, "--points", &part]).run();
        assert!([14, 15].contains(&outcome.records().len()) && !outcome.stderr.contains("stopped"), "{outcome}");
    }
    let merge = |folders: &[&str], out| lab.evb(&["sweep", "merge", "--out", out]).args(folders);
    let all: Vec<_> = folders.iter().map(String::as_str).collect();
    let merged = merge(&all, "merged").run();
    assert!(merged.stdout.contains("100 points") && merged.code() != Some(2), "{merged}");
    assert_same(&lab.path("whole"), &lab.path("merged"));
    refuses(merge(&all, "merged"), &["merged: there are records"]);

    // A part twice is no harm; a missing one is named, unless it may be missing.
    assert!(merge(&[&all[..], &all[2..4]].concat(), "twice").run().code() != Some(2));
    assert_same(&lab.path("whole"), &lab.path("twice"));
    refuses(
        merge(&all[1..], "short"),
        &["15 of 100 points are missing: readout.source.mean=500 B run.seed=1; ", "--partial"],
    );
    let partial = merge(&all[1..], "short").args(&["--partial"]).run();
    assert!(partial.stderr.contains("85 of 100 points are there") && partial.code() == Some(1), "{partial}");

    // The missing points can be simulated in the merged folder.
    let _no_steady_state = lab.evb(&["simulate", "experiment.toml", "--out", "short", "--resume"]).run();
    assert_same(&lab.path("whole"), &lab.path("short"));

    // Other results of a point, and the points of another sweep.
    let path = lab.path("part-2/records.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"seconds\":0.", "\"seconds\":1.", 1)).unwrap();
    refuses(merge(&["whole", "part-2"], "new"), &["with other results: `seconds` is 0.", "in whole and 1."]);
    fs::write(&path, text).unwrap();
    let another = lab.evb(&["simulate", "experiment.toml", "--out", "another", "--points", "1/50"]);
    assert!(another.set("workload.messages=41").run().code() != Some(2));
    refuses(merge(&["part-1", "another"], "new"), &["another: it is of another experiment", "workload.messages"]);
    refuses(merge(&["nowhere"], "new"), &["nowhere: there are no records"]);
    assert!(!lab.path("new").exists());
    refuses(lab.simulate(&["--points", "8/7"]), &["--points", "3/10"]);
}

#[test]
fn replicates_are_one_row_and_the_seed_is_no_axis() {
    let lab = Lab::with(SWEPT);
    let shown = simulated(&lab, &["--out", "out"]).stdout;
    assert!(shown.contains("replicates") && shown.contains('\u{b1}') && !shown.contains("run.seed"), "{shown}");
    assert!(shown.ends_with("good: all 12 points\n"), "{shown}");
    let read = |name: &str| fs::read_to_string(lab.path("out").join(name)).unwrap();
    assert_eq!((read("points.csv").lines().count(), read("groups.csv").lines().count()), (1 + 12, 1 + 4));
    assert!(read("groups.csv").lines().nth(1).unwrap().starts_with("500 B,3,"));
    assert!(read("throughput.svg").contains("95 % of the mean of replicates"));
    assert!(fs::read(lab.path("out/groups.parquet")).unwrap().starts_with(b"PAR1"));

    // Tables and plots are made again from the records alone.
    let before = contents(&lab.path("out"));
    for name in ["points.csv", "links.parquet", "groups.csv", "latency.svg"] {
        fs::remove_file(lab.path("out").join(name)).unwrap();
    }
    let drawn = lab.evb(&["sweep", "draw", "out"]).run();
    assert_eq!((drawn.code(), drawn.stdout), (Some(0), shown));
    assert!(contents(&lab.path("out")) == before);
}

#[test]
fn plots_have_the_axis_that_was_asked_for() {
    let lab = Lab::with(&SWEPT.replace("\"run.seed\" = [1, 2, 3]", "\"builder.units\" = [2, 4, 8]"));
    let title = |svg: &str| fs::read_to_string(lab.path("out").join(svg)).unwrap();
    simulated(&lab, &["--out", "out"]);
    assert!(title("throughput.svg").contains("mean fragment size"));
    assert_eq!(lab.evb(&["sweep", "draw", "out", "--x", "builder.units"]).run().code(), Some(0));
    for svg in ["throughput.svg", "efficiency.svg", "latency.svg"] {
        assert!(title(svg).contains("\nbuilder units\n"), "{svg}");
    }
    for wrong in ["run.seed", "network.preset", "builder"] {
        let hint = "one of: builder.units, readout.source.mean";
        refuses(lab.evb(&["simulate", "experiment.toml", "--out", "new", "--x", wrong]), &["--x", hint]);
    }
}

/// Replicates end when the mean is known, and the same ones on any number of threads.
#[test]
fn replicates_end_early_and_threads_do_not_matter() {
    let seeds: Vec<_> = (1..=12).collect();
    let lab = Lab::with(&SWEPT.replace("[1, 2, 3]", &format!("{seeds:?}")));
    let shown = |threads, arguments: &[&str]| {
        lab.evb(&["simulate", "experiment.toml", "--json", "--until", "3%", "--threads", threads]).args(arguments).run()
    };
    let timeless = |outcome: &Outcome| -> Vec<_> {
        outcome.records().into_iter().map(|record| (record.sweep, record.event_rate_hz)).collect()
    };
    let one = shown("1", &["--out", "one"]);
    let count = one.records().len();
    assert!((12..48).contains(&count) && one.code() == Some(0), "{one}");
    assert_eq!(lines(&lab.path("one/records.jsonl")).len(), count, "nothing else was simulated");
    let many = shown("5", &["--out", "many"]);
    assert_eq!(timeless(&many), timeless(&one));
    for table in ["points.csv", "groups.csv", "latency.svg"] {
        let [one, many] = ["one", "many"].map(|folder| fs::read(lab.path(folder).join(table)).unwrap());
        assert!(one == many, "{table} differs");
    }
    let again = shown("5", &["--out", "one", "--resume"]);
    assert_eq!(timeless(&again), timeless(&one));
    let groups = fs::read_to_string(lab.path("one/groups.csv")).unwrap();
    let replicates = groups.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse::<usize>().unwrap());
    assert!(replicates.clone().all(|count| count >= 3) && replicates.sum::<usize>() == count, "{groups}");
    let drawn = lab.evb(&["sweep", "draw", "many", "--until", "3%"]).run();
    assert_eq!((drawn.code(), fs::read_to_string(lab.path("many/groups.csv")).unwrap()), (Some(0), groups), "{drawn}");
    refuses(lab.simulate(&["--until", "3%", "--points", "1/2"]), &["--points", "--until"]);
}

/// Four short points, for real and in virtual time.
const FOR_REAL: &str = r#"
[trigger]
type = "free-running"
events = 200
[readout]
units = 2
source = { type = "log-normal", mean = "1 kB", rms = "800 B" }
[builder]
units = 2
[storage]
keep = "none"
[sweep]
"builder.units" = [1, 2, 3, 4]
"#;

/// One file gives the same sweep for real and in virtual time, in folders of one form.
#[test]
fn runs_have_a_folder_as_simulations_have() {
    let lab = Lab::with(FOR_REAL);
    let run = |arguments: &[&str]| lab.evb(&["run", "experiment.toml"]).args(arguments);
    let outcome = run(&["--out", "real"]).run();
    assert_eq!(outcome.code(), Some(0), "{outcome}");
    drop(lab.evb(&["simulate", "experiment.toml", "--out", "virtual"]).run());
    let read = |name: &str| fs::read(lab.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(read("real/resolved.toml") == read("virtual/resolved.toml"));
    let records = lab.path("real/records.jsonl");
    let before = lines(&records);
    assert_eq!((before.len(), String::from_utf8(read("real/points.csv")).unwrap().lines().count()), (4, 1 + 4));
    for folder in ["real", "virtual"] {
        let drawn = lab.evb(&["sweep", "draw", folder]).run();
        assert!(drawn.stdout.contains("4 points") && drawn.code() != Some(2), "{drawn}");
        assert!(read(&format!("{folder}/throughput.svg")).starts_with(b"<svg"));
    }

    // What is missing is run, and nothing else.
    refuses(run(&["--out", "real"]), &["real holds the records of 4 of 4 points", "--resume"]);
    fs::write(&records, [&before[0][..], &before[3], &before[2][..40]].concat()).unwrap();
    let resumed = run(&["--out", "real", "--resume", "--json"]).run();
    assert_eq!(resumed.records().iter().map(|record| record.builder_units).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let after = lines(&records);
    assert!(after.len() == 4 && after[0] == before[0] && after[3] == before[3] && after[1] != before[1]);

    // A simulation is no run.
    let kinds = "`kind` is \"run\" in it and \"simulation\" in this one";
    refuses(lab.evb(&["simulate", "experiment.toml", "--out", "real", "--resume"]), &[kinds]);
    refuses(lab.evb(&["sweep", "merge", "real", "virtual", "--out", "both"]), &["virtual: ", "`kind` is "]);
    refuses(run(&["--out", "real", "--runs", "2"]), &["--runs", "--out"]);
}

/// A run that somebody ends is not stored as its point.
#[test]
fn a_run_that_is_cut_off_is_run_again() {
    let points = "\"trigger.events\" = [100, 1_000_000_000]";
    let text = FOR_REAL.replace("\"builder.units\" = [1, 2, 3, 4]", points).replace("\"none\"", "{ one_in = 10 }");
    let lab = Lab::with(&text);
    let running = lab.evb(&["run", "experiment.toml", "--out", "real"]).start();
    // A run has files before it begins, and only the second one stores much.
    let stored =
        || lab.stored_files().iter().filter_map(|file| fs::metadata(file).ok()).map(|file| file.len()).sum::<u64>();
    wait_until("the second point is run", || (stored() > 500_000).then_some(()));
    running.signal(Signal::INT);
    let outcome = running.wait();
    assert!(outcome.stderr.contains("stopped after 1 of 2 points; go on with --resume"), "{outcome}");
    assert_eq!(outcome.code(), Some(1), "{outcome}");
    assert_eq!(lines(&lab.path("real/records.jsonl")).len(), 1);
}
