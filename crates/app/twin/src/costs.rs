//! The costs that are fitted, and the machine that they make.

use crate::Machine;
use evb_core::{ByteCount, Span};
use evb_experiment::{
    CacheCost, Computers, CpuPlan, CrossingCost, EventCost, LocalMessages, ManagerCost, MessageCost, PayloadCost,
    WakeCost,
};
use std::fmt::Write as _;

/// A cost that is fitted. It is the sum of the costs of its items, which a run of whole event builders cannot tell apart: each
/// has an equal part of it.
pub(crate) struct Parameter {
    /// Its items, keys of `network.cpu`.
    pub(crate) items: &'static [&'static str],
    /// A usual value in nanoseconds, for a machine whose runs do not tell.
    usual_ns: f64,
    /// It exists only where nodes are threads (`Some(false)`) or processes (`Some(true)`).
    of_processes: Option<bool>,
}

const fn parameter(items: &'static [&'static str], usual_ns: f64, of_processes: Option<bool>) -> Parameter {
    Parameter { items, usual_ns, of_processes }
}

/// All of them. The usual values are those of one server core of 2023.
const PARAMETERS: [Parameter; 20] = [
    parameter(&["poll"], 100.0, None),
    parameter(&["poll_peer"], 10.0, None),
    parameter(&["send.call", "receive.call"], 300.0, None),
    parameter(&["send.message", "receive.message"], 100.0, None),
    parameter(&["manager.block"], 120.0, None),
    parameter(&["manager.event"], 30.0, None),
    parameter(&["readout.block", "builder.block"], 280.0, None),
    parameter(&["readout.fragment", "builder.fragment"], 40.0, None),
    parameter(&["readout.byte", "builder.byte"], 0.1, None),
    parameter(&["readout.draw"], 100.0, None),
    parameter(&["storage.event"], 500.0, None),
    parameter(&["storage.byte"], 0.5, None),
    parameter(&["crossing.message"], 300.0, Some(false)),
    parameter(&["crossing.byte"], 0.06, Some(false)),
    parameter(&["crossing.delay"], 100.0, None),
    parameter(&["cache.byte"], 0.02, None),
    parameter(&["context_switch"], 1500.0, Some(true)),
    parameter(&["refill"], 300.0, Some(true)),
    parameter(&["wake.delay"], 5000.0, None),
    parameter(&["wake.call"], 1500.0, Some(true)),
];

/// The weight of a usual value beside that of a run: a cost of e times the usual weighs as much as a run that is simulated
/// wrongly by 5 %.
const WEIGHT_OF_USUAL: f64 = 0.05;

/// Time for which a worker may use a core while others wait: the base slice of Linux's EEVDF scheduler on two cores.
const SLICE: Span = Span::from_millis(3);

/// The kind of machine that is fitted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kind {
    pub(crate) machine: Machine,
    pub(crate) processes: bool,
}

/// Values of the parameters of a kind of machine, in nanoseconds. None is zero: a fit changes their logarithms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Costs {
    pub(crate) kind: Kind,
    pub(crate) values: Vec<f64>,
}

impl Kind {
    pub(crate) fn parameters(&self) -> Vec<&'static Parameter> {
        PARAMETERS.iter().filter(|one| one.of_processes.is_none_or(|processes| processes == self.processes)).collect()
    }

    /// The usual costs.
    pub(crate) fn usual(&self) -> Costs {
        Costs { kind: self.clone(), values: self.parameters().iter().map(|parameter| parameter.usual_ns).collect() }
    }

    /// The costs with these logarithms.
    pub(crate) fn costs(&self, logarithms: &[f64]) -> Costs {
        Costs { kind: self.clone(), values: logarithms.iter().map(|one| one.exp()).collect() }
    }
}

impl Costs {
    /// The cost of an item.
    fn of(&self, item: &str) -> Span {
        let all = self.kind.parameters();
        let mut found = all.iter().zip(&self.values).filter(|(parameter, _)| parameter.items.contains(&item));
        let time = found.next().map_or(0.0, |(parameter, value)| value / parameter.items.len() as f64);
        Span((time * 1000.0).round() as u64)
    }

    /// The logarithms of the costs.
    pub(crate) fn logarithms(&self) -> Vec<f64> {
        self.values.iter().map(|value| value.ln()).collect()
    }

