//! Sources of fragments: size models, recorded detector data, and the framing of live front ends.
//!
//! Both drivers use this crate. The simulator needs only sizes ([`SizeModel`]). The real event builder also needs the
//! bytes: from a [`Source`] on demand, or from a [`LiveSource`] as they arrive.
//!
//! # Example
//! A generated source: open it, and read the fragment of an event.
//!
//! ```
//! use evb_core::{ByteCount, EventId};
//! use evb_sources::{OpenOptions, ReadOutcome, Source, SourceSpec};
//!
//! let spec = SourceSpec::Fixed { size: ByteCount(2048) };
//! let options = OpenOptions { data_directory: ".".into(), unit: 0, seed: 1, max_fragment: 1 << 20 };
//! let mut source = Source::open(&spec, &options)?;
//!
//! let mut buffer = bytes::BytesMut::new();
//! assert_eq!(source.read(EventId(1), &mut buffer)?, ReadOutcome::Good);
//! assert_eq!(buffer.len(), 2048);
//! # Ok::<(), evb_sources::SourceError>(())
//! ```

mod board;
mod capture;
mod control_spec;
mod csv;
mod draw;
mod error;
mod eudaq;
mod fed;
mod feed;
mod framing;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod hits;
mod inspection;
mod live;
mod path;
pub mod payload;
mod size;
mod slicer;
mod slicing;
mod source;
mod spec;
mod stream_buffer;

pub use board::{
    BoardFrame, ByteOrder, ChecksumKind, ClockField, CutHit, Encoding, Field, FrameChecksum, FrameEnd, FrameScanner,
    Framing, HitClock, HitCutter, HitLayout, MOST_CHIP_BITS, Marker, Tick, TimeField,
};
pub use capture::{Capture, Flow};
pub use control_spec::{ControlLink, ControlSpec, Setting};
pub use error::SourceError;
pub use eudaq::{EudaqContents, EudaqError, EudaqEvent, EudaqFault, EudaqProducer, EudaqReader, EudaqSummary};
use evb_core::checksum;
pub use fed::{
    FedEntry, FedError, FedFault, FedFile, FedFileError, FedHeader, FilePadding, check_fragment, walk, write_fragment,
};
pub use feed::{FeedError, FeedOptions, FeedProgress, FeedProtocol, feed};
pub use framing::{Frame, FrameError, FrameParser, HEADER_SIZE, decode_datagram, encode};
pub use hits::{HIT_TIME_BYTES, HitsError};
pub use inspection::{InspectedFrame, Inspection, InspectionInput, InspectionLimits, InspectionReport};
pub use live::{
    Connections, DatagramBuffer, INLET_BITS, LiveItem, LiveSource, Refused, RejectKind, SharedLinks, note_shared_links,
};
pub use path::resolve as data_path;
pub use size::{MIN_DRAWN_SIZE, SizeModel};
pub use slicer::{HitFault, LiveSlicing, SlicedHit, Slicer, SlicerItem};
pub use slicing::Slicing;
pub use source::{OpenOptions, ReadOutcome, Room, Source};
pub use spec::{Feed, FrontEndLink, LiveSpec, SourceSpec};
