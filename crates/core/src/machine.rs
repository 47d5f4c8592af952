//! The contract between a protocol node without I/O and whatever drives it.

use crate::{NodeId, NodeRange, Time};

/// A message on its way out of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit<M> {
    /// One node, or a run of nodes that all get the message.
    pub to: NodeRange,
    /// The message.
    pub message: M,
}

/// A protocol node without I/O: no clock, no socket, no thread, no payload bytes.
///
/// The contract: *mutate, then drain until nothing comes.* A driver calls any of the `handle_` functions with the
/// current time, then [`poll_transmit`](Machine::poll_transmit) and [`poll_event`](Machine::poll_event) until both
/// return `None`, then asks [`poll_timeout`](Machine::poll_timeout) when to come back. Several calls of `handle_` at
/// one moment may share one drain; the machine then merges what it has to say into fewer messages.
///
/// A machine that cannot be drained at once (a transport is full) must still be fed: what it holds meanwhile is
/// bounded by the credits of its protocol.
pub trait Machine {
    /// What machines say to each other.
    type Message;
    /// What the driver tells the machine.
    type Command;
    /// What the machine tells the driver.
    type Event;
    /// Why a timer is running.
    type Timer;

    /// A message from `from` has arrived.
    fn handle_message(&mut self, now: Time, from: NodeId, message: Self::Message);

    /// The deadline that [`poll_timeout`](Machine::poll_timeout) gave has come. Calling early is harmless.
    fn handle_timeout(&mut self, now: Time);

    /// The driver has something to say.
    fn handle_command(&mut self, now: Time, command: Self::Command);

    /// The next message to send, if any.
    fn poll_transmit(&mut self) -> Option<Transmit<Self::Message>>;

    /// The next thing the driver should know, if any.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// When [`handle_timeout`](Machine::handle_timeout) wants to be called next, and why.
    fn poll_timeout(&self) -> Option<(Time, Self::Timer)>;
}
