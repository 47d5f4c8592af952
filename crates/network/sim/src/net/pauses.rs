//! Pauses as senders obey them: how far they spread, hosts that pause without end, and the watchdogs of switches that end that.

use super::Net;
use crate::{
    event::NetEvent,
    packet::{LaneId, PacketId},
};
use evb_core::{Span, Time};
use evb_fabric::{FaultTarget, LinkId, Network, Watchdog, WatchdogAction};

/// The watchdogs of the outputs of all switches, as the PFC watchdog of SONiC.
pub(super) struct Watchdogs {
    settings: Option<Watchdog>,
    /// The output before each lane; empty without watchdogs.
    outputs: Vec<Watched>,
}

/// What a watchdog knows of one output: of all its priorities, or of one with pauses by priority.
#[derive(Clone, Copy)]
struct Watched {
    /// The receiver asks for a pause.
    is_asked: bool,
    /// Time since which it does, or does not.
    since: Time,
    /// The watchdog has acted, and has not restored the output.
    is_in_storm: bool,
    /// A look at it is planned.
    is_planned: bool,
}

/// What a watchdog does after a look at an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Nothing,
    LookAgain(Time),
    Storm,
    Restored,
}

impl Watchdogs {
    /// The watchdogs of a network with this many lanes.
    pub(super) fn new(network: &Network, lanes: usize) -> Self {
        let settings = network.config.flow.watchdog();
        let calm = Watched { is_asked: false, since: Time::ZERO, is_in_storm: false, is_planned: false };
        Self { settings, outputs: vec![calm; if settings.is_some() { lanes } else { 0 }] }
    }

    /// The settings, and the output before a lane.
    fn of(&mut self, lane: LaneId) -> Option<(Watchdog, &mut Watched)> {
        self.settings.zip(self.outputs.get_mut(lane.0 as usize))
    }

    /// True if the watchdog of the output before a lane drops what is for it.
    fn drops(&self, lane: LaneId) -> bool {
        let drops = |settings: Watchdog| settings.action == WatchdogAction::Drop;
        self.settings.is_some_and(drops) && self.outputs[lane.0 as usize].is_in_storm
    }
}

impl Watched {
    /// Time from the last change of the pause until the watchdog acts.
    fn patience(&self, settings: &Watchdog) -> Span {
        if self.is_in_storm { settings.restoration } else { settings.detection }
    }

    /// Looks at the output.
    fn look(&mut self, settings: &Watchdog, now: Time) -> Verdict {
        let due = self.since + self.patience(settings);
        self.is_planned = self.is_asked != self.is_in_storm && due > now;
        if self.is_asked == self.is_in_storm {
            return Verdict::Nothing;
        }
        if due > now {
            return Verdict::LookAgain(due);
        }
        self.is_in_storm = self.is_asked;
        if self.is_in_storm { Verdict::Storm } else { Verdict::Restored }
    }
}

impl Net {
    /// The sender of a link begins or ends a pause.
    pub(super) fn pause(&mut self, lane: LaneId, begin: bool) {
        let lane = self.flow.account(&self.links, lane);
        if self.watch(lane, begin) {
            self.set_paused(lane, begin);
        }
    }

    fn set_paused(&mut self, lane: LaneId, begin: bool) {
        let (link, mask) = (self.links.link_of(lane), self.paused_priorities(lane));
        let port = &mut self.links[link];
        port.paused = if begin { port.paused | mask } else { port.paused & !mask };
        self.counts[link].note_pause(self.queue.now(), port.paused != 0);
        self.links.touch(link);
        if begin {
            self.lengthen_chains(link);
        }
    }

    /// A link is paused: pauses that its switch has asked for before now last because of it, and so on.
    fn lengthen_chains(&mut self, paused: LinkId) {
        let most = self.network.switches.len() as u16 + 1;
        let mut longer = vec![paused];
        while let Some(link) = longer.pop() {
            let chain = self.counts[link].pause_chain + 1;
            let Some(switch) = self.network.link(link).from.switch().filter(|_| chain <= most) else { continue };
            for &input in &self.network.switch(switch).inputs {
                if self.links[input].paused != 0 && self.counts[input].pause_chain < chain {
                    self.counts[input].note_chain(chain);
                    longer.push(input);
                }
            }
        }
    }

    /// The priorities that a pause asked for by a lane is for, as bits.
    fn paused_priorities(&self, lane: LaneId) -> u8 {
        if self.flow.pauses_by_priority() { 1 << self.links.channel_of(lane) } else { u8::MAX }
    }

    /// Time at which the sender of a link obeys what its receiver asks for now.
    fn pause_known(&self, link: LinkId) -> Time {
        self.queue.now() + self.network.config.pause_delay(self.links.class(link).delay)
    }

    /// The receiver of a link asks its sender to pause, or not to any more.
    pub(super) fn ask_to_pause(&mut self, lane: LaneId, begin: bool) {
        let link = self.links.link_of(lane);
        if begin {
            let chain = self.paused_behind(link) + 1;
            self.counts[link].pauses += 1;
            self.counts[link].note_chain(chain);
        }
        let event = if begin { NetEvent::Pause { lane } } else { NetEvent::Unpause { lane } };
        self.plan(self.pause_known(link), event);
    }

