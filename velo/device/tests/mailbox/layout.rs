//! The places of the library, in a ring that four messages fill.

#[expect(unreachable_pub, reason = "it is public in the library")]
#[allow(dead_code, reason = "the library uses the rest")]
#[path = "../../src/layout.rs"]
mod places;

pub(crate) use places::*;

pub(crate) const SLOTS: usize = 4;
