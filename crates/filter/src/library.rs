//! A filter in a shared library, run in a process of its own, so that it can harm no builder.
//!
//! # Invariant
//! The functions of the library have the types of `filters/c/evb_filter.h`, and the structures here have its layout.
//! Everything that a call passes lives until the call returns. The library stays open as long as its functions are
//! used, and one thread alone calls them.

#![allow(unsafe_code, reason = "opens the library and calls it")]

use crate::{
    Hello,
    program::{ProgramError, begin, serve},
    wire::EventBytes,
};
use std::{
    error::Error,
    ffi::{CString, c_char, c_int, c_void},
    io::{stdin, stdout},
    path::{Path, PathBuf},
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

/// The reason why a library cannot decide.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The file is no library, or lacks a function of the header.
    #[error("{} cannot be used as a filter: {reason}", path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// The reason of the system.
        reason: String,
    },
    /// `evb_filter_open` has returned a null pointer.
    #[error("{}: evb_filter_open has failed", path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// The connection to the builder is broken.
    #[error("{0}")]
    Pipe(String),
}

/// A library that is open.
struct Library {
    _keeps_the_code: libloading::Library,
    decide: DecideOne,
    close: Close,
    filter: *mut c_void,
}

/// Decides with a shared library about the events on standard input, until that ends.
///
/// # Errors
/// [`LibraryError`] if the library cannot be used, or the connection to the builder breaks.
pub fn serve_library(path: &Path) -> Result<(), LibraryError> {
    let broken = |error: ProgramError| LibraryError::Pipe(error.to_string());
    let (mut input, mut output) = (stdin().lock(), stdout().lock());
    let loaded = load(path)?;
    let Some(hello) = begin(&mut input, &mut output).map_err(broken)? else { return Ok(()) };
    let library = open(loaded, &hello).ok_or_else(|| LibraryError::Open { path: path.to_owned() })?;
    serve(&mut input, &mut output, &mut |event| library.decide(event)).map_err(broken)
}

/// The code of a library, and its three functions.
type Loaded = (libloading::Library, Open, DecideOne, Close);

fn load(path: &Path) -> Result<Loaded, LibraryError> {
    let failed = |error: libloading::Error| {
        let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        LibraryError::Load { path: path.to_owned(), reason }
    };
    // SAFETY: this runs the initialisers of the library that the user has named, in a process that has no other work.
    let library = unsafe { libloading::Library::new(path) }.map_err(failed)?;
    // SAFETY: names and types are those of the header.
    unsafe {
        let open = *library.get(c"evb_filter_open").map_err(failed)?;
        let decide = *library.get(c"evb_filter_decide").map_err(failed)?;
        let close = *library.get(c"evb_filter_close").map_err(failed)?;
        Ok((library, open, decide, close))
    }
}

fn open((code, open, decide, close): Loaded, hello: &Hello) -> Option<Library> {
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

impl Library {
    /// The stream of an event; none if it is rejected.
    fn decide(&self, event: &EventBytes<'_>) -> Option<u16> {
        let fragments: Vec<_> = event.fragments.iter().map(c_fragment).collect();
        let event = CEvent {
            number: event.number,
            fragments: fragments.len() as u16,
            complete: event.complete.into(),
            reserved: 0,
            fragment: fragments.as_ptr(),
        };
        // SAFETY: `filter` came from the library, and the event and its bytes live until the call returns.
        let stream = unsafe { (self.decide)(self.filter, &raw const event) };
        // What is no stream is left to the builder, which knows them.
        if stream < 0 { None } else { Some(u16::try_from(stream).unwrap_or(u16::MAX)) }
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

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: `filter` came from the library, and nobody uses it any more.
        unsafe { (self.close)(self.filter) }
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
        let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../filters/c");
        let mut compiler = Command::new("gcc");
        compiler.args(["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", header, "-o"]);
        assert!(compiler.arg(&library).arg(&source).status().expect("gcc").success());
        let hello = Hello { run: 7, builder: 1, unit: 2, streams: vec!["physics".into(), "quarantine".into()] };
        let library = open(load(&library).unwrap(), &hello).expect("it is open");
        let fragment = |source, bytes| crate::wire::FragmentBytes { source, status: 3, bytes };
        let event =
            |number| EventBytes { number, complete: true, fragments: vec![fragment(4, b""), fragment(5, b"ab")] };
        assert_eq!((library.decide(&event(9)), library.decide(&event(8))), (Some(1), None));
    }

    #[test]
    fn what_is_no_library_is_an_error_that_names_it() {
        let error = load(Path::new("/dev/null")).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.starts_with("/dev/null cannot be used as a filter: "), "{error}");
    }
}
