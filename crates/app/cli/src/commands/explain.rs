//! `evb explain`: what limits a run or a simulation, and what the result of a plan hangs on.

use super::compare::{Records, read};
use crate::{
    failure::Failure,
    terminal::{show, width},
};
use clap::Args;
use evb_record::{Outcome, Planning, Record};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// The records: what `--json` of `evb run` or `evb simulate` printed, or `evb runs show N --json`, or `plan.json` of `evb plan
    /// --out DIR`; - reads standard input
    #[arg(value_name = "RECORD")]
    records: PathBuf,
    /// Print JSON instead of text, for each record on a line: a list of limits, or the advice of a plan
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<Outcome, Failure> {
    let path = if args.records.as_os_str() == "-" { PathBuf::from("/dev/stdin") } else { args.records.clone() };
    match read(&path)? {
        Records::Runs(records) => {
            records.iter().try_for_each(|record| explain_run(args, record))?;
            Ok(Outcome::worst(records.iter().map(Record::outcome)))
        }
        Records::Plans(plans) => {
            plans.iter().try_for_each(|planning| explain_plan(args, planning))?;
            Ok(Outcome::worst(plans.iter().map(Planning::outcome)))
        }
        Records::Benchmarks(_) => Err(Failure::with_hint(
            "benchmarks say themselves what they measured",
            "give what `evb run --json` printed",
        )),
    }
}

fn explain_run(args: &ExplainArgs, record: &Record) -> Result<(), Failure> {
    if args.json {
        return print(serde_json::to_string(&evb_report::explain(record)));
    }
    let point: Vec<_> = record.sweep.iter().map(|(key, value)| format!("  {key} = {value}")).collect();
    println!("{}{}", record.experiment, point.concat());
    show(&evb_report::explanation(record, width()));
    Ok(())
}

fn explain_plan(args: &ExplainArgs, planning: &Planning) -> Result<(), Failure> {
    if args.json {
        return print(serde_json::to_string(&planning.advice));
    }
    println!("{}", planning.plan);
    show(&evb_report::plan_explanation(planning, width()));
    Ok(())
}

fn print(text: serde_json::Result<String>) -> Result<(), Failure> {
    println!("{}", text.map_err(Failure::new)?);
    Ok(())
}
