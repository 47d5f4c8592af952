//! The costs that are fitted, and the machine that they make.

use crate::least_squares::Equation;
use evb_core::{ByteCount, Span};
use evb_experiment::{
    CacheCost, Computers, CpuPlan, CrossingCost, LocalMessages, ManagerCost, MessageCost, PayloadCost, WakeCost,
};
use evb_record::WorkRecord;
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
const PARAMETERS: [Parameter; 13] = [
    parameter(&["poll"], 100.0, None),
    parameter(&["send.call", "receive.call"], 300.0, None),
    parameter(&["send.message", "receive.message"], 100.0, None),
    parameter(&["manager.block"], 120.0, None),
    parameter(&["manager.event"], 30.0, None),
    parameter(&["readout.block", "builder.block"], 280.0, None),
    parameter(&["readout.fragment", "builder.fragment"], 40.0, None),
    parameter(&["readout.byte", "builder.byte"], 0.1, None),
    parameter(&["readout.draw"], 100.0, None),
    parameter(&["crossing.message"], 300.0, Some(false)),
    parameter(&["crossing.byte"], 0.06, Some(false)),
    parameter(&["cache.byte"], 0.02, None),
    parameter(&["wake.call"], 1500.0, Some(true)),
];

/// The weight of a usual value beside that of a run: a cost of twice the usual weighs as much as a run that is simulated
/// wrongly by 5 %.
const WEIGHT_OF_USUAL: f64 = 0.05;

/// Time from a message to the first turn of a worker that slept. It decides about latencies at low rates, which no run of the
/// fit has.
const WAKE_DELAY: Span = Span::from_micros(5);
/// Time until another core can see a message, where it is not fitted, and at first.
const USUAL_CROSSING_DELAY: Span = Span(100_000);
/// Time from one process to the next on a core, at first.
const USUAL_SWITCH: Span = Span(1_500_000);
/// Time for which a worker may use a core while others wait: the base slice of Linux's EEVDF scheduler on two cores.
const SLICE: Span = Span::from_millis(3);

/// The kind of machine that is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) cores: u16,
    pub(crate) processes: bool,
    /// Bytes of the cache of a core.
    pub(crate) cache: ByteCount,
}

/// Values of the parameters of a kind of machine, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Costs {
    pub(crate) kind: Kind,
    pub(crate) values: Vec<f64>,
    /// The delay that is fitted: of messages between threads, or from one process to the next on a core.
    pub(crate) delay: Span,
}

impl Kind {
    pub(crate) fn parameters(self) -> Vec<&'static Parameter> {
        PARAMETERS.iter().filter(|one| one.of_processes.is_none_or(|processes| processes == self.processes)).collect()
    }

    /// The usual costs.
    pub(crate) fn usual(self) -> Costs {
        let delay = if self.processes { USUAL_SWITCH } else { USUAL_CROSSING_DELAY };
        Costs { kind: self, values: self.parameters().iter().map(|parameter| parameter.usual_ns).collect(), delay }
    }

    /// Equations by which each cost has its usual value.
    pub(crate) fn usual_equations(self) -> Vec<Equation> {
        let parameters = self.parameters();
        let equation = |at: usize| {
            let mut factors = vec![0.0; parameters.len()];
            factors[at] = WEIGHT_OF_USUAL / parameters[at].usual_ns;
            Equation { factors, sum: WEIGHT_OF_USUAL }
        };
        (0..parameters.len()).map(equation).collect()
    }

    /// The number of pieces that each parameter is the cost of, in this work.
    pub(crate) fn pieces(self, work: &[WorkRecord]) -> Vec<f64> {
        let count = |item: &str| work.iter().find(|one| one.item == item).map_or(0.0, |one| one.count as f64);
        let of = |one: &&Parameter| one.items.iter().map(|item| count(item)).sum::<f64>() / one.items.len() as f64;
        self.parameters().iter().map(of).collect()
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

    fn crossing_delay(&self) -> Span {
        if self.kind.processes { USUAL_CROSSING_DELAY } else { self.delay }
    }

    fn context_switch(&self) -> Span {
        if self.kind.processes { self.delay } else { Span::ZERO }
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
            cores: self.kind.cores,
            messages: LocalMessages::Memory,
            processes: self.kind.processes,
            poll: self.of("poll"),
            send: message("send"),
            receive: message("receive"),
            crossing: CrossingCost {
                delay: self.crossing_delay(),
                message: self.of("crossing.message"),
                byte: self.of("crossing.byte"),
            },
            manager: ManagerCost { block: self.of("manager.block"), event: self.of("manager.event") },
            readout: payload("readout"),
            draw: self.of("readout.draw"),
            builder: payload("builder"),
            cache: Some(CacheCost { size: self.kind.cache, byte: self.of("cache.byte") }),
            wake: WakeCost { delay: WAKE_DELAY, call: self.of("wake.call") },
            context_switch: self.context_switch(),
            slice: SLICE,
            fit: None,
        }
    }

    /// The lines of a `[network.cpu]` table, each cost with its uncertainty as a comment.
    pub(crate) fn lines(&self, uncertainties: &[f64]) -> String {
        let mut text = String::new();
        for ((parameter, value), uncertainty) in self.kind.parameters().iter().zip(&self.values).zip(uncertainties) {
            for item in parameter.items {
                let parts = parameter.items.len() as f64;
                let shared = if parameter.items.len() > 1 { ", half of what both cost together" } else { "" };
                let _infallible = writeln!(
                    text,
                    "{item} = {:?} # +- {:.3} ns{shared}",
                    format!("{:.3} ns", value / parts),
                    uncertainty / parts
                );
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::least_squares::solve;

    const KIND: Kind = Kind { cores: 2, processes: false, cache: ByteCount(1 << 21) };

    #[test]
    fn items_share_their_parameter() {
        let plan = KIND.usual().plan();
        assert_eq!((plan.send.call, plan.receive.call), (Span(150_000), Span(150_000)));
        assert_eq!((plan.readout.byte, plan.poll), (Span(50), Span(100_000)));
        assert_eq!(plan.context_switch, Span::ZERO, "threads share no cores");
    }

    #[test]
    fn work_is_counted_in_pieces_of_each_parameter() {
        let work = |item: &str, count| WorkRecord { item: item.into(), count, spent_seconds: 0.0 };
        let pieces = KIND.pieces(&[work("poll", 7), work("send.message", 10), work("receive.message", 8)]);
        assert_eq!(pieces[..3], [7.0, 0.0, 9.0]);
    }

    #[test]
    fn usual_costs_solve_their_own_equations() {
        let found = solve(&KIND.usual_equations(), KIND.parameters().len());
        assert!(found.iter().zip(&KIND.usual().values).all(|(one, other)| (one / other - 1.0).abs() < 1e-6));
    }
}
