//! The event file: append-only, checksummed and documented, so that stored events can be read for decades.
//!
//! A [`Writer`] belongs to one builder and starts a new file when one is full. A [`Reader`] recovers every whole event
//! of a file, whether it was closed cleanly, cut off by a crash or damaged in the middle. [`verify`], [`show`],
//! [`export_raw`], [`export_payloads`], [`export_csv`], [`export_json`], [`visit_events`] and [`read_columns`] use the
//! reader. The format is described in `docs/reference/event-file.md`; only
//! the module `layout` knows it.
//!
//! The crate knows no protocol and no network: it takes ids and fragments.

mod columns;
mod compressed;
mod error;
mod event;
mod export;
mod file;
#[cfg(feature = "fuzz")]
mod fuzz;
mod index;
mod input;
mod layout;
mod merge;
mod metadata;
mod reader;
mod scan;
mod show;
mod sink;
mod verify;
mod waiting;
mod writer;

pub use columns::{Columns, EventColumns, read_columns, read_columns_behind};
pub use compressed::EventFile;
pub use error::{ExportError, ReadError, WriteError};
pub use event::{ApartReason, Event, EventInfo, Found, Fragment, FragmentRef, LostRange};
pub use export::{
    ExportSummary, RAW_HEADER_BYTES, StoredEvent, export_csv, export_json, export_payloads, export_raw, visit_events,
};
#[cfg(feature = "fuzz")]
pub use fuzz::fuzz_read;
pub use layout::{
    FORMAT_VERSION, FRAGMENT_RECORD_BYTES, MAX_EVENT_BYTES, MAX_EVENTS_PER_FILE, MAX_FRAGMENTS, MAX_METADATA_BYTES,
    OLDEST_VERSION,
};
pub use metadata::Metadata;
pub use reader::{Events, Reader};
pub use show::{FileSummary, show};
pub use verify::{Finding, FindingKind, MAX_FINDINGS, Verification, verify, verify_with};
pub use waiting::BUFFER_BYTES as WRITER_BUFFER_BYTES;
pub use writer::{Place, WriteSummary, Writer, WriterOptions};

pub use evb_core::FragmentStatus as Status;
use evb_core::checksum;
