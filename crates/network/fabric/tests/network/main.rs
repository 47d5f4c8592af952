//! Networks as their users see them: built from a description, with the routes through them.

mod errors;
mod planes;
mod presets;
mod routes;
mod subnet;
mod support;
mod topologies;
mod trees;
mod waiting;
