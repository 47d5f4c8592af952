//! The log on standard error, for operators. It is off by default.

use crate::failure::Failure;
use std::{process::Command, sync::OnceLock};
use tracing_subscriber::{filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// The environment variable with the filter.
pub(crate) const VARIABLE: &str = "EVB_LOG";

/// The filter of this process.
static FILTER: OnceLock<String> = OnceLock::new();

/// Begins to log all messages that pass the filter.
pub(crate) fn begin(filter: Option<&str>) -> Result<(), Failure> {
    let Some(text) = filter.filter(|text| !text.trim().is_empty()) else { return Ok(()) };
    let filter = text.parse::<Targets>().map_err(|error| {
        let hint = "give a level such as info or debug, or levels of targets such as evb_node=debug,warn";
        Failure::with_hint(format!("the log filter {text:?}: {error}"), hint)
    })?;
    FILTER.get_or_init(|| text.to_owned());
    let lines = fmt::layer().with_ansi(false).with_writer(std::io::stderr);
    tracing_subscriber::registry().with(lines).with(filter).init();
    Ok(())
}

/// Passes the filter to a child process.
pub(crate) fn pass_on(command: &mut Command) {
    if let Some(filter) = FILTER.get() {
        command.env(VARIABLE, filter);
    }
}