    /// How far each cost is from the usual one, in the weight of a run.
    pub(crate) fn unusual(&self) -> impl Iterator<Item = f64> {
        let usual = self.kind.usual().values;
        self.values.iter().zip(usual).map(|(value, usual)| WEIGHT_OF_USUAL * (value / usual).ln())
    }

    /// The machine with these costs.
    pub(crate) fn plan(&self) -> CpuPlan {
        let message = |of: &str| MessageCost {
            call: self.of(&format!("{of}.call")),
            message: self.of(&format!("{of}.message")),
            byte: Span::ZERO,
        };
        let payload = |of: &str| PayloadCost {
            block: self.of(&format!("{of}.block")),
            fragment: self.of(&format!("{of}.fragment")),
            byte: self.of(&format!("{of}.byte")),
        };
        CpuPlan {
            computers: Computers::One,
            cores: self.kind.machine.cores,
            messages: LocalMessages::Memory,
            processes: self.kind.processes,
            poll: self.of("poll"),
            poll_peer: self.of("poll_peer"),
            send: message("send"),
            receive: message("receive"),
            crossing: CrossingCost {
                delay: self.of("crossing.delay"),
                message: self.of("crossing.message"),
                byte: self.of("crossing.byte"),
            },
            manager: ManagerCost { block: self.of("manager.block"), event: self.of("manager.event") },
            readout: payload("readout"),
            draw: self.of("readout.draw"),
            builder: payload("builder"),
            storage: EventCost { event: self.of("storage.event"), byte: self.of("storage.byte") },
            disk: None,
            filter: EventCost::default(),
            cache: Some(CacheCost { size: ByteCount(self.kind.machine.cache), byte: self.of("cache.byte") }),
            wake: WakeCost { delay: self.of("wake.delay"), call: self.of("wake.call") },
            context_switch: self.of("context_switch"),
            refill: self.of("refill"),
            slice: SLICE,
            interruptions: self.kind.machine.interruptions.clone().unwrap_or_default(),
            fit: None,
        }
    }

    /// The lines of a `[network.cpu]` table, each cost with its uncertainty as a comment.
    pub(crate) fn lines(&self, uncertainties: &[Option<f64>]) -> String {
        let mut text = String::new();
        for ((parameter, value), uncertainty) in self.kind.parameters().iter().zip(&self.values).zip(uncertainties) {
            for item in parameter.items {
                let parts = parameter.items.len() as f64;
                let shared = if parameter.items.len() > 1 { ", half of what both cost together" } else { "" };
                let known = match uncertainty {
                    Some(uncertainty) => format!("+- {:.3} ns{shared}", uncertainty / parts),
                    None => "assumed: the runs hardly depend on it".to_owned(),
                };
                let _infallible = writeln!(text, "{item} = \"{:.3} ns\" # {known}", value / parts);
            }
        }
        text
    }
}

#[cfg(test)]
impl Costs {
    /// The parameter of an item, in nanoseconds.
    pub(crate) fn parameter(&self, item: &str) -> f64 {
        self.values[self.place(item)]
    }

    pub(crate) fn set(&mut self, item: &str, value: f64) {
        let place = self.place(item);
        self.values[place] = value;
    }

    fn place(&self, item: &str) -> usize {
        let found = self.kind.parameters().iter().position(|parameter| parameter.items.contains(&item));
        found.unwrap_or_else(|| panic!("no parameter of {item}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads on two cores.
    fn kind() -> Kind {
        Kind { machine: Machine { cores: 2, cache: 1 << 21, interruptions: None }, processes: false }
    }

    #[test]
    fn items_share_their_parameter() {
        let plan = kind().usual().plan();
        assert_eq!((plan.send.call, plan.receive.call), (Span(150_000), Span(150_000)));
        assert_eq!((plan.readout.byte, plan.poll), (Span(50), Span(100_000)));
        assert_eq!(plan.context_switch, Span::ZERO, "threads share no cores");
    }

    #[test]
    fn costs_have_logarithms() {
        let mut costs = kind().usual();
        costs.set("poll", 271.828);
        let again = kind().costs(&costs.logarithms());
        assert!((again.parameter("poll") - 271.828).abs() < 1e-6);
        let unusual: Vec<_> = costs.unusual().filter(|one| one.abs() > 1e-9).collect();
        assert!(matches!(unusual[..], [one] if (one - 0.05).abs() < 1e-6), "{unusual:?}");
    }
}