    /// The longest chain of pauses that the receiver of a link obeys.
    fn paused_behind(&self, link: LinkId) -> u16 {
        let Some(switch) = self.network.link(link).to.switch() else { return 0 };
        let outputs = self.network.switch(switch).outputs.iter();
        let paused = outputs.filter(|&&output| self.links[output].paused != 0);
        let longest = paused.map(|&output| self.counts[output].pause_chain).max();
        longest.unwrap_or(0).min(self.network.switches.len() as u16)
    }

    /// Hosts begin or end to pause the links to them.
    pub(super) fn pause_by_hosts(&mut self, target: FaultTarget, begin: bool) {
        let links = match target {
            FaultTarget::Link(link) => vec![link],
            FaultTarget::Cable(links) => links.to_vec(),
            FaultTarget::Switch(_) | FaultTarget::Plane(_) => Vec::new(),
        };
        let channels = if self.flow.pauses_by_priority() { self.links.channels() } else { 1 };
        for link in links {
            if !self.links[link].is_at_endpoint() {
                continue;
            }
            (0..channels).for_each(|channel| self.ask_to_pause(self.links.lane(link, channel), begin));
        }
    }

    /// Tells the watchdog of a link from a switch that its receiver begins or ends a pause. Returns false if the sender takes no
    /// notice.
    fn watch(&mut self, lane: LaneId, begin: bool) -> bool {
        let (now, link) = (self.queue.now(), self.links.link_of(lane));
        let is_of_switch = self.network.link(link).from.switch().is_some();
        let Some((settings, output)) = self.watchdogs.of(lane).filter(|_| is_of_switch) else { return true };
        (output.is_asked, output.since) = (begin, now);
        let is_ignored = begin && output.is_in_storm && settings.action == WatchdogAction::Forward;
        if !std::mem::replace(&mut output.is_planned, true) {
            let at = now + output.patience(&settings);
            self.plan(at, NetEvent::Watch { lane });
        }
        !is_ignored
    }

    /// A watchdog looks at the output before a lane.
    pub(super) fn look_for_storm(&mut self, lane: LaneId) {
        let now = self.queue.now();
        let Some((settings, output)) = self.watchdogs.of(lane) else { return };
        match output.look(&settings, now) {
            Verdict::Nothing | Verdict::Restored => {}
            Verdict::LookAgain(at) => self.plan(at, NetEvent::Watch { lane }),
            Verdict::Storm => {
                let link = self.links.link_of(lane);
                self.counts[link].storms += 1;
                match settings.action {
                    WatchdogAction::Drop => self.drop_waiting(link, self.paused_priorities(lane)),
                    WatchdogAction::Forward => self.set_paused(lane, false),
                }
            }
        }
    }

    /// Drops the packets of some priorities that wait for a link.
    fn drop_waiting(&mut self, link: LinkId, priorities: u8) {
        let is_dropped = |priority: u8| priorities & (1 << priority.min(7)) != 0;
        while let Some(place) = self.links[link].waiting.iter().position(|one| is_dropped(one.priority)) {
            let id = self.take_waiting(link, place);
            let wire = u64::from(self.packets[id].wire);
            let counts = &mut self.counts[link];
            counts.queued = counts.queued.saturating_sub(wire);
            counts.watchdog_dropped += 1;
            self.lose(id);
        }
    }

    /// True if the watchdog of a link drops packets of this priority.
    #[inline]
    pub(super) fn is_dropped_by_watchdog(&self, link: LinkId, priority: u8) -> bool {
        if self.watchdogs.outputs.is_empty() {
            return false;
        }
        let lane = self.links.lane(link, self.links.existing(priority));
        self.watchdogs.drops(self.flow.account(&self.links, lane))
    }

    /// True if a packet came into a switch over a cable whose other direction has a watchdog that drops its priority.
    pub(super) fn comes_from_storm(&self, link: LinkId, id: PacketId) -> bool {
        let back = self.network.link(link).reverse;
        back.is_some_and(|back| self.is_dropped_by_watchdog(back, self.packets[id].priority))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Watchdog = Watchdog { detection: Span(100), restoration: Span(50), action: WatchdogAction::Drop };

    #[test]
    fn a_watchdog_acts_after_a_pause_without_end_and_restores_after_a_silence() {
        let mut output = Watched { is_asked: true, since: Time(10), is_in_storm: false, is_planned: true };
        assert_eq!(output.look(&SETTINGS, Time(60)), Verdict::LookAgain(Time(110)));
        assert_eq!(output.look(&SETTINGS, Time(110)), Verdict::Storm);
        assert!(output.is_in_storm && !output.is_planned);
        (output.is_asked, output.since) = (false, Time(200));
        assert_eq!(output.look(&SETTINGS, Time(240)), Verdict::LookAgain(Time(250)));
        (output.is_asked, output.since) = (true, Time(245));
        assert_eq!(output.look(&SETTINGS, Time(250)), Verdict::Nothing);
        (output.is_asked, output.since) = (false, Time(300));
        assert_eq!(output.look(&SETTINGS, Time(350)), Verdict::Restored);
        assert!(!output.is_in_storm && !output.is_planned);
    }
}
