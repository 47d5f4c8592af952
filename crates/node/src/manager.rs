//! The event manager as a node: its machine, the trigger, and the latency of events.

use crate::control::{Ended, ManagerReport, NodeError, Notice, Order, Report, faults};
use crate::meter::Meter;
use crate::worker::Role;
use bytes::Bytes;
use evb_core::{Machine, NodeId, Stream, Time, Transmit, stream};
use evb_experiment::Plan;
use evb_protocol::{Config, Ending, EventManager, ManagerCommand, ManagerEvent, Message};
use evb_record::Latency;
use evb_steady::RATES;
use hdrhistogram::Histogram;
use rand_distr::{Distribution, Exp1, Poisson};
use std::collections::VecDeque;

/// The stream of trigger times.
const TRIGGER_STREAM: u64 = 1;
/// Triggers that are taken one by one in a round. More can only come when nobody looked for long, or faster than they could
/// be counted; orders must be heard nevertheless.
const MOST_SINGLE: u64 = 1000;
/// Longest latency that is told apart, in nanoseconds: ten minutes.
const LONGEST_LATENCY_NS: u64 = 600_000_000_000;

pub(crate) struct Manager {
    machine: EventManager<Bytes>,
    first_builder: NodeId,
    trigger: Option<RateTrigger>,
    running: bool,
    /// Events after which the trigger ends by itself.
    events: Option<u64>,
    /// What each builder has ended.
    of_builders: Vec<Ended>,
    /// Nanoseconds from trigger to stored.
    latency: Histogram<u64>,
    meter: Meter,
    notices: VecDeque<Notice>,
    deadline: Option<Time>,
}

/// Triggers at a rate, equally spaced or as a Poisson process.
struct RateTrigger {
    period: f64,
    random: Option<Stream>,
    next: Time,
}

impl RateTrigger {
    /// How many triggers have come since the last call.
    fn due(&mut self, now: Time) -> u64 {
        let mut count = 0;
        while self.next <= now {
            count += if count < MOST_SINGLE { 1 } else { self.skip(now) };
            let interval: f64 = self.random.as_mut().map_or(1.0, |random| Exp1.sample(random));
            self.next = Time(self.next.0.saturating_add((self.period * interval) as u64).max(self.next.0 + 1));
        }
        count
    }

    /// Goes on to the last trigger that has come; how many have, from the next one on. In a Poisson process their number
    /// is drawn, and what follows does not depend on what was before.
    fn skip(&mut self, now: Time) -> u64 {
        let periods = now.since(self.next).0 as f64 / self.period;
        let Some(random) = &mut self.random else {
            let passed = periods.floor();
            self.next = Time(self.next.0 + (passed * self.period) as u64);
            return passed as u64 + 1;
        };
        self.next = now;
        // Only a number of periods that is not positive makes no distribution.
        Poisson::new(periods).map_or(0, |poisson| poisson.sample(random) as u64) + 1
    }
}

impl Manager {
    pub(crate) fn new(plan: &Plan) -> Self {
        let random = plan.trigger.poisson.then(|| stream(plan.run.seed, Config::EVENT_MANAGER, TRIGGER_STREAM));
        let trigger =
            plan.trigger.rate.map(|rate| RateTrigger { period: 1e12 / rate.as_hertz(), random, next: Time::MAX });
        Self {
            machine: EventManager::new(plan.building.clone()),
            first_builder: plan.building.builder_nodes().first,
            trigger,
            running: false,
            events: plan.building.events,
            of_builders: vec![Ended::default(); plan.building.builder_units.into()],
            latency: Histogram::new_with_bounds(1, LONGEST_LATENCY_NS, 3).expect("the bounds are valid"),
            meter: Meter::default(),
            notices: VecDeque::new(),
            deadline: None,
        }
    }

    fn pass(&mut self, now: Time) {
        let Self { meter, machine, .. } = self;
        meter.pass(now, || counts(machine));
    }

    fn drain_events(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                ManagerEvent::Completed { completion, builder, latency } => {
                    // The latency is that of events that are stored.
                    if completion.ending != Ending::Rejected {
                        self.latency.saturating_record(latency.0 / 1000);
                    }
                    self.of_builders[usize::from(builder.0 - self.first_builder.0)].count(completion.ending);
                }
                ManagerEvent::Drained => {
                    self.running = false;
                    self.notices.push_back(Notice::Drained);
                }
                ManagerEvent::NoBuilders => self.notices.push_back(Notice::NoBuilders),
            }
        }
    }
}

impl Role for Manager {
    fn message(&mut self, now: Time, from: NodeId, message: Message<Bytes>) {
        self.pass(now);
        self.machine.handle_message(now, from, message);
    }

