//! The record: what the account says, with what the driver has measured.

use crate::{Account, ReadoutReport, VERSION};
use evb_experiment::Plan;
use evb_record::{Finding, FindingKind, Kind, Record, Simulation, Trigger};
use evb_steady::{Offer, Steady};
use std::collections::BTreeMap;

/// What a driver has measured.
pub struct Measurement<'a> {
    /// What kind of work this was.
    pub kind: Kind,
    /// Name of the protocol or of the pattern.
    pub protocol: &'a str,
    /// How the nodes talked.
    pub transport: &'a str,
    /// Time from the start to the end of the last event.
    pub seconds: f64,
    /// The window that the rates are of.
    pub steady: Steady,
    /// What was offered.
    pub offered: Offered,
    /// What was carried.
    pub rates: Rates,
    /// What only a simulation has.
    pub simulation: Option<Simulation>,
}

/// What an experiment file asks for.
pub struct Offered {
    /// The key that says so.
    pub key: &'static str,
    /// What is offered.
    pub what: &'static str,
    /// Its rate; none when it comes as fast as it goes.
    pub rate_hz: Option<f64>,
}

/// Rates in the window.
pub struct Rates {
    /// Events that ended.
    pub events_hz: f64,
    /// Fragments that were received.
    pub fragments_hz: f64,
    /// Payload that was received.
    pub bytes_per_s: f64,
    /// Payload that each destination received.
    pub received_bytes_per_s: Vec<f64>,
    /// Payload that each source sent.
    pub sent_bytes_per_s: Vec<f64>,
}

impl Offered {
    /// Triggers at a rate.
    pub const fn triggers(rate_hz: Option<f64>) -> Self {
        Self { key: "trigger.rate", what: "triggers", rate_hz }
    }

    /// None when what is offered comes as fast as it goes.
    fn offer(&self, trigger: &Trigger, plan: &Plan) -> Option<Offer> {
        Some(Offer {
            key: self.key,
            what: self.what,
            came: trigger.offered,
            turned_away: trigger.inhibited,
            rate_hz: self.rate_hz?,
            accepted_loss: f64::from(plan.trigger.accept_loss) / 100.0,
        })
    }
}

impl Account {
    /// The record of an experiment that has ended.
    pub fn assemble(mut self, plan: &Plan, measured: Measurement<'_>) -> Record {
        let Measurement { kind, protocol, transport, seconds, steady, offered, rates, simulation } = measured;
        let faults = self.faults();
        let trigger = Trigger { offered_rate_hz: offered.rate_hz, ..self.manager.trigger };
        self.findings.extend(same_source(&self.readouts));
        self.findings.extend(self.readouts.iter_mut().flat_map(|readout| readout.findings.drain(..)));
        self.findings.extend(self.builders.iter_mut().flat_map(|builder| builder.findings.drain(..)));
        self.findings.extend(steady.finding());
        self.findings.extend(offered.offer(&trigger, plan).and_then(|offer| offer.judge(&steady)));
        Record {
            kind,
            experiment: plan.name.clone(),
            sweep: plan.sweep.iter().cloned().collect(),
            seed: plan.run.seed,
            version: VERSION.into(),
            protocol: protocol.into(),
            transport: transport.into(),
            readout_units: plan.building.readout_units,
            builder_units: plan.building.builder_units,
            events: self.manager.events,
            trigger,
            seconds,
            window: steady.window(),
            event_rate_hz: rates.events_hz,
            event_rate_interval_hz: steady.rate_hz(),
            fragment_rate_hz: rates.fragments_hz,
            throughput_bytes_per_s: rates.bytes_per_s,
            per_destination_bytes_per_s: rates.received_bytes_per_s,
            per_source_bytes_per_s: rates.sent_bytes_per_s,
            latency_us: self.manager.latency_us,
            faults,
            builders: self.builders.into_iter().map(|builder| builder.counts).collect(),
            readouts: self.readouts.into_iter().map(|readout| readout.counts).collect(),
            good: false,
            lost_nodes: self.lost_nodes,
            findings: self.findings,
            simulation,
        }
        .judged()
    }
}

/// Readout units whose recorded fragments carry one source id.
fn same_source(readouts: &[ReadoutReport]) -> Vec<Finding> {
    let mut seen = BTreeMap::new();
    let mut found = Vec::new();
    for (unit, id) in readouts.iter().enumerate().filter_map(|(unit, readout)| Some((unit, readout.counts.source_id?)))
    {
        if let Some(first) = seen.insert(id, unit) {
            let message = format!("ru{first} and ru{unit} both deliver the fragments of source {id}");
            found.push(Finding::new(FindingKind::WrongSource, format!("ru{unit}"), message));
        }
    }
    found
}
