//! Communication benchmarks for the terminal: the parameters, an overview, then every measurement, then remarks and the
//! verdict.

mod case;
mod detail;
mod overview;
mod parameters;
mod remarks;

pub(crate) use case::{Case, distinct};
use evb_record::{Benchmark, Parameters};
pub(crate) use remarks::titled;

/// All tables of a suite: the parameters of each transport, one number for each pattern if each was measured once, the
/// measurements pattern by pattern, notes and conditions, and the verdict. Transports that do not fit beside the others
/// get further tables.
pub fn benchmark_tables(records: &[Benchmark], parameters: &[Parameters], width: usize) -> String {
    let parts = [
        parameters::table(parameters, width),
        overview::table(records, width),
        detail::tables(records, width),
        remarks::remarks(records, width),
    ];
    let shown: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{}\n{}\n", shown.join("\n"), last_line(records))
}

fn last_line(records: &[Benchmark]) -> String {
    let all = records.len();
    let untrusted = records.iter().filter(|record| !record.trusted).count();
    let trust = match untrusted {
        0 => String::new(),
        _ => format!("; {untrusted} cannot be trusted"),
    };
    match records.iter().filter(|record| !record.good).count() {
        0 if all == 0 => "not good: nothing was measured".to_owned(),
        0 => format!("good: all {all} measurements, every message accounted for{trust}"),
        bad => format!("not good: {bad} of {all} measurements lost or corrupted messages{trust}"),
    }
}
