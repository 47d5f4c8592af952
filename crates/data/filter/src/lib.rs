//! The selection of events. A [`Selection`] is a chain of built-in filters, and possibly a program that decides about
//! what they let pass. Accepted events go to streams.
//!
//! | module | purpose |
//! |---|---|
//! | `selection` | the chain: which event is rejected, taken into a stream, or passed on |
//! | `rule` | the built-in filters |
//! | `wire` | the bytes between a builder and a filter program |
//! | `area` | the memory in which a filter unit reads its events |
//! | `units` | the filter units of a builder: processes, each kept by a thread |
//! | `remote` | filter units on other machines than their builder |
//! | `program` | the side of the program, for filters in shared libraries |
//! | `code` | the code of a user: a program or a shared library |
//! | `library` | a filter in a shared library |
//!
//! The bytes of the wire are described in `docs/reference/filter-wire.md`.

mod area;
mod code;
mod content;
mod library;
mod program;
mod remote;
mod rule;
mod selection;
mod units;
mod wire;

pub use code::{Code, CodeError, serve_library};
pub use content::Content;
pub use remote::{JoinError, JoinFilters, join_builders};
pub use rule::{Rule, Width};
pub use selection::{ChainStep, NotSimulated, Passage, Route, Selection, StreamId, UnitsPlan, streams};
pub use units::{Answer, Given, Memory, Question, Reason, RemoteListener, Units, UnitsReport, Verdict, Waker};
pub use wire::{Hello, Incoming, Received, WireError};