    fn lost(&mut self, now: Time, peer: NodeId) {
        self.machine.handle_command(now, ManagerCommand::Lost(peer));
    }

    fn order(&mut self, now: Time, order: Order) {
        match order {
            Order::Start => {
                self.running = true;
                self.meter.start(now, &counts(&self.machine));
                if let Some(trigger) = &mut self.trigger {
                    trigger.next = now;
                }
                self.machine.handle_command(now, ManagerCommand::Start);
            }
            Order::Pause => {
                self.running = false;
                self.machine.handle_command(now, ManagerCommand::Pause);
            }
            Order::Resume => {
                self.running = true;
                if let Some(trigger) = &mut self.trigger {
                    trigger.next = trigger.next.max(now);
                }
                self.machine.handle_command(now, ManagerCommand::Resume);
            }
            Order::Stop => {
                // A trigger that had ended by number was not stopped now.
                if self.running && self.events.is_none_or(|events| self.machine.counts().triggered < events) {
                    self.meter.stop(now, &counts(&self.machine));
                }
                self.running = false;
                self.machine.handle_command(now, ManagerCommand::Stop);
            }
            _ => {}
        }
    }

    fn work(&mut self, now: Time, _calm: bool) -> Result<bool, NodeError> {
        self.pass(now);
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.machine.handle_timeout(now);
        }
        let due = match &mut self.trigger {
            Some(trigger) if self.running => trigger.due(now),
            _ => 0,
        };
        if due > 0 {
            self.machine.handle_command(now, ManagerCommand::Trigger(due));
        }
        // A trigger that is taken shows in what is sent; one that is turned away is no reason to stay awake.
        Ok(false)
    }

    fn transmit(&mut self, _now: Time, send: &mut dyn FnMut(Transmit<Message<Bytes>>)) {
        while let Some(transmit) = self.machine.poll_transmit() {
            send(transmit);
        }
        self.drain_events();
        self.deadline = self.machine.poll_timeout().map(|(at, _)| at);
    }

    fn deadline(&self) -> Option<Time> {
        let next_trigger = self.trigger.as_ref().filter(|_| self.running).map(|trigger| trigger.next);
        self.deadline.into_iter().chain(next_trigger).min()
    }

    fn notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    fn report(&self, now: Time) -> Report {
        let counts = self.machine.counts();
        let quantile = |q| self.latency.value_at_quantile(q) as f64 / 1000.0;
        Report::Manager(ManagerReport {
            triggered: counts.triggered,
            ended: Ended { built: counts.built, incomplete: counts.incomplete, rejected: counts.rejected },
            inhibited: counts.inhibited,
            inhibitions: counts.inhibitions,
            reassigned: counts.reassigned,
            of_builders: self.of_builders.clone(),
            latency_us: Latency { p50: quantile(0.5), p99: quantile(0.99), max: self.latency.max() as f64 / 1000.0 },
            faults: faults(&counts.faults),
            series: self.meter.series(now, &self::counts(&self.machine)),
        })
    }
}

/// What came, was triggered and has ended, in the order of the series by which a window is found.
fn counts(machine: &EventManager<Bytes>) -> [u64; RATES] {
    let counts = machine.counts();
    let ended = counts.triggered - counts.open();
    [counts.triggered + counts.inhibited, counts.triggered, ended, ended]
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_core::Span;

    const PERIOD: f64 = 1000.0;

    fn trigger(random: Option<Stream>) -> RateTrigger {
        RateTrigger { period: PERIOD, random, next: Time(0) }
    }

    /// However rarely somebody looks, the same triggers have come.
    #[test]
    fn regular_triggers_are_all_counted() {
        let end = Time(Span::from_millis(10).0);
        let mut often = trigger(None);
        let looked_often: u64 = (0..=10_000).map(|part| often.due(Time(end.0 / 10_000 * part))).sum();
        let mut once = trigger(None);
        assert_eq!((looked_often, once.due(end)), (10_000_001, 10_000_001));
        assert_eq!(once.next, often.next);
    }

    /// A second of triggers at 1 GHz costs no more than a thousand draws, and their number is that of a Poisson process.
    #[test]
    fn triggers_at_random_are_skipped_by_their_number() {
        for seed in 1..=100 {
            let mut trigger = trigger(Some(stream(seed, Config::EVENT_MANAGER, TRIGGER_STREAM)));
            let end = Time(Span::from_secs(1).0);
            let count = trigger.due(end) as f64;
            assert!((count - 1e9).abs() < 6.0 * 1e9_f64.sqrt(), "{count} with seed {seed}");
            assert!(trigger.next > end, "seed {seed}");
        }
    }
}
