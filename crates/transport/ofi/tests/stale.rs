//! Files of a killed process with the number of this one must not be in the way. Alone in its process, since the files
//! are looked for before the first endpoint.

mod support;

use evb_core::NodeId;
use evb_transport_ofi::Ofi;
use std::{fs, os::unix::fs::MetadataExt, path::PathBuf, process};
use support::{options, there_is};

/// Number of endpoints of a former process.
const ENDPOINTS: usize = 8;

#[test]
fn stale_files_of_shared_memory_do_not_block_an_endpoint() {
    if !there_is("shm") {
        return;
    }
    let user = fs::metadata("/proc/self").unwrap().uid();
    let path = |process: u32, endpoint: usize| PathBuf::from(format!("/dev/shm/{process}:{user}:{endpoint}"));
    // A region that says to be of a process that lives.
    let files: Vec<_> = (0..ENDPOINTS).map(|endpoint| path(process::id(), endpoint)).collect();
    files.iter().for_each(|file| fs::write(file, process::id().to_le_bytes().repeat(4096)).unwrap());
    let dead = path(4_194_999, 0);
    fs::write(&dead, [0; 100]).unwrap();
    let node = Ofi::open(NodeId(0), options("shm")).unwrap_or_else(|error| panic!("{error}"));
    assert!(!dead.exists(), "what a dead process left is removed");
    drop(node);
    assert!(files.iter().all(|file| !file.exists()), "nothing is left");
}
