//! Without the library there is an error with a hint. The library is opened once per process, so the program starts
//! itself again with another name for it.

mod support;

use evb_core::NodeId;
use evb_transport_ofi::{Ofi, OfiError, OfiLayer, providers};
use std::{env, process::Command};
use support::options;

const FILE: &str = "/nowhere/libfabric.so.1";

#[test]
fn a_missing_library_is_an_error_everywhere() {
    let program = env::current_exe().expect("this program has a path");
    let mut command = Command::new(program);
    command.args(["--exact", "without_a_library", "--nocapture"]).env("EVB_LIBFABRIC", FILE);
    let output = command.output().expect("this program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The process that the other test starts; without it there is nothing to do.
#[test]
fn without_a_library() {
    if env::var("EVB_LIBFABRIC").is_ok_and(|path| path == FILE) {
        let errors = [
            Ofi::open(NodeId(0), options("tcp")).map(drop),
            OfiLayer::open(NodeId(0), options("shm")).map(drop),
            providers().map(drop),
        ];
        for error in errors {
            let error = error.expect_err("there is no library");
            assert!(matches!(error, OfiError::Library { .. }) && error.to_string().contains(FILE), "{error}");
        }
    }
}
