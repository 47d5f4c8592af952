//! The parts that networks are made of, with their prices.

use crate::{Freedom, PlannerError, Range, file};
use evb_core::{Bandwidth, ByteCount, Span};
use serde::Deserialize;
use std::path::Path;

/// Time of light in a metre of cable, in picoseconds: 5 ns, two thirds of the speed of light.
const PS_PER_METRE: f64 = 5_000.0;

/// A list of parts. Costs are in any one currency.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parts {
    /// Date of the values, as text.
    pub date: String,
    /// Unit of all costs.
    pub currency: String,
    /// Switches.
    pub switch: Vec<Switch>,
    /// Cables, with the transceivers at both ends.
    pub cable: Vec<Cable>,
    /// Network interfaces of hosts.
    pub interface: Vec<Interface>,
}

/// A switch.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Name of the part.
    pub name: String,
    /// Its ports.
    pub ports: Vec<PortGroup>,
    /// Memory for packets in bytes; that of the experiment without it.
    pub buffer: Option<ByteCount>,
    /// Time of a packet in the switch; that of the experiment without it.
    pub delay: Option<Span>,
    /// Cost of one.
    pub cost: Range<f64>,
    /// Power of one in watts.
    pub power_w: f64,
    /// Source of the values.
    pub source: String,
}

/// Ports of a switch that are alike.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortGroup {
    /// Number of ports.
    pub count: u16,
    /// Highest rate of a port. It works at lower rates, too.
    pub rate: Bandwidth,
}

/// A cable, with the transceivers at both ends.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cable {
    /// Name of the part.
    pub name: String,
    /// Highest rate.
    pub rate: Bandwidth,
    /// Longest distance that it reaches, in metres.
    pub reach_m: f64,
    /// Time in the transceivers of both ends.
    #[serde(default)]
    pub delay: Span,
    /// Cost of one.
    pub cost: Range<f64>,
    /// Power of one in watts.
    #[serde(default)]
    pub power_w: f64,
    /// Source of the values.
    pub source: String,
}

/// A network interface of a host, with one port.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Name of the part.
    pub name: String,
    /// Rate of its port.
    pub rate: Bandwidth,
    /// Cost of one.
    pub cost: Range<f64>,
    /// Power of one in watts.
    #[serde(default)]
    pub power_w: f64,
    /// Source of the values.
    pub source: String,
}

impl Parts {
    /// Reads a file of parts.
    ///
    /// # Errors
    /// The file cannot be read, is not such a file, or lacks a kind of part.
    pub fn load(path: &Path) -> Result<Self, PlannerError> {
        let parts: Self = file::read_toml(path)?;
        let lacking = [("switch", parts.switch.is_empty()), ("cable", parts.cable.is_empty())];
        if let Some((kind, _)) = lacking.into_iter().find(|(_, is_empty)| *is_empty) {
            return Err(PlannerError::file(path, format!("there is no {kind}"), format!("add [[{kind}]]")));
        }
        let all = parts.switch.iter().map(|part| (&part.name, part.cost, part.power_w));
        let all = all.chain(parts.cable.iter().map(|part| (&part.name, part.cost, part.power_w)));
        let mut all = all.chain(parts.interface.iter().map(|part| (&part.name, part.cost, part.power_w)));
        let is_bad = |value: f64| !(0.0..=1e12).contains(&value);
        if let Some((name, ..)) = all.find(|(_, cost, power)| is_bad(cost.low) || is_bad(cost.high) || is_bad(*power)) {
            let why = format!("cost and power of `{name}` must be between 0 and 1e12");
            return Err(PlannerError::file(path, why, "write plain numbers"));
        }
        if let Some(part) = parts.switch.iter().find(|part| part.port_count(Bandwidth(0)) < 2) {
            let why = format!("switch `{}` has fewer than two ports", part.name);
            return Err(PlannerError::file(path, why, "write `ports = [{ count = 64, rate = \"400 Gbit/s\" }]`"));
        }
        Ok(parts)
    }

    /// Keeps the switches and interfaces that may be used.
    ///
    /// # Errors
    /// The parts lack one of these names.
    pub(crate) fn keep(&mut self, freedom: &Freedom, path: &Path) -> Result<(), PlannerError> {
        let lacks = |kind: &str, name: &str| {
            let why = format!("there is no {kind} `{name}`, which `freedom` of the plan names");
            PlannerError::file(path, why, "use the name of a part")
        };
        keep(&mut self.switch, |part| &part.name, &freedom.switches).map_err(|name| lacks("switch", name))?;
        keep(&mut self.interface, |part| &part.name, &freedom.interfaces).map_err(|name| lacks("interface", name))
    }

    /// The cheapest cable for a rate and a distance.
    pub(crate) fn cable(&self, rate: Bandwidth, metres: f64) -> Option<&Cable> {
        let fits = self.cable.iter().filter(|cable| cable.rate >= rate && cable.reach_m >= metres);
        fits.min_by(|a, b| a.cost.high.total_cmp(&b.cost.high))
    }
}

/// Keeps the parts with these names, or all parts if the list is empty. Returns the first name that no part has as an error.
fn keep<'n, T>(parts: &mut Vec<T>, name: fn(&T) -> &String, names: &'n [String]) -> Result<(), &'n str> {
    if let Some(unknown) = names.iter().find(|wanted| !parts.iter().any(|part| name(part) == *wanted)) {
        return Err(unknown);
    }
    parts.retain(|part| names.is_empty() || names.contains(name(part)));
    Ok(())
}

impl Switch {
    /// Number of ports of at least this rate.
    pub(crate) fn port_count(&self, rate: Bandwidth) -> u32 {
        self.ports.iter().filter(|group| group.rate >= rate).map(|group| u32::from(group.count)).sum()
    }

    /// The fastest ports.
    pub(crate) fn fastest(&self) -> PortGroup {
        let fastest = self.ports.iter().map(|group| group.rate).max().unwrap_or_default();
        PortGroup { count: self.port_count(fastest).try_into().unwrap_or(u16::MAX), rate: fastest }
    }

    /// The part of the memory that belongs to a port if all share it evenly.
    pub(crate) fn buffer_of_port(&self) -> Option<ByteCount> {
        Some(ByteCount(self.buffer?.0 / u64::from(self.port_count(Bandwidth(0)).max(1))))
    }
}

impl Cable {
    /// Time of a bit in a cable of this length.
    pub(crate) fn time(&self, metres: f64) -> Span {
        Span(self.delay.0.saturating_add((metres * PS_PER_METRE) as u64))
    }
}
