//! The atomics of lanes and bells. The model-checking tests replace them by those of loom.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
