//! The one receiver of funnel, push-farm and pull-farm.
//!
//! A cycle lasts from the end of the cycle before to the end of the computing: its time is the time between two events.

use crate::{
    TrafficCommand, TrafficEvent, TrafficMessage,
    cycles::Cycles,
    each::OneFromEach,
    role::{Outbox, TrafficRole},
};
use evb_core::{NodeId, NodeRange, Span, Time};

/// The request for the next data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    /// The receiver asks each sender before it computes.
    Each,
    /// The receiver tells all senders, in one message, when it is done with an event. The senders are ahead by their
    /// window.
    Next,
}

/// The receiver: takes one message from each sender, computes, and repeats.
pub(crate) struct Farm {
    senders: NodeRange,
    work: Span,
    request: Request,
    data: OneFromEach,
    computing: bool,
    cycles: Cycles,
}

impl Farm {
    /// A receiver that computes for `work` in each cycle.
    pub(crate) fn new(senders: NodeRange, work: Span, request: Request) -> Self {
        let data = OneFromEach::new(senders);
        Self { senders, work, request, data, computing: false, cycles: Cycles::new() }
    }

    fn ask(&mut self, now: Time, out: &mut Outbox) {
        if let Some(event) = self.cycles.begin() {
            let message = TrafficMessage::Ask { event, born: now };
            self.senders.iter().for_each(|sender| out.send(sender.into(), message));
        }
    }

    /// Takes complete sets of messages until the receiver computes.
    fn go_on(&mut self, now: Time, out: &mut Outbox) {
        while !self.computing && self.data.take() {
            if self.request == Request::Each {
                self.ask(now, out);
            }
            self.computing = self.work > Span::ZERO;
            if self.computing { out.tell(TrafficEvent::Compute { span: self.work }) } else { self.end(now, out) }
        }
    }

    fn end(&mut self, now: Time, out: &mut Outbox) {
        self.cycles.end(now, Some(&mut *out));
        if self.request == Request::Next {
            out.send(self.senders, TrafficMessage::Next);
        }
    }
}

impl TrafficRole for Farm {
    fn handle_command(&mut self, now: Time, command: TrafficCommand, out: &mut Outbox) {
        if self.cycles.handle_command(now, command) && self.request == Request::Each {
            self.ask(now, out);
        }
        if command == TrafficCommand::Computed && self.computing {
            self.computing = false;
            self.end(now, out);
            self.go_on(now, out);
        }
    }

    fn handle_message(&mut self, now: Time, from: NodeId, message: TrafficMessage, out: &mut Outbox) {
        if matches!(message, TrafficMessage::Data { .. }) {
            self.data.add(from);
            self.go_on(now, out);
        }
    }

    fn is_done(&self) -> bool {
        self.cycles.are_done()
    }
}
