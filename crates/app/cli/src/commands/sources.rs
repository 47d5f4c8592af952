//! `evb sources`: what a framing makes of the bytes of a front end.

mod eudaq;

use crate::{ExperimentArgs, failure::Failure, terminal};
use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use evb_record::Outcome;
use evb_sources::{
    Framing, FrontEndLink, InspectedFrame, Inspection, InspectionInput, InspectionLimits, InspectionReport, LiveSpec,
    SourceSpec,
};
use std::{fmt::Write as _, ops::Range, path::PathBuf, time::Duration};

/// Colours of the parts of a frame, in their order.
const COLOURS: [AnsiColor; 6] =
    [AnsiColor::Magenta, AnsiColor::Yellow, AnsiColor::Cyan, AnsiColor::Green, AnsiColor::Blue, AnsiColor::Red];
/// Bytes of a frame in one line.
const ROW: usize = 24;
/// Most different steps of a counter that are shown.
const STEPS: usize = 6;

#[derive(Subcommand)]
pub(crate) enum SourcesCommand {
    /// Say what the framing of a live source makes of its data: the first frames, the steps of counter and clock, the first
    /// bytes that do not fit, and guesses; or which producers a file of EUDAQ has
    Try(TryArgs),
}

#[derive(Args)]
pub(crate) struct TryArgs {
    /// An experiment with the framing of the source
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// What the front end has sent: a capture, PCAP or PCAPNG, or the bytes of a connection; by default the front end itself
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Port of the datagrams in a capture; any by default
    #[arg(long)]
    port: Option<u16>,
    /// Which source, from 0
    #[arg(long, value_name = "INDEX", default_value_t = 0)]
    source: usize,
    /// Number of frames that are shown
    #[arg(long, value_name = "N", default_value_t = 5)]
    show: usize,
    /// Number of frames after which a front end is left
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    frames: u64,
    /// Seconds after which a front end is left
    #[arg(long, value_name = "S", default_value_t = 5)]
    seconds: u64,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &SourcesCommand) -> Result<Outcome, Failure> {
    match command {
        SourcesCommand::Try(args) => try_source(args),
    }
}

fn try_source(args: &TryArgs) -> Result<Outcome, Failure> {
    let experiment = args.experiment.load()?;
    let plan = &experiment.plans()[0];
    let of_source = plan.sources.get(args.source).ok_or_else(|| {
        Failure::new(format!("--source {} is beyond the {} sources", args.source, plan.sources.len()))
    })?;
    if let Some(LiveSpec { link: FrontEndLink::Eudaq { file, producer }, .. }) = of_source.live() {
        return eudaq::try_file(args, (file, producer), &plan.data_directory);
    }
    let described = of_source.live().and_then(|live| Some((live, live.framing.as_ref()?)));
    let Some((live, framing)) = described else {
        let message = format!("source {} has no framing of its own to try", args.source);
        return Err(Failure::with_hint(message, "describe the frames of the board in [readout.framing]"));
    };
    let same_link = |other: &&LiveSpec| other.link == live.link && other.can_share(live);
    let others = plan.sources.iter().filter_map(SourceSpec::live).filter(same_link).filter_map(LiveSpec::source_id);
    let inspection = Inspection::new(framing.clone(), plan.max_fragment().0 as u32, args.show).beside(others.collect());
    let inspection = if live.link.file().is_some() { inspection.in_file() } else { inspection };
    let report = inspect(args, live, inspection, &plan.data_directory)?;
    match args.json {
        true => println!("{}", serde_json::to_string(&report).map_err(Failure::new)?),
        false => terminal::show_styled(&describe(framing, &report)),
    }
    Ok(report.fits().into())
}

fn inspect(
    args: &TryArgs,
    live: &LiveSpec,
    mut inspection: Inspection,
    data_directory: &std::path::Path,
) -> Result<InspectionReport, Failure> {
    let limits = InspectionLimits { duration: Duration::from_secs(args.seconds), frames: args.frames };
    let mut input = InspectionInput::new(&mut inspection, limits);
    match &args.data {
        Some(file) => input.read_file(file, args.port),
        None => input.read_link(&live.link, data_directory),
    }
    .map_err(Failure::new)?;
    Ok(inspection.finish())
}

/// The report as a text with colours.
fn describe(framing: &Framing, report: &InspectionReport) -> String {
    let mut text = String::new();
    if let Some(longest) = report.first.iter().map(|frame| frame.length).max() {
        let parts = framing.parts(longest);
        let names =
            parts.iter().enumerate().map(|(n, (name, bytes))| paint(n, &format!("{name} {}", place(bytes, longest))));
        text += &format!("fields   {}\n\n", names.collect::<Vec<_>>().join("  "));
    }
    for frame in &report.first {
        add_frame(&mut text, framing, frame);
    }
    summary(report).into_iter().for_each(|line| text += &format!("{line}\n"));
    counters(framing, report).into_iter().for_each(|line| text += &format!("{line}\n"));
    hits(framing, report).into_iter().for_each(|line| text += &format!("{line}\n"));
    misfits(report).into_iter().for_each(|line| text += &format!("{line}\n"));
    report.guesses.iter().for_each(|guess| text += &format!("guess    {guess}\n"));
    text + &verdict(report)
}

