//! A node that only answers: data with data, and a request with the requested data.

use crate::{
    TrafficCommand, TrafficMessage,
    role::{Outbox, TrafficRole},
};
use evb_core::{NodeId, Time};

/// The receiver of a ping-pong, or a sender of a pull-farm. Its peer has few requests open, so the queue needs no
/// limit.
pub(crate) struct Answering;

impl TrafficRole for Answering {
    fn handle_command(&mut self, _now: Time, _command: TrafficCommand, _out: &mut Outbox) {}

    fn handle_message(&mut self, _now: Time, from: NodeId, message: TrafficMessage, out: &mut Outbox) {
        match message {
            TrafficMessage::Ask { event: number, born } | TrafficMessage::Data { number, born } => {
                out.send(from.into(), TrafficMessage::Data { number, born });
            }
            TrafficMessage::Start | TrafficMessage::Next => {}
        }
    }
}
