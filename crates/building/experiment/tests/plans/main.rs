//! Meaning of good files.

mod building;
mod defaults;
mod full;
mod sources;
mod sweeps;

use evb_core::EventCounter;
use evb_experiment::{Experiment, Plan};
use evb_sources::{Framing, FrontEndLink, LiveSpec, SourceSpec};

pub(crate) const SHORT: &str = r#"
trigger.events = 1000
builder.units = 2
[readout]
units = 2
source = { type = "fixed", size = "2 kB" }
"#;

pub(crate) fn parse(text: &str, overrides: &[&str]) -> Experiment {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    Experiment::parse(text, "folder/short.toml", &overrides).unwrap_or_else(|error| panic!("{error:?}"))
}

pub(crate) fn plan(text: &str, overrides: &[&str]) -> Plan {
    let experiment = parse(text, overrides);
    assert_eq!(experiment.plans().len(), 1);
    experiment.plans()[0].clone()
}

/// Parses the resolved text and expects the same plans.
pub(crate) fn assert_resolves(experiment: &Experiment) {
    let resolved = experiment.resolved();
    let again = Experiment::parse(&resolved, "again.toml", &[]).unwrap_or_else(|error| panic!("{error:?}\n{resolved}"));
    assert_eq!(again.plans(), experiment.plans(), "{resolved}");
    assert_eq!(again.resolved(), resolved);
}

pub(crate) fn live(link: FrontEndLink, bits: u8, framing: Option<Framing>) -> SourceSpec {
    SourceSpec::Live(Box::new(LiveSpec {
        link,
        counter: EventCounter::new(bits),
        framing,
        slices: None,
        control: None,
        shared: Vec::new(),
    }))
}
