//! What the faults of the network do: losses, new routes and the rate over time. Simulations without faults have no such log.

use evb_core::Time;
use evb_experiment::{Load, Plan, Workload};
use evb_fabric::{NetworkFault as Fault, NetworkFaultAction};
use evb_record::{EventTimes, NetworkFault, Timeline};

/// The faults that have taken effect, and the times of events or messages.
pub(crate) struct FaultLog {
    ended: EventTimes,
    offered: EventTimes,
    /// Arrivals come by themselves, and do not follow the events that end.
    has_rate: bool,
    start: Time,
    /// Time at which an event was offered or ended last.
    last: Time,
    stopped: Option<Time>,
    faults: Vec<LoggedFault>,
}

struct LoggedFault {
    at: Time,
    action: NetworkFaultAction,
    /// Messages were under way or waiting.
    is_loaded: bool,
    record: NetworkFault,
    /// Counts of the network before the fault.
    before: NetworkCounts,
}

/// Counts of the network that only grow.
#[derive(Clone, Copy)]
pub(crate) struct NetworkCounts {
    /// Packets lost or discarded.
    pub(crate) gone: u64,
    /// Packets that waited for a failed link and took another route.
    pub(crate) rerouted: u64,
}

impl FaultLog {
    /// The log of a plan with faults.
    pub(super) fn of(plan: &Plan) -> Option<Box<Self>> {
        let has_rate = match &plan.workload {
            Workload::EventBuilding => plan.trigger.rate.is_some(),
            Workload::Traffic(traffic) => !matches!(traffic.load, Load::Saturating),
        };
        (!plan.network.faults.is_empty()).then(|| {
            let none = EventTimes::new(Time::ZERO);
            let (start, last) = (Time::ZERO, Time::ZERO);
            Box::new(Self {
                ended: none.clone(),
                offered: none,
                has_rate,
                start,
                last,
                stopped: None,
                faults: Vec::new(),
            })
        })
    }

    pub(super) fn begin_to_measure(&mut self, now: Time) {
        (self.ended, self.offered) = (EventTimes::new(now), EventTimes::new(now));
        self.start = now;
    }

    pub(super) fn offer(&mut self, now: Time) {
        self.offered.add(now, 1);
        self.last = now;
    }

    pub(super) fn end(&mut self, now: Time, count: u64) {
        self.ended.add(now, count);
        if self.stopped.is_none() {
            self.last = now;
        }
    }

    /// The trigger or the senders stop: the rate after that says nothing.
    pub(crate) fn stop(&mut self, now: Time) {
        self.stopped.get_or_insert(now);
    }

    /// A fault takes effect, and cuts nodes off.
    pub(crate) fn note(
        &mut self,
        now: Time,
        fault: &Fault,
        is_loaded: bool,
        before: NetworkCounts,
        cut_off: Vec<String>,
    ) {
        let record = NetworkFault {
            target: fault.target.clone(),
            action: name(fault.action).into(),
            at_s: now.0 as f64 * 1e-12,
            cut_off,
            ..NetworkFault::default()
        };
        self.faults.push(LoggedFault { at: now, action: fault.action, is_loaded, record, before });
    }

    /// A fault ends.
    pub(crate) fn note_end(&mut self, now: Time, fault: &Fault) {
        let begun = self
            .faults
            .iter_mut()
            .rev()
            .find(|logged| logged.at.since(Time::ZERO) == fault.at && logged.record.target == fault.target);
        if let Some(logged) = begun {
            logged.record.until_s = Some(now.0 as f64 * 1e-12);
        }
    }

    /// The faults for the record of a simulation that ended at `end`. `rerouted` returns the time from which a failed element
    /// was avoided.
    pub(super) fn records(
        &self,
        end: Time,
        after: NetworkCounts,
        rerouted: impl Fn(Time, NetworkFaultAction) -> Option<Time>,
    ) -> Vec<NetworkFault> {
        let end = self.end_of_rates(end);
        let offered = self.has_rate.then_some(&self.offered);
        let effective = || self.faults.iter().filter(|fault| self.has_effect(fault));
        let nexts = effective().skip(1).map(|next| (next.at, next.before)).chain([(end, after)]);
        let records = effective().zip(nexts).map(|(LoggedFault { at, action, record, before, .. }, (until, after))| {
            NetworkFault {
                rerouted_s: rerouted(*at, *action).map(|time| time.since(Time::ZERO).as_secs_f64()),
                rerouted_packets: after.rerouted - before.rerouted,
                lost_packets: after.gone - before.gone,
                dip: self.ended.dip(*at, until.min(end), offered),
                ..record.clone()
            }
        });
        records.collect()
    }

    /// The rate over time, if a fault took effect.
    pub(super) fn timeline(&self, end: Time) -> Option<Timeline> {
        let has_effect = self.faults.iter().any(|fault| self.has_effect(fault));
        if has_effect { self.ended.timeline(self.end_of_rates(end)) } else { None }
    }

    /// False for a fault after everything was over.
    fn has_effect(&self, fault: &LoggedFault) -> bool {
        fault.is_loaded || self.last > fault.at
    }

    /// The end of the time in which the rate says something. A silence after the last fault counts for as long as the time
    /// before that fault.
    fn end_of_rates(&self, end: Time) -> Time {
        let last_fault = self.faults.last().map_or(self.start, |fault| fault.at);
        let silent = last_fault + last_fault.since(self.start);
        self.stopped.unwrap_or(end).min(self.last.max(silent))
    }
}

fn name(action: NetworkFaultAction) -> &'static str {
    match action {
        NetworkFaultAction::Fail { .. } => "fail",
        NetworkFaultAction::Slow { .. } => "slow",
        NetworkFaultAction::Corrupt { .. } => "corrupt",
        NetworkFaultAction::Pause => "pause",
    }
}
