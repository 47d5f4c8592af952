//! A filter in a shared library, run in its own process, so that it cannot harm a builder.
//!
//! # Invariant
//! The functions of the library have the types of `filters/c/evb_filter.h`, and the structures here have its layout.
//! Everything that a call passes lives until the call returns. The library stays open as long as its functions are
//! used, and one thread alone calls them.

#![allow(unsafe_code, reason = "opens the library and calls it")]

use crate::{
    Hello,
    code::{CodeError, stream},
    wire::EventBytes,
};
use std::{
    error::Error,
    ffi::{CString, c_char, c_int, c_void},
    path::Path,
    ptr,
};

/// `evb_fragment` of the header.
#[repr(C)]
struct CFragment {
    source: u16,
    status: u8,
    reserved: u8,
    length: u32,
    bytes: *const u8,
}

/// `evb_event` of the header.
#[repr(C)]
struct CEvent {
    number: u64,
    fragments: u16,
    complete: u16,
    reserved: u32,
    fragment: *const CFragment,
}

/// `evb_run` of the header.
#[repr(C)]
struct CRun {
    number: u64,
    builder: u16,
    unit: u16,
    streams: u16,
    reserved: u16,
    stream: *const *const c_char,
}

type Open = unsafe extern "C" fn(*const CRun) -> *mut c_void;
type DecideOne = unsafe extern "C" fn(*mut c_void, *const CEvent) -> c_int;
type Close = unsafe extern "C" fn(*mut c_void);

/// A library that is open.
pub(crate) struct Library {
    _keeps_the_code: libloading::Library,
    decide: DecideOne,
    close: Close,
    filter: *mut c_void,
}

/// The code of a library, and its three functions.
pub(crate) struct Functions(libloading::Library, Open, DecideOne, Close);

/// Loads a library.
pub(crate) fn load(path: &Path) -> Result<Functions, CodeError> {
    let failed = |error: libloading::Error| {
        CodeError::load(path, error.source().map_or_else(|| error.to_string(), ToString::to_string))
    };
    // SAFETY: this runs the initialisers of the library that the user has named, in a process that has no other work.
    let library = unsafe { libloading::Library::new(path) }.map_err(failed)?;
    // SAFETY: names and types are those of the header.
    unsafe {
        let open = *library.get(c"evb_filter_open").map_err(failed)?;
        let decide = *library.get(c"evb_filter_decide").map_err(failed)?;
        let close = *library.get(c"evb_filter_close").map_err(failed)?;
        Ok(Functions(library, open, decide, close))
    }
}

impl Functions {
    /// Opens the filter; `None` if its function has returned a null pointer.
    pub(crate) fn open(self, hello: &Hello) -> Option<Library> {
        let Self(code, open, decide, close) = self;
        // A name with a zero byte ends there for a library.
        let names: Vec<_> = hello.streams.iter().map(|name| CString::new(name.as_str()).unwrap_or_default()).collect();
        let names: Vec<_> = names.iter().map(|name| name.as_ptr()).chain([ptr::null()]).collect();
        let run = CRun {
            number: hello.run,
            builder: hello.builder,
            unit: hello.unit,
            streams: hello.streams.len() as u16,
            reserved: 0,
            stream: names.as_ptr(),
        };
        // SAFETY: `run` and the names live until the call returns.
        let filter = unsafe { open(&raw const run) };
        (!filter.is_null()).then_some(Library { _keeps_the_code: code, decide, close, filter })
    }
}

impl Library {
    /// The stream of an event; `None` if it is rejected.
    pub(crate) fn decide(&mut self, event: &EventBytes<'_>) -> Option<u16> {
        let fragments: Vec<_> = event.fragments.iter().map(c_fragment).collect();
        let event = CEvent {
            number: event.number,
            fragments: fragments.len() as u16,
            complete: event.complete.into(),
            reserved: 0,
            fragment: fragments.as_ptr(),
        };
        // SAFETY: `filter` came from the library, and the event and its bytes live until the call returns.
        stream(unsafe { (self.decide)(self.filter, &raw const event) })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: `filter` came from the library, which is still loaded, and is not used again.
        unsafe { (self.close)(self.filter) }
    }
}

fn c_fragment(fragment: &crate::wire::FragmentBytes<'_>) -> CFragment {
    CFragment {
        source: fragment.source,
        status: fragment.status,
        reserved: 0,
        length: fragment.bytes.len() as u32,
        bytes: fragment.bytes.as_ptr(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, process::Command};

    /// A library that checks all fields of what it is given, compiled with the header.
    const CHECKS: &str = r#"
        #include "evb_filter.h"
        static int state;
        void *evb_filter_open(const evb_run *run) {
            int good = run->number == 7 && run->builder == 1 && run->unit == 2 && run->streams == 2;
            return good && run->stream[1][0] == 'q' && !run->stream[2] ? &state : NULL;
        }
        int evb_filter_decide(void *self, const evb_event *event) {
            const evb_fragment *last = &event->fragment[1];
            if (self != &state || event->number != 9 || !event->complete || event->fragments != 2) return -1;
            return last->source == 5 && last->status == 3 && last->length == 2 && last->bytes[1] == 'b' ? 1 : -1;
        }
        void evb_filter_close(void *self) { (void)self; }
    "#;

    #[test]
    fn the_structures_are_those_of_the_header() {
        let folder = tempfile::tempdir().unwrap();
        let (source, library) = (folder.path().join("checks.c"), folder.path().join("checks.so"));
        fs::write(&source, CHECKS).unwrap();
        let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../filters/c");
        let mut compiler = Command::new("gcc");
        compiler.args(["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", header, "-o"]);
        assert!(compiler.arg(&library).arg(&source).status().expect("gcc").success());
        let hello = Hello { run: 7, builder: 1, unit: 2, streams: vec!["physics".into(), "quarantine".into()] };
        let mut library = load(&library).unwrap().open(&hello).expect("it is open");
        let fragment = |source, bytes| crate::wire::FragmentBytes { source, status: 3, bytes };
        let event =
            |number| EventBytes { number, complete: true, fragments: vec![fragment(4, b""), fragment(5, b"ab")] };
        let decided = [9, 8].map(|number| library.decide(&event(number)));
        assert_eq!(decided, [Some(1), None]);
    }

    #[test]
    fn an_invalid_library_is_an_error_that_names_it() {
        let error = load(Path::new("/dev/null")).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.starts_with("/dev/null cannot be used as a filter: "), "{error}");
    }
}
