//! The base of every part of evb: ids, quantities with their units, time, seeded random streams and the [`Machine`]
//! trait.
//!
//! The crate is `no_std`: it has no clock, socket, thread or file.
#![no_std]

extern crate alloc;

pub mod bits;
mod checksum;
mod counter;
mod draw;
mod id;
mod long_yields;
mod machine;
mod numbering;
mod put;
mod quantity;
mod status;
mod stream;
mod time;
mod unit;

pub use checksum::checksum;
pub use counter::{EventCounter, FirstCounter};
pub use draw::{below, distinct, some_of};
pub use id::{Counter, EventId, Mark, MarkComparison, NodeId, NodeRange, SourceId};
pub use long_yields::LongYields;
pub use machine::{Machine, Transmit};
pub use numbering::{Apart, MAX_GAP, Numbered, Numbering, NumberingEvent, Recording, Sighting};
pub use put::put;
pub use quantity::{Bandwidth, ByteCount, Frequency};
pub use status::FragmentStatus;
pub use stream::{Stream, stream};
pub use time::{Span, Time};
pub use unit::QuantityError;
