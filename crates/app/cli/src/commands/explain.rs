//! `evb explain`: what limits a run or a simulation.

use super::compare::{Records, read};
use crate::{
    failure::Failure,
    terminal::{show, width},
};
use clap::Args;
use evb_record::{Outcome, Record};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// The records: what `--json` of `evb run` or `evb simulate` printed, or `evb runs show N --json`; - reads standard input
    #[arg(value_name = "RECORD")]
    records: PathBuf,
    /// Print JSON, a list of limits for each record on a line, instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<Outcome, Failure> {
    let path = if args.records.as_os_str() == "-" { PathBuf::from("/dev/stdin") } else { args.records.clone() };
    let Records::Runs(records) = read(&path)? else {
        return Err(Failure::with_hint(
            "benchmarks say themselves what they measured",
            "give what `evb run --json` printed",
        ));
    };
    for record in &records {
        match args.json {
            true => println!("{}", serde_json::to_string(&evb_report::explain(record)).map_err(Failure::new)?),
            false => {
                let point: Vec<_> = record.sweep.iter().map(|(key, value)| format!("  {key} = {value}")).collect();
                println!("{}{}", record.experiment, point.concat());
                show(&evb_report::explanation(record, width()));
            }
        }
    }
    Ok(Outcome::worst(records.iter().map(Record::outcome)))
}
