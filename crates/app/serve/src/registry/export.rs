//! Runs as a table for other programs.

use super::RunRow;
use evb_record::Outcome;
use std::fmt::Write as _;

/// The runs as comma-separated values, with a line of names.
pub fn csv(runs: &[RunRow]) -> String {
    let names = "number,type,experiment,comment,stop_comment,state,started,ended,events,event_rate_hz,bytes,good,verdict,host,version\n";
    let mut text = names.to_owned();
    for run in runs {
        let fields = [
            run.number.to_string(),
            quoted(&run.run_type),
            quoted(&run.experiment),
            quoted(&run.comment),
            quoted(&run.stop_comment),
            quoted(&run.state),
            format!("{:.3}", run.started),
            run.ended.map(|ended| format!("{ended:.3}")).unwrap_or_default(),
            run.events.to_string(),
            run.event_rate_hz.to_string(),
            run.bytes.to_string(),
            run.good.map(|good| good.to_string()).unwrap_or_default(),
            run.verdict.map_or("", Outcome::key).to_owned(),
            quoted(&run.host),
            quoted(&run.version),
        ];
        let _never_fails = writeln!(text, "{}", fields.join(","));
    }
    text
}

/// A field that other programs read as this text, and that a spreadsheet does not take for a formula.
fn quoted(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}
