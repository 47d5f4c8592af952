//! Events of a simulation.

use crate::{
    connections::ConnectionId,
    message::MessageId,
    packet::{LaneId, PacketId},
};
use evb_fabric::LinkId;

/// A planned event: eight bytes, since millions of them are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// An event within the network.
    Net(NetEvent),
    /// The last byte of a packet has arrived at its destination.
    Deliver(PacketId),
    /// A network interface picks the next packet of one of its ports.
    Pick { endpoint: u16 },
    /// The memory access of a network interface has ended.
    DmaDone { host: u16 },
    /// A message is handed to the network interface.
    Post { message: MessageId },
    /// A message has been copied to a node on the same host.
    Copied { message: MessageId },
    /// A deadline of a connection.
    Connection { connection: ConnectionId },
    /// A port of a host may grant credit to a connection.
    Credit { endpoint: u16 },
    /// A message that was lost is sent again.
    SendAgain { message: MessageId },
    /// A message has arrived at its node.
    Receive { message: MessageId },
    /// A readout unit hears late of a message that permits it to send.
    Permit { message: MessageId },
    /// Control messages on a separate network have arrived at their nodes.
    Control,
    /// A mapper handles a message that has arrived at its host.
    MapperMessage { message: MessageId },
    /// The deadline of a mapper.
    MapperTimeout { endpoint: u16 },
    /// A machine's deadline.
    Timeout { node: u16 },
    /// A trigger, or the offer of a message, from a source of random or regular arrivals.
    Arrival { node: u16 },
    /// Background traffic begins.
    Begin { background: u16 },
    /// The senders of background traffic stop.
    End { background: u16 },
    /// The processor of a node's host has computed for it.
    Computed { node: u16 },
    /// A builder hands events to its writer and its filter units.
    HandOver { node: u16 },
    /// A builder has stored an event.
    Stored { node: u16 },
    /// A filter unit of a builder has decided.
    Filtered { node: u16 },
    /// A fault of the network, or the finding of new routes after it.
    Fault { index: u16 },
    /// The end of a fault of the network.
    Mend { index: u16 },
    /// A node dies.
    Kill { node: u16 },
    /// The measurement begins.
    Measure,
    /// The state of the units on computers is sampled.
    Sample,
    /// The planned time of a worker on the cores of its computer.
    Worker { worker: u16 },
    /// The trigger stops, or the traffic ends.
    Stop,
    /// Progress is checked: open events are given up if nothing has moved for long.
    GiveUp,
}

/// A planned event within the network, which [`Net::handle`](crate::net::Net::handle) handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetEvent {
    /// A packet's head is ready to request its next link.
    Request(PacketId),
    /// A link that packets wait for may be free, or the buffer behind it may have room.
    Wake { link: LinkId },
    /// A pause frame has reached the sender of the link of this lane.
    Pause { lane: LaneId },
    /// The end of a pause has reached the sender of the link of this lane.
    Unpause { lane: LaneId },
    /// The watchdog of the output before this lane looks at it.
    Watch { lane: LaneId },
    /// Bytes that came over a link have left the switch; flow control keeps their lane and number.
    Drained { drain: u32 },
    /// New routes are found.
    Reroute,
    /// The tail of a lost packet has left the link that it came over.
    End(PacketId),
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_event_is_small() {
        assert_eq!(size_of::<super::Event>(), 8);
        assert_eq!(size_of::<crate::packet::Packet>(), 64);
    }
}
