//! `evb events`: verify, show or export event files.

use crate::{
    failure::Failure,
    output::{self, Output},
    terminal::show as show_text,
};
use clap::{Args, Subcommand, ValueEnum};
use evb_events::{ExportError, FileSummary, Status, Verification};
use evb_record::Outcome;
use serde_json::json;
use std::{
    fs::File,
    io::{BufWriter, Write},
    path::PathBuf,
};

#[derive(Subcommand)]
pub(crate) enum EventsCommand {
    /// Check every byte of the files, and the events across them
    Verify(VerifyArgs),
    /// Say what is in each file
    Show(ShowArgs),
    /// Write fragments or headers in other forms
    Export(ExportArgs),
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

#[derive(Args)]
pub(crate) struct ExportArgs {
    /// The event files; give all files of a run together
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What to write: the fragments of each source as they came, or a table of all headers
    #[arg(long, value_enum, default_value_t = Format::Raw)]
    format: Format,
    /// Folder of the raw files, or file of the table; the table goes to standard output by default
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// `source-NNN.raw` for each source, fragments back to back in the order of events
    Raw,
    /// One line per fragment
    Csv,
}

pub(crate) fn run(command: &EventsCommand) -> Result<Outcome, Failure> {
    match command {
        EventsCommand::Verify(args) => verify(args),
        EventsCommand::Show(args) => show(args),
        EventsCommand::Export(args) => export(args),
    }
}

fn verify(args: &VerifyArgs) -> Result<Outcome, Failure> {
    let found = evb_events::verify(&args.files).map_err(Failure::new)?;
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
        "duplicates": found.duplicates, "absent": found.absent, "unclosed": found.unclosed,
        "fragments": statuses(found).collect::<std::collections::BTreeMap<_, _>>(),
        "findings": found.findings.iter().map(finding).collect::<Vec<_>>(),
        "total_findings": found.total_findings, "intact": found.is_intact(),
    })
}

fn show(args: &ShowArgs) -> Result<Outcome, Failure> {
    for path in &args.files {
        let summary = evb_events::show(path).map_err(Failure::new)?;
        print_summary(&summary, args.experiment);
    }
    Ok(Outcome::Good)
}

fn print_summary(summary: &FileSummary, with_experiment: bool) {
    println!("{}", summary.path.display());
    let range = summary.range.map_or(String::new(), |(first, last)| format!(", ids {first} to {last}"));
    let state = match (summary.closed_cleanly, summary.tail_bytes) {
        (true, _) => "closed".to_owned(),
        (false, 0) => "not closed; it ends with a whole event".to_owned(),
        (false, bytes) => format!("not closed; {bytes} bytes of an event that was cut off"),
    };
    let rows =
        [("events", format!("{}{range}", summary.events)), ("bytes", summary.bytes.to_string()), ("state", state)];
    rows.iter().for_each(|(name, value)| println!("  {name:<12}{value}"));
    let Some(metadata) = &summary.metadata else {
        println!("  the part that tells of the run is damaged");
        return;
    };
    let rows = [
        ("experiment", metadata.experiment.clone()),
        ("run", metadata.run.to_string()),
        ("builder", format!("bu{}, file {}", metadata.builder, metadata.file)),
        ("seed", metadata.seed.to_string()),
        ("version", format!("evb {}", metadata.version)),
        ("sources", metadata.sources.join(" ")),
    ];
    rows.iter().for_each(|(name, value)| println!("  {name:<12}{value}"));
    if with_experiment {
        println!("\n{}", metadata.text);
    }
}

fn export(args: &ExportArgs) -> Result<Outcome, Failure> {
    let summary = match (args.format, &args.output) {
        (Format::Raw, Some(directory)) => evb_events::export_raw(&args.files, directory),
        (Format::Raw, None) => {
            return Err(Failure::with_hint("raw files need a folder", "give it with `--output DIR`"));
        }
        (Format::Csv, Some(path)) => {
            let file = File::create_new(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
            write_table(args, BufWriter::new(file))
        }
        (Format::Csv, None) => match write_table(args, BufWriter::new(Output)) {
            // The end of the command tells why, unless the reader has what it wanted.
            Err(ExportError::Table(_)) => return output::check().map(|()| Outcome::Good),
            written => written,
        },
    };
    let summary = summary.map_err(Failure::new)?;
    eprintln!(
        "evb: exported {} events, {} fragments, {} payload bytes",
        summary.events, summary.fragments, summary.payload_bytes
    );
    if summary.damaged + summary.lost > 0 {
        eprintln!(
            "evb: {} events are damaged and {} are left out; `evb events verify` tells which",
            summary.damaged, summary.lost
        );
    }
    Ok((summary.damaged + summary.lost == 0).into())
}

fn write_table(
    args: &ExportArgs,
    mut output: impl Write,
) -> Result<evb_events::ExportSummary, evb_events::ExportError> {
    let summary = evb_events::export_csv(&args.files, &mut output)?;
    output.flush().map_err(evb_events::ExportError::Table)?;
    Ok(summary)
}
