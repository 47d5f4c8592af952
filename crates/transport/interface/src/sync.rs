//! The synchronisation primitives of [`doorbell`](crate::doorbell). The model-checking tests replace them by those of loom.

pub(crate) use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering, fence},
    },
    thread::{Thread, current, park_timeout},
};
