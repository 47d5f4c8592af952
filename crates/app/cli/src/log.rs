//! The log on standard error, for operators. It is off by default.

use crate::failure::Failure;
use clap::ValueEnum;
use std::{process::Command, sync::OnceLock};
use tracing_subscriber::{filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// The environment variable with the filter.
pub(crate) const VARIABLE: &str = "EVB_LOG";
/// The environment variable with the form of the lines.
pub(crate) const FORM_VARIABLE: &str = "EVB_LOG_FORMAT";

/// Form of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people
    Text,
    /// For programs: an object of JSON on each line
    Json,
}

/// Filter and form of this process.
static LOG: OnceLock<(String, Form)> = OnceLock::new();

/// Begins to log all messages that pass the filter.
pub(crate) fn begin(filter: Option<&str>, form: Form) -> Result<(), Failure> {
    let Some(text) = filter.filter(|text| !text.trim().is_empty()) else { return Ok(()) };
    let filter = text.parse::<Targets>().map_err(|error| {
        let hint = "give a level such as info or debug, or levels of targets such as evb_node=debug,warn";
        Failure::with_hint(format!("the log filter {text:?}: {error}"), hint)
    })?;
    LOG.get_or_init(|| (text.to_owned(), form));
    let lines = fmt::layer().with_ansi(false).with_writer(std::io::stderr);
    match form {
        Form::Text => tracing_subscriber::registry().with(lines).with(filter).init(),
        Form::Json => tracing_subscriber::registry().with(lines.json().flatten_event(true)).with(filter).init(),
    }
    Ok(())
}

/// Passes filter and form to a child process.
pub(crate) fn pass_on(command: &mut Command) {
    if let Some((filter, form)) = LOG.get() {
        command.env(VARIABLE, filter);
        command
            .env(FORM_VARIABLE, form.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default());
    }
}
