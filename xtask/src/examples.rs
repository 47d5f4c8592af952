//! The examples of the repository: each one is checked, run and simulated, and the example of the library prints its records.

use serde_json::Value;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use xtask::{processes::Limited, workspace::Workspace};

/// Longest time of a short run.
const LIMIT: Duration = Duration::from_secs(120);

/// The example of the library.
const LIBRARY: &str = "build_and_simulate";

/// An example with the options of the test.
struct Example {
    name: &'static str,
    /// Options that make it short and independent of other programs on the machine.
    changes: &'static [&'static str],
    /// The expected exit status.
    status: i32,
    /// True if it needs recorded data, which is not in the repository.
    recorded: bool,
    drivers: &'static [Driver],
}

/// The command that executes an example.
#[derive(Clone, Copy, PartialEq)]
enum Driver {
    Run,
    Simulate,
}

/// Exit status of a result that cannot be told.
const CANNOT_TELL: i32 = 3;

const fn example(name: &'static str, changes: &'static [&'static str]) -> Example {
    Example { name, changes, status: 0, recorded: false, drivers: &[Driver::Run, Driver::Simulate] }
}

/// An example that describes a network and is only simulated.
const fn simulation(name: &'static str, changes: &'static [&'static str]) -> Example {
    Example { drivers: &[Driver::Simulate], ..example(name, changes) }
}

const EXAMPLES: &[Example] = &[
    Example { recorded: true, ..example("cms-csc-replay", &[]) },
    Example { recorded: true, ..example("cms-size-model", &["trigger.events=5000"]) },
    Example { status: 1, ..simulation("background", &[]) },
    simulation("barrel-shifter", &["trigger.duration=\"70 ms\"", "sweep={\"readout.units, builder.units\"=[8]}"]),
    example("blocks", &["trigger.events=64000"]),
    // The pipeline of 512 slots takes longer to fill than this: most is carried after the trigger.
    Example { status: CANNOT_TELL, ..simulation("clos-512", &["trigger.duration=\"20 ms\"", "run.warmup=\"10 ms\""]) },
    simulation("crossbar-hol", &[]),
    example("demonstrator-random", &[]),
    simulation("demonstrator-sizes", &[]),
    simulation("dragonfly", &[]),
    example("farm-overlap", &[]),
    simulation("fabric", &[]),
    simulation("fat-tree", &[]),
    example("gather", &["trigger.duration=\"200 ms\""]),
    example("hits", &["trigger.events=200"]),
    simulation("jitter", &["trigger.duration=\"250 ms\"", "run.warmup=\"50 ms\""]),
    simulation("latency-load", &[]),
    Example { status: 1, ..simulation("learning-bridges", &[]) },
    Example { status: 1, ..simulation("mapper", &[]) },
    simulation("pull-64", &["trigger.duration=\"15 ms\"", "run.warmup=\"5 ms\""]),
    simulation("rack-25g", &["trigger.duration=\"40 ms\"", "run.warmup=\"10 ms\""]),
    simulation("skew-64", &["trigger.duration=\"8 ms\"", "run.warmup=\"3 ms\""]),
    simulation("shift-512", &["trigger.events=32768"]),
    simulation("pairs", &[]),
    Example { status: 1, ..simulation("torus-deadlock", &[]) },
    example("demonstrator-8x8", &["trigger.events=20000"]),
    Example { status: 1, ..example("faults", &["trigger.duration=\"3 s\""]) },
    // No front end connects. The run must end nevertheless and report that no data came; any free port will do.
    Example {
        status: 1,
        drivers: &[Driver::Run],
        ..example(
            "live-front-ends",
            &[
                "trigger.duration=\"1 s\"",
                "readout.unit.0.source.listen=\"127.0.0.1:0\"",
                "readout.unit.1.source.listen=\"127.0.0.1:0\"",
            ],
        )
    },
    // No board listens.
    Example { status: 1, drivers: &[Driver::Run], ..example("own-boards", &["trigger.duration=\"1 s\""]) },
    example("filters", &["trigger.events=20000"]),
    example("shaped-links", &["trigger.duration=\"500 ms\""]),
    example("many-sources", &["trigger.events=1000"]),
    example("phased", &["trigger.events=20000"]),
    example("second-level", &["trigger.events=4000"]),
    example("pull-2x2", &["trigger.events=20000"]),
    example("test-beam", &["trigger.events=500"]),
    example("trigger-rates", &["trigger.events=6400"]),
    example("time-slices", &["trigger.events=100"]),
    example("two-stages", &["trigger.events=2000"]),
    example("two-by-two", &["trigger.events=50000"]),
    example("two-by-two-tcp", &["trigger.events=20000"]),
];

/// Checks and runs all examples. One that is not in the list here is an error.
pub(crate) fn run_all(workspace: &Workspace) -> Result<(), String> {
    let folder = workspace.root.join("experiments");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let example = EXAMPLES.iter().find(|example| example.name == name);
        let example = example.ok_or_else(|| format!("{name} is new\nhint: add it to EXAMPLES in {}", file!()))?;
        check(workspace, &file)
            .and_then(|()| example.drivers.iter().try_for_each(|driver| run(workspace, &file, example, *driver)))
            .map_err(|error| format!("{name}: {error}"))?;
    }
    library(workspace).map_err(|error| format!("{LIBRARY}: {error}"))
}

/// Runs the example of the library, which prints the records of a simulation and a run.
fn library(workspace: &Workspace) -> Result<(), String> {
    let mut command = Command::new(workspace.built(&format!("examples/{LIBRARY}")));
    let records = evb(command.current_dir(&workspace.root), 0)?;
    for line in records.lines() {
        let record: Value = serde_json::from_str(line).map_err(|error| format!("the record: {error}"))?;
        let kind = record["kind"].as_str().unwrap_or_default();
        check_account(&record, &example(LIBRARY, &[]), kind)?;
    }
    match records.lines().count() {
        2 => Ok(()),
        other => Err(format!("it printed {other} records instead of 2")),
    }
}

fn check(workspace: &Workspace, file: &Path) -> Result<(), String> {
    let mut command = Command::new(workspace.evb());
    evb(command.arg("check").arg(file), 0).map(drop)
}

fn run(workspace: &Workspace, file: &Path, example: &Example, driver: Driver) -> Result<(), String> {
    let mut command = Command::new(workspace.evb());
    if example.recorded {
        let Some(data) = recorded_data(workspace) else {
            eprintln!("  {}: skipped: no recorded data; set EVB_DATA to its folder", example.name);
            return Ok(());
        };
        command.env("EVB_DATA", data);
    }
    let scratch = workspace.target.join("xtask-examples").join(example.name);
    let _absent = fs::remove_dir_all(&scratch);
    fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let subcommand = if driver == Driver::Run { "run" } else { "simulate" };
    command.args([subcommand, "--json", "--quiet"]).arg(file).current_dir(&scratch);
    command.args(example.changes.iter().flat_map(|change| ["--set", change]));
    command.args(["--set", "storage.directory=."]);
    for line in evb(&mut command, example.status)?.lines() {
        let record: Value = serde_json::from_str(line).map_err(|error| format!("the record: {error}"))?;
        check_account(&record, example, subcommand)?;
        if example.status == 0 {
            verify(workspace, &scratch, &record)?;
        }
    }
    Ok(())
}

/// The folder of recorded data: `EVB_DATA`, or the one beside the repository.
fn recorded_data(workspace: &Workspace) -> Option<PathBuf> {
    let beside = || workspace.root.parent().map(|parent| parent.join("shared").join("data"));
    env::var_os("EVB_DATA").map(PathBuf::from).or_else(beside).filter(|folder| folder.is_dir())
}

fn check_account(record: &Value, example: &Example, driver: &str) -> Result<(), String> {
    let count = |name| record["events"][name].as_u64().ok_or(format!("the record has no events.{name}"));
    let (triggered, built, incomplete) = (count("triggered")?, count("built")?, count("incomplete")?);
    let (rejected, lost) = (count("rejected")?, count("lost")?);
    let account = format!("{built} events built, {incomplete} incomplete, {rejected} rejected, {lost} lost");
    eprintln!("  {}, {driver}: {account}", example.name);
    // A deadlock keeps packets in the network, and packets for a dead link are lost until the mappers know it.
    let is_stuck = record["network"]["deadlock"].as_array().is_some_and(|links| !links.is_empty());
    let may_lose = is_stuck || record["network"]["mapping"].is_object();
    if triggered == built + incomplete + rejected + lost && (lost == 0 || may_lose) {
        return Ok(());
    }
    Err(format!("the accounts of {triggered} events do not hold: {account}"))
}

fn verify(workspace: &Workspace, scratch: &Path, record: &Value) -> Result<(), String> {
    let builders = record["builders"].as_array().into_iter().flatten();
    let files: Vec<_> =
        builders.flat_map(|builder| builder["files"].as_array()).flatten().filter_map(Value::as_str).collect();
    if files.is_empty() {
        return Ok(());
    }
    evb(Command::new(workspace.evb()).args(["events", "verify"]).args(files).current_dir(scratch), 0).map(drop)
}

/// Runs `evb`, which must end with `status`. Returns its standard output.
fn evb(command: &mut Command, status: i32) -> Result<String, String> {
    let (actual, output) = Limited::start(command, LIMIT).map_err(|error| error.to_string())?.wait()?;
    // A shortened example may be too short to tell whether its rate is kept.
    let is_undecided = status == 0 && actual.code() == Some(CANNOT_TELL);
    if actual.code() == Some(status) || is_undecided {
        return Ok(output);
    }
    Err(format!("{actual}, expected status {status}\n{output}"))
}
