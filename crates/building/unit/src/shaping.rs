//! Traffic shaping: the order in which a readout unit sends to the builders, and how the units keep in step.
//!
//! A [`Shaper`] is between a readout unit and its driver. It has a queue for each builder and says which bytes go next;
//! the driver cuts them. The builder's side of a barrel shifter by credits is [`Turns`], the event manager's side of
//! one by barrier is [`Rounds`]; one by clock asks it for the time. An [`Assembler`] puts the pieces of a fragment
//! together again where they have bytes.
//!
//! Shaping belongs to the units and not to the machines, which have no bytes to order. So both drivers shape alike: the
//! simulator cuts packets, a node cuts pieces of fragments.

mod clock;
mod pieces;
mod rounds;
mod shaper;
mod turns;

pub use pieces::{Assembler, cut};
pub use rounds::Rounds;
pub use shaper::{ShapedPart, Shaper, Slot};
pub use turns::Turns;
