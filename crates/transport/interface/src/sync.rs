//! The synchronisation primitives of [`doorbell`](crate::doorbell) and of shared memory. The model-checking tests
//! replace them by those of loom.

pub(crate) use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering, fence},
    },
    thread::{Thread, current, park_timeout},
};

#[cfg(target_os = "linux")]
pub(crate) use std::sync::atomic::AtomicU64;
