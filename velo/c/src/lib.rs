//! libevbvelo: VELO as a device for programs in C. `include/evbvelo.h` says what each function does.
//!
//! | module | part |
//! |---|---|
//! | `code` | errors as numbers and texts |
//! | `lane` | a device with its current message and its sends under way |
//! | `ffi` | the functions of the header |

#![cfg(target_os = "linux")]

mod code;
mod ffi;
mod lane;

pub use code::Code;
pub use ffi::VERSION;
pub use lane::{Arrival, KIND_MESSAGE, KIND_NOTICE};
