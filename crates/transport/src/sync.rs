//! The synchronisation primitives of [`doorbell`](crate::doorbell) and of shared memory. Their model-checking tests
//! put loom's in their place.

pub(crate) use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering, fence},
    },
    thread::{Thread, current, park_timeout},
};

#[cfg(target_os = "linux")]
pub(crate) use std::sync::atomic::AtomicU64;
