//! The synchronisation primitives of [`doorbell`](crate::doorbell). Its model-checking test puts loom's in their place.

pub(crate) use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering, fence},
    },
    thread::{Thread, current, park_timeout},
};
