//! Errors as numbers and texts.

use evb_velo_device::DeviceError;
use std::{ffi::CStr, io::ErrorKind};

macro_rules! codes {
    ($($name:ident $number:literal $text:literal,)*) => {
        /// The reason why a function failed, as the number that C gets.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        #[allow(missing_docs, reason = "the text of each says it")]
        pub enum Code { $($name = $number,)* }

        impl Code {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// What happened, and what to do.
            pub fn text(self) -> &'static CStr {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

codes! {
    Again -1 c"not now: receive what has arrived, and try again",
    Invalid -2 c"an argument is wrong: see the function in evbvelo.h",
    Name -3 c"no valid name: use 1 to 32 characters out of A-Za-z0-9._-",
    Taken -4 c"another device has this name: choose another one",
    Unknown -5 c"no device has this name or address: start its owner first, as the same user",
    Crowded -6 c"the peer knows as many senders as it can: let it open its device again",
    Gone -7 c"the peer has ended",
    TooLong -8 c"the message is longer than the buffer: it stays, receive it with a longer one",
    NotLent -9 c"no memory of the peer is lent for this: lend it first, with the right to read or write",
    NoKey -10 c"the key is in use, or 1024 pieces of memory are lent: take one back first",
    Denied -11 c"the system forbids it: both processes need the same user and the right to reach each other's memory",
    Busy -12 c"another thread uses the device: let one thread at a time call",
    System -13 c"the system has no room, such as memory or open files",
    Broken -14 c"the device is broken by an error of the library: close it",
}

impl From<DeviceError> for Code {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Full => Self::Again,
            DeviceError::Gone => Self::Gone,
            DeviceError::Name(_) => Self::Name,
            DeviceError::Unknown(_) => Self::Unknown,
            DeviceError::Crowded | DeviceError::Taken(_) => Self::Crowded,
            DeviceError::TooLong { .. } => Self::Invalid,
            DeviceError::NotLent(_) => Self::NotLent,
            DeviceError::System(error) => match error.kind() {
                ErrorKind::AddrInUse => Self::Taken,
                ErrorKind::NotFound => Self::Unknown,
                ErrorKind::PermissionDenied => Self::Denied,
                // "No such process", which has no separate kind.
                _ if error.raw_os_error() == Some(3) => Self::Gone,
                _ => Self::System,
            },
        }
    }
}
