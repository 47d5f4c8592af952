//! The contract between a protocol node without I/O and whatever drives it.

use crate::{NodeId, NodeRange, Time};

/// A message on its way out of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit<M> {
    /// The destination: one node, or a range of nodes that all get the message.
    pub to: NodeRange,
    /// The message.
    pub message: M,
}

/// A protocol node without I/O: no clock, no socket, no thread, no payload bytes.
///
/// The contract: *mutate, then drain until nothing comes.* A driver calls any of the `handle_` functions with the
/// current time. Then it calls [`poll_transmit`](Machine::poll_transmit) and [`poll_event`](Machine::poll_event) until
/// both return `None`. Then it asks [`poll_timeout`](Machine::poll_timeout) when to call
/// [`handle_timeout`](Machine::handle_timeout). Several calls of `handle_` functions at one moment may share one drain;
/// the machine then merges its output into fewer messages.
///
/// A machine that cannot be drained at once, because a transport is full, must still be fed. The credits of its
/// protocol bound what it holds meanwhile.
///
/// # Example
/// A machine that answers each question once, and a driver that drains it:
///
/// ```
/// use evb_core::{Machine, NodeId, NodeRange, Time, Transmit};
///
/// #[derive(Default)]
/// struct Echo {
///     answers: Vec<Transmit<u32>>,
/// }
///
/// impl Machine for Echo {
///     type Message = u32;
///     type Command = ();
///     type Event = ();
///     type Timer = ();
///
///     fn handle_message(&mut self, _now: Time, from: NodeId, message: u32) {
///         self.answers.push(Transmit { to: NodeRange { first: from, count: 1 }, message });
///     }
///     fn handle_timeout(&mut self, _now: Time) {}
///     fn handle_command(&mut self, _now: Time, _command: ()) {}
///     fn poll_transmit(&mut self) -> Option<Transmit<u32>> {
///         self.answers.pop()
///     }
///     fn poll_event(&mut self) -> Option<()> {
///         None
///     }
///     fn poll_timeout(&self) -> Option<(Time, ())> {
///         None
///     }
/// }
///
/// let mut echo = Echo::default();
/// echo.handle_message(Time(5), NodeId(3), 42);
/// while let Some(out) = echo.poll_transmit() {
///     assert_eq!((out.to.first, out.message), (NodeId(3), 42));
/// }
/// assert_eq!(echo.poll_timeout(), None);
/// ```
pub trait Machine {
    /// Messages between machines.
    type Message;
    /// Commands from the driver.
    type Command;
    /// Events for the driver.
    type Event;
    /// The purpose of a timer.
    type Timer;

    /// Takes a message that has arrived from `from`.
    fn handle_message(&mut self, now: Time, from: NodeId, message: Self::Message);

    /// Takes note that the deadline of [`poll_timeout`](Machine::poll_timeout) has passed. An early call is harmless.
    fn handle_timeout(&mut self, now: Time);

    /// Takes a command from the driver.
    fn handle_command(&mut self, now: Time, command: Self::Command);

    /// The next message to send, if any.
    fn poll_transmit(&mut self) -> Option<Transmit<Self::Message>>;

    /// The next event for the driver, if any.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// The time at which [`handle_timeout`](Machine::handle_timeout) must be called next, and the purpose of the timer.
    fn poll_timeout(&self) -> Option<(Time, Self::Timer)>;
}
