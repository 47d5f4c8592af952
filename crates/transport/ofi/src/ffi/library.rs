//! The library: opened once per process, at run time, so that programs need it only when they use it.
//!
//! # Invariant
//! The functions have the types that `rdma/fabric.h` and `rdma/fi_errno.h` give them. The library is never closed,
//! because threads and handlers of its providers need its code.

#![allow(unsafe_code, reason = "opens the library and calls it")]

use crate::OfiError;
use evb_libfabric_abi::{Fabric, FabricAttr, Info};
use std::{
    env,
    error::Error,
    ffi::{CStr, c_char, c_int, c_void},
    sync::OnceLock,
};

/// The environment variable that names the library's file.
pub(crate) const PATH_VARIABLE: &str = "EVB_LIBFABRIC";
/// The file name of all library versions with this binary interface.
const FILE: &str = "libfabric.so.1";

/// Variables of `ofi_rxm`, which joins a stream such as TCP to messages: the length up to which it sends a message without
/// asking the receiver, and the number of its own receive buffers. It sends each message by itself, so a call of the system
/// should carry many of ours. The buffers take 24 MiB instead of 64.
const RXM: [(&str, &str); 2] = [("FI_OFI_RXM_BUFFER_SIZE", "49152"), ("FI_OFI_RXM_MSG_RX_SIZE", "512")];

pub(crate) struct Library {
    pub(crate) version: unsafe extern "C" fn() -> u32,
    pub(crate) getinfo:
        unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const Info, *mut *mut Info) -> c_int,
    pub(crate) freeinfo: unsafe extern "C" fn(*mut Info),
    pub(crate) dupinfo: unsafe extern "C" fn(*const Info) -> *mut Info,
    pub(crate) fabric: unsafe extern "C" fn(*mut FabricAttr, *mut *mut Fabric, *mut c_void) -> c_int,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
}

/// The library, opened by the first call. Later calls return the same result.
pub(crate) fn library() -> Result<&'static Library, OfiError> {
    static LIBRARY: OnceLock<Result<Library, OfiError>> = OnceLock::new();
    let path = || env::var(PATH_VARIABLE).ok().filter(|path| !path.is_empty()).unwrap_or_else(|| FILE.into());
    let first_open = || {
        prefer_large_messages();
        open(&path())
    };
    LIBRARY.get_or_init(first_open).as_ref().map_err(Clone::clone)
}

/// Sets the variables of `ofi_rxm` that the user has not set, before the library reads them.
fn prefer_large_messages() {
    for (name, value) in RXM {
        if env::var_os(name).is_none() {
            // SAFETY: this happens once, when the first endpoint of the process is opened. The standard library's own
            // readers hold its lock. Of C code, that of libfabric and MPI reads the environment when it is started, and the
            // resolver when a host name is looked up; this crate's user does neither in another thread meanwhile.
            unsafe { env::set_var(name, value) };
        }
    }
}

pub(super) fn open(path: &str) -> Result<Library, OfiError> {
    let failed = |error: libloading::Error| {
        let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        OfiError::Library { path: path.to_owned(), reason }
    };
    // SAFETY: this runs the initialisers of the library that the system or the user has named; libfabric's have no
    // demands on the caller.
    let library = unsafe { libloading::Library::new(path) }.map_err(failed)?;
    // SAFETY: the names and types are those of the headers.
    let functions = unsafe { load(&library) }.map_err(failed)?;
    std::mem::forget(library);
    Ok(functions)
}

/// # Safety
/// `library` must be libfabric and stay open as long as the result is used.
unsafe fn load(library: &libloading::Library) -> Result<Library, libloading::Error> {
    // SAFETY: each symbol has the type of the field that it is put into, by the headers.
    unsafe {
        Ok(Library {
            version: *library.get(c"fi_version")?,
            getinfo: *library.get(c"fi_getinfo")?,
            freeinfo: *library.get(c"fi_freeinfo")?,
            dupinfo: *library.get(c"fi_dupinfo")?,
            fabric: *library.get(c"fi_fabric")?,
            strerror: *library.get(c"fi_strerror")?,
        })
    }
}

impl Library {
    /// The meaning of an error number.
    pub(crate) fn describe(&self, error: i32) -> String {
        // SAFETY: any number may be asked for, and the text is static.
        let text = unsafe { CStr::from_ptr((self.strerror)(error.abs())) };
        text.to_string_lossy().to_lowercase()
    }

    /// Turns the result of a call into an error that names the call.
    pub(crate) fn check(&self, call: &'static str, result: i32) -> Result<(), OfiError> {
        if result >= 0 { Ok(()) } else { Err(OfiError::Call { call, reason: self.describe(result) }) }
    }

    /// The library's version as text.
    pub(crate) fn version_text(&self) -> String {
        // SAFETY: the function has no demands.
        let version = unsafe { (self.version)() };
        format!("{}.{}", version >> 16, version & 0xffff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named_with_the_way_out() {
        let error = open("libno-such-fabric.so.1").map(drop).expect_err("there is no such library").to_string();
        assert!(
            error.contains("libno-such-fabric.so.1: cannot open shared object") && error.contains(PATH_VARIABLE),
            "{error}"
        );
    }

    #[test]
    fn another_library_is_not_taken_for_libfabric() {
        let error = open("libc.so.6").map(drop).expect_err("it has no fi_getinfo").to_string();
        assert!(error.contains("fi_version"), "{error}");
    }
}
