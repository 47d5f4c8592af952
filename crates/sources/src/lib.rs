//! Where fragments come from: size models, recorded detector data, and the framing of live front ends.
//!
//! Both drivers use this crate: the simulator needs sizes only, the real event builder also the bytes.

mod spec;

pub use spec::{Feed, SourceSpec};
