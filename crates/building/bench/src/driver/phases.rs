//! Begin and end of a measurement, which all nodes agree on.

use super::{Mark, Node, Phase};
use crate::{error::BenchError, offers::Offers, wire::Content};
use evb_core::{Machine, Span, Time};
use evb_experiment::Load;
use evb_patterns::TrafficCommand;
use evb_record::steady::Series;
use evb_transport::MessageLayer;
use std::sync::atomic::Ordering;

impl<L: MessageLayer + ?Sized> Node<'_, L> {
    /// Sets the time at which the node gives up: some time after the end of the measurement, or without progress for as
    /// long if its end depends on the number of messages.
    pub(super) fn be_patient(&mut self) {
        let plan = &self.work.plan;
        let expected = plan.run.warmup.unwrap_or(Span::ZERO) + plan.trigger.duration.unwrap_or(Span::ZERO);
        let next = self.offers.as_ref().and_then(Offers::due).unwrap_or(Time::ZERO);
        let pause = self.clock.patience().all + expected + self.work.compute();
        self.deadline = self.clock.now().max(next) + pause;
        self.moved = self.moved();
    }

    /// A number that changes when the node sends or receives data.
    pub(super) const fn moved(&self) -> u64 {
        self.peers.received + self.peers.sent
    }

    pub(super) fn begin_or_end(&mut self) -> Result<(), BenchError> {
        match self.phase {
            Phase::Gathering if self.peers.all_ready() => self.begin(),
            Phase::Running if self.is_over() => self.stop(),
            Phase::Running if self.work.traffic.messages.is_none() => {}
            Phase::Running | Phase::Stopping => self.tell_if_done()?,
            Phase::Gathering | Phase::Ending => {}
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let since = |from: Mark| self.now.since(from.at);
        let is_late = |duration| self.from.is_some_and(|from| since(from) >= duration);
        self.work.plan.trigger.duration.is_some_and(is_late) || self.stop.load(Ordering::Relaxed)
    }

    /// The time is over: what was begun is still done.
    fn stop(&mut self) {
        self.set_now();
        // All that was due before the end counts, however far the node is behind.
        self.offer();
        self.refuse_due();
        self.phase = Phase::Stopping;
        self.to = Some(self.mark());
        self.series.stop(Time(self.now.since(self.start).0), &self.counts());
        self.machine.handle_command(self.now, TrafficCommand::Stop);
    }

    /// Tells the others when this node is done; ends when all nodes are.
    fn tell_if_done(&mut self) -> Result<(), BenchError> {
        let local = self.layer.local();
        if !self.peers.is_done(local) && self.is_done() {
            self.peers.note_done(local);
            self.send_to_others(|_| Content::Done)?;
        }
        if self.peers.all_done() { self.end() } else { Ok(()) }
    }

    /// True if nothing more begins here and what has begun is over, or takes very long after the time is over.
    fn is_done(&self) -> bool {
        let waited = |to: Mark| self.now.since(to.at) >= self.clock.patience().drain;
        let is_late = self.phase == Phase::Stopping && self.to.is_some_and(waited);
        self.sending.is_none() && self.machine.is_done() || is_late
    }

    fn begin(&mut self) {
        self.phase = Phase::Running;
        self.set_now();
        self.start = self.now;
        self.offers = Offers::of(self.work, self.layer.local(), self.peers.last_ready);
        self.series = Series::new(Time::ZERO, &self.counts());
        let (saturating, messages) = (self.work.traffic.load == Load::Saturating, self.work.traffic.messages);
        self.machine.handle_command(self.now, TrafficCommand::Start { saturating, messages });
        self.be_patient();
    }

    fn end(&mut self) -> Result<(), BenchError> {
        self.set_now();
        self.to = Some(self.to.unwrap_or_else(|| self.mark()));
        self.phase = Phase::Ending;
        self.sending = None;
        self.send_to_others(|sent| Content::End { sent })
    }

    /// Returns true if all messages from others have arrived. Broadcasts may arrive after the report of their end; a
    /// message that is still missing a while later is lost.
    pub(super) fn is_complete(&mut self) -> bool {
        let since = *self.all_ended.get_or_insert_with(|| self.clock.now());
        self.peers.lost() == 0 || self.clock.now().since(since) >= self.clock.patience().stragglers
    }
}
