//! The planner with small networks.

mod advice;
mod search;
mod support;
