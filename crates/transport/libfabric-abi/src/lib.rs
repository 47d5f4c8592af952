//! The used part of libfabric's binary interface, as its headers of version 1.17 declare it. There are declarations only.
//!
//! Structures and fields carry the names of the headers, without `fi_` and `fid_`. Every structure begins as that of the
//! headers does, and a later version may append fields. [`layouts`] lists all of them, and `tests/layout.rs` compares the list
//! with the headers that are installed.
//!
//! | module | part |
//! |---|---|
//! | `layout` | declares a structure and lists its fields |
//! | `numbers` | constants |
//! | `attributes` | what is asked for and offered |
//! | `data` | messages, pieces of memory, and completions |
//! | `objects` | objects and their tables of functions |

#[macro_use]
mod layout;
mod attributes;
mod data;
mod numbers;
mod objects;

pub use attributes::*;
pub use data::*;
pub use layout::{Layout, layouts};
pub use numbers::*;
pub use objects::*;
