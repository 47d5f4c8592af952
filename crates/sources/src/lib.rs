//! Where fragments come from: size models, recorded detector data, and the framing of live front ends.
//!
//! Both drivers use this crate: the simulator needs sizes only ([`SizeModel`]), the real event builder also the bytes
//! ([`Source`] for what can be asked for, [`LiveSource`] for what comes by itself).

mod csv;
mod draw;
mod error;
mod fed;
mod feed;
mod framing;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod live;
mod path;
pub mod payload;
mod size;
mod source;
mod spec;

pub use error::SourceError;
use evb_core::checksum;
pub use fed::{FedEntry, FedError, FedFault, FedFile, FedFileError, FedHeader, check_fragment, walk, write_fragment};
pub use feed::{FeedError, FeedOptions, FeedProgress, FeedProtocol, feed};
pub use framing::{Frame, FrameError, FrameParser, HEADER_SIZE, decode_datagram, encode};
pub use live::{LiveItem, LiveSource, Refused, RejectKind};
pub use size::{MIN_DRAWN_SIZE, SizeModel};
pub use source::{OpenOptions, ReadOutcome, Room, Source};
pub use spec::{Feed, SourceSpec};
