//! The tests of the crate's public face, in one binary.

mod boards;
mod corpus;
mod eudaq;
mod fed;
mod feeding;
mod formats;
mod framing;
mod inspection;
mod live;
mod real_data;
mod sharing;
mod sizes;
mod slices;
mod sources;
mod streams;
mod support;
