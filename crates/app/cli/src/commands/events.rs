//! `evb events`: verify, show or export event files.

mod export;

use crate::{failure::Failure, terminal::show as show_text};
use clap::{Args, Subcommand};
use evb_events::{FileSummary, Status, Verification};
use evb_record::Outcome;
use serde_json::json;
use std::path::PathBuf;

#[derive(Subcommand)]
pub(crate) enum EventsCommand {
    /// Check every byte of the files, and the events across them
    Verify(VerifyArgs),
    /// Say what is in each file
    Show(ShowArgs),
    /// Write fragments or headers in other forms
    Export(export::ExportArgs),
}

#[derive(Args)]
pub(crate) struct VerifyArgs {
    /// The event files; give all files of a run together
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(crate) struct ShowArgs {
    /// The event files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print also the experiment that the run was made with
    #[arg(long)]
    experiment: bool,
}

pub(crate) fn run(command: &EventsCommand) -> Result<Outcome, Failure> {
    match command {
        EventsCommand::Verify(args) => verify(args),
        EventsCommand::Show(args) => show(args),
        EventsCommand::Export(args) => export::run(args),
    }
}

/// The event files among the arguments: a data directory also has the number of its latest run, which `evb-data/*` names.
fn event_files(given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let (others, files): (Vec<_>, Vec<_>) = given.iter().cloned().partition(|file| evb::is_run_number(file));
    for file in &others {
        eprintln!("evb: {} is left out: it has the number of the latest run, and no events", file.display());
    }
    match files.is_empty() {
        true => Err(Failure::with_hint("no event file is given", "event files have names like NAME-12-b0.evb")),
        false => Ok(files),
    }
}

fn verify(args: &VerifyArgs) -> Result<Outcome, Failure> {
    let found = evb_events::verify(&event_files(&args.files)?).map_err(Failure::new)?;
    match args.json {
        true => println!("{}", verification_json(&found)),
        false => print_verification(&found),
    }
    Ok((found.is_intact() && found.incomplete == 0).into())
}

fn print_verification(found: &Verification) {
    for finding in &found.findings {
        println!("{finding}");
    }
    let hidden = found.total_findings - found.findings.len() as u64;
    if hidden > 0 {
        println!("and {hidden} more findings");
    }
    let of_status: Vec<_> = statuses(found).map(|(name, count)| format!("{count} {name}")).collect();
    println!("{}, {} bytes, {}", count(found.files, "file"), found.bytes, count(found.events, "event"));
    println!("fragments: {}", of_status.join(", "));
    if found.apart + found.apart_unstored > 0 {
        let unstored = match found.apart_unstored {
            0 => String::new(),
            unstored => format!(", and {unstored} more that were not stored"),
        };
        println!("set apart: {}{unstored}", count(found.apart, "fragment"));
    }
    println!(
        "{} complete, {} incomplete, {} damaged, {} stored twice",
        found.complete, found.incomplete, found.damaged, found.duplicates
    );
    if let Some((first, last)) = found.range {
        println!("event ids {first} to {last}, {} of them in none of these files", found.absent);
    }
    match (found.is_intact(), found.incomplete) {
        (true, 0) => show_text("good: every byte is as it was written\n"),
        (true, some) => {
            let some = count(some, "event");
            show_text(&format!("not good: every byte is as it was written, but {some} stored incomplete\n"));
        }
        (false, _) => show_text(&format!("not good: {}, see above\n", count(found.total_findings, "finding"))),
    }
}

/// A number and its noun.
fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn statuses(found: &Verification) -> impl Iterator<Item = (&'static str, u64)> {
    Status::ALL.into_iter().map(Status::name).zip(found.fragments)
}

fn verification_json(found: &Verification) -> serde_json::Value {
    let finding = |finding: &evb_events::Finding| {
        json!({
            "file": finding.file, "offset": finding.offset, "length": finding.length, "kind": finding.kind.name(),
            "event": finding.event.map(|event| event.0), "source": finding.source.map(|source| source.0),
        })
    };
    json!({
        "kind": "verification", "files": found.files, "bytes": found.bytes, "events": found.events,
        "complete": found.complete, "incomplete": found.incomplete, "damaged": found.damaged,
        "apart": found.apart, "apart_unstored": found.apart_unstored,
        "duplicates": found.duplicates, "absent": found.absent, "unclosed": found.unclosed,
        "fragments": statuses(found).collect::<std::collections::BTreeMap<_, _>>(),
        "findings": found.findings.iter().map(finding).collect::<Vec<_>>(),
        "total_findings": found.total_findings, "intact": found.is_intact(),
    })
}

fn show(args: &ShowArgs) -> Result<Outcome, Failure> {
    for path in &event_files(&args.files)? {
        let summary = evb_events::show(path).map_err(Failure::new)?;
        print_summary(&summary, args.experiment);
    }
    Ok(Outcome::Good)
}

fn print_summary(summary: &FileSummary, with_experiment: bool) {
    println!("{}", summary.path.display());
    let readout = summary.metadata.as_ref().and_then(|metadata| metadata.readout);
    let range = summary.range.filter(|_| readout.is_none());
    let range = range.map_or(String::new(), |(first, last)| format!(", ids {first} to {last}"));
    let content = if readout.is_some() { "records" } else { "events" };
    let state = match (summary.closed_cleanly, summary.tail_bytes) {
        (true, _) => "closed".to_owned(),
        (false, 0) => "not closed; it ends with a whole event".to_owned(),
        (false, bytes) => format!("not closed; {bytes} bytes of an event that was cut off"),
    };
    let rows =
        [(content, format!("{}{range}", summary.events)), ("bytes", summary.bytes.to_string()), ("state", state)];
    rows.iter().for_each(|(name, value)| println!("  {name:<12}{value}"));
    let Some(metadata) = &summary.metadata else {
        println!("  the part that tells of the run is damaged");
        return;
    };
    let writer = match metadata.readout {
        Some(unit) => ("readout", format!("ru{unit}, fragments that belong to no event")),
        None => ("builder", format!("bu{}, file {}", metadata.builder, metadata.file)),
    };
    let mut rows = vec![
        ("experiment", metadata.experiment.clone()),
        ("run", metadata.run.to_string()),
        writer,
        ("seed", metadata.seed.to_string()),
        ("version", format!("evb {}", metadata.version)),
        ("sources", metadata.sources.join(" ")),
    ];
    rows.extend(summary.version.map(|version| ("format", format!("version {version}"))));
    rows.extend((metadata.start > 0).then(|| ("start", utc(metadata.start))));
    rows.extend(summary.times.map(|(first, last)| ("times", format!("{} to {}", utc(first), utc(last)))));
    let texts = [("type", &metadata.run_type), ("comment", &metadata.comment), ("clock", &metadata.clock)];
    rows.extend(texts.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name, text.clone())));
    rows.iter().for_each(|(name, value)| println!("  {name:<12}{value}"));
    if with_experiment {
        println!("\n{}", metadata.text);
    }
}

/// A time in nanoseconds since 1970-01-01 UTC as a date.
fn utc(time: u64) -> String {
    let (seconds, nanoseconds) = ((time / 1_000_000_000).cast_signed(), (time % 1_000_000_000) as i32);
    jiff::Timestamp::new(seconds, nanoseconds).map_or_else(|_| format!("{time} ns"), |at| format!("{at:.9}"))
}
