//! `evb feed`: play a live front end.

use crate::{
    ExperimentArgs,
    failure::Failure,
    progress::{FeedLine, ProgressArgs},
    signals::stop_on_signals,
};
use clap::{Args, ValueEnum};
use evb_core::Frequency;
use evb_record::Outcome;
use evb_sources::{FeedOptions, FeedProgress, FeedProtocol, OpenOptions, Source, feed};
use std::time::Duration;

#[derive(Args)]
pub(crate) struct FeedArgs {
    /// An experiment whose source is played; the source must not be a live one
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Where the readout unit listens
    #[arg(long, value_name = "HOST:PORT")]
    to: String,
    /// How to send
    #[arg(long, value_enum, default_value_t = Protocol::Tcp)]
    protocol: Protocol,
    /// Which readout unit's source to play, from 0; its frames carry this number
    #[arg(long, value_name = "INDEX", default_value_t = 0)]
    unit: u16,
    /// Events per second, such as "1 kHz"; as fast as they are taken by default
    #[arg(long)]
    rate: Option<Frequency>,
    /// How many events to play; all that the source has, or without end, by default
    #[arg(long, value_name = "N")]
    events: Option<u64>,
    /// Width of the event counter in the frames, in bits
    #[arg(long, value_name = "BITS", default_value_t = 64, value_parser = clap::value_parser!(u8).range(1..=64))]
    counter_bits: u8,
    /// Counter of the first event in the frames
    #[arg(long, value_name = "N", default_value_t = 1)]
    first_counter: u64,
    /// Mark every fragment beside its counter: with the bunch crossing of its recording, or with a number that is drawn from
    /// seed and event and is the same in all sources
    #[arg(long)]
    marks: bool,
    /// Longest wait for the readout unit to listen, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    patience: u64,
    #[command(flatten)]
    progress: ProgressArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum Protocol {
    Tcp,
    Udp,
}

pub(crate) fn run(args: &FeedArgs) -> Result<Outcome, Failure> {
    let experiment = args.experiment.load()?;
    let stop = stop_on_signals("the feed ends")?;
    let plan = &experiment.plans()[0];
    let (number, units) = (plan.bundling.sources_of(args.unit).start, plan.building.readout_units);
    let Some(spec) = plan.sources.get(usize::from(number)).filter(|_| args.unit < units) else {
        return Err(Failure::new(format!("--unit {} is beyond the {units} readout units", args.unit)));
    };
    if let Some(live) = spec.live() {
        let message = format!("ru{number} takes live data at {}: there is nothing to play", live.link.place());
        let hint = "give a file with the data that its front end is to send, such as `source = { type = \"fixed\", size = \
                    \"1 kB\" }` or a recording; `--to` is the address of the run that listens";
        return Err(Failure::with_hint(message, hint));
    }
    let open = OpenOptions {
        data_directory: plan.data_directory.clone(),
        unit: number,
        seed: plan.run.seed,
        max_fragment: plan.max_fragment().0 as u32,
    };
    let source = Source::open(spec, &open).map_err(Failure::new)?;
    let options = FeedOptions {
        to: args.to.clone(),
        protocol: match args.protocol {
            Protocol::Tcp => FeedProtocol::Tcp,
            Protocol::Udp => FeedProtocol::Udp,
        },
        unit: number,
        rate: args.rate,
        events: args.events.or(plan.events()),
        counter_bits: args.counter_bits,
        first_counter: args.first_counter,
        marked: args.marks.then_some(plan.run.seed),
        connect_timeout: Duration::from_secs(args.patience),
        stop: &stop,
    };
    let line = FeedLine::new(options.events, args.progress);
    let sent = feed(source, &options, |sent| line.show(&sent, &describe(&sent)));
    drop(line);
    eprintln!("evb: sent {}", describe(&sent.map_err(Failure::new)?));
    Ok(Outcome::Good)
}

fn describe(sent: &FeedProgress) -> String {
    let bytes = evb_report::metric(sent.bytes as f64);
    let mut text = format!("{} fragments of {} events, {bytes}B", sent.fragments, sent.events);
    for (count, what) in [(sent.damaged, "damaged"), (sent.missing, "missing")] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text
}