/// The bytes of a part; from the end, if it is there.
fn place(bytes: &Range<usize>, length: usize) -> String {
    if bytes.end == length { format!("-{} to -1", bytes.len()) } else { format!("{}-{}", bytes.start, bytes.end - 1) }
}

fn add_frame(text: &mut String, framing: &Framing, frame: &InspectedFrame) {
    let step = |name: &str, value: u64, step: Option<i64>| {
        let step = step.map_or(String::new(), |step| format!(" ({step:+})"));
        format!("  {name} {value}{step}")
    };
    let clock = frame.clock.map(|clock| step("clock", clock, frame.ticks)).unwrap_or_default();
    let mark = frame.mark.map(|mark| format!("  mark {mark}")).unwrap_or_default();
    let state = match (frame.good, frame.is_ours) {
        (true, true) => "",
        (false, _) => "  damaged",
        (true, false) => "  of another source",
    };
    let counter = step("counter", frame.counter, frame.step);
    let _infallible = writeln!(text, "at {}: {} bytes{counter}{clock}{mark}{state}", frame.offset, frame.length);
    let parts = framing.parts(frame.length);
    for (row, bytes) in frame.bytes.chunks(ROW).enumerate() {
        let hex = bytes.iter().zip(row * ROW..).map(|(byte, at)| {
            let part = parts.iter().position(|(_, range)| range.contains(&at));
            let digits = format!("{byte:02x}");
            part.map_or(digits.clone(), |part| paint(part, &digits))
        });
        let _infallible = writeln!(text, "    {}", hex.collect::<Vec<_>>().join(" "));
    }
    if !frame.hits.is_empty() {
        let time = |time: &Option<i64>| time.map_or("no time".to_owned(), |time| format!("{time} ns"));
        let times: Vec<_> = frame.hits.iter().map(time).collect();
        let _infallible = writeln!(text, "    hits {}", times.join(", "));
    }
    if frame.length > frame.bytes.len() {
        let _infallible = writeln!(text, "    ... {} more bytes", frame.length - frame.bytes.len());
    }
    text.push('\n');
}

fn paint(part: usize, text: &str) -> String {
    let style = Style::new().fg_color(Some(COLOURS[part % COLOURS.len()].into()));
    format!("{style}{text}{style:#}")
}

fn summary(report: &InspectionReport) -> Vec<String> {
    let mean = report.frame_bytes.checked_div(report.frames);
    let own = mean.map(|mean| format!("frames   {} of {mean} bytes on average", report.frames));
    let others =
        (report.others > 0).then(|| format!("others   {} frames of other sources of this link", report.others));
    own.into_iter().chain(others).collect()
}

fn counters(framing: &Framing, report: &InspectionReport) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some((first, last)) = report.counters.filter(|_| framing.counter.is_some()) {
        let mut steps: Vec<_> = report.steps.iter().collect();
        steps.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let more = if steps.len() > STEPS { ", and others" } else { "" };
        let steps = steps.into_iter().take(STEPS).map(|(step, count)| format!("{step:+} {count} times"));
        lines.push(format!("counter  {first} to {last}, steps {}{more}", steps.collect::<Vec<_>>().join(", ")));
    }
    if let (Some((first, last)), Some(clock)) = (report.clocks, framing.clock) {
        let back = match report.clock_back {
            0 => String::new(),
            back => format!(", {back} steps backwards"),
        };
        let seconds = last.saturating_sub(first) as f64 / clock.frequency.as_hertz();
        let rate = if seconds > 0.0 {
            format!(", {:.1} frames/s", (report.frames - 1) as f64 / seconds)
        } else {
            String::new()
        };
        lines.push(format!("clock    {first} to {last}, {seconds:.6} s{rate}{back}"));
    }
    lines
}

/// The hits inside the frames.
fn hits(framing: &Framing, report: &InspectionReport) -> Option<String> {
    framing.hits.as_ref()?;
    let without = match report.hits_without_time {
        0 => String::new(),
        count => format!(", {count} without a marker before them"),
    };
    Some(format!("hits     {}{without}", report.hits))
}

/// What does not fit.
fn misfits(report: &InspectionReport) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |number: u64, text: String| lines.extend((number > 0).then_some(text));
    add(report.damaged, format!("damaged  {} frames", report.damaged));
    add(report.foreign, format!("foreign  {} frames of no source", report.foreign));
    let (bytes, places) = report.skipped;
    let first = report.first_skipped.iter().map(|(at, bytes)| {
        let hex: String = bytes.iter().take(ROW).map(|byte| format!(" {byte:02x}")).collect();
        format!(", the first at {at}:{hex}")
    });
    add(bytes, format!("skipped  {bytes} bytes in {places} places{}", first.collect::<String>()));
    let size = report.oversized.1.unwrap_or(0);
    add(report.oversized.0, format!("too long {} frames, the first of {size} bytes", report.oversized.0));
    add(report.cut_hits, format!("cut      {} pieces of frames are too short for a hit", report.cut_hits));
    add(report.unfinished, format!("left     {} bytes of an unfinished frame", report.unfinished));
    lines
}

fn verdict(report: &InspectionReport) -> String {
    match (report.frames, report.fits()) {
        (0, _) => "not good: no frame was found\n".to_owned(),
        (_, true) => "good: every byte is in a frame of this framing\n".to_owned(),
        (_, false) => "not good: not all of it fits the framing, see above\n".to_owned(),
    }
}
