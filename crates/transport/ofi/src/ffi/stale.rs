//! Removal of shared-memory files left by killed processes: the provider `shm` removes them only at an orderly end.
//!
//! libfabric 1.17 names them `<process>:<user>:<endpoint>` in `/dev/shm`, of 16 MiB each. A file of a former process
//! with the number of this one would make an endpoint fail, since its owner seems to be alive. So the first endpoint of
//! a process removes all files of its user whose process does not exist, or is this one.

use std::{fs, os::unix::fs::MetadataExt, path::Path, process, sync::Once};

const FOLDER: &str = "/dev/shm";
const PROCESSES: &str = "/proc";

/// Removes stale files, once per process.
pub(super) fn remove() {
    static ONCE: Once = Once::new();
    // Without the list of processes stale files cannot be found.
    ONCE.call_once(|| {
        if let Ok(this) = fs::metadata(Path::new(PROCESSES).join("self")) {
            remove_of(this.uid());
        }
    });
}

fn remove_of(user: u32) {
    for file in fs::read_dir(FOLDER).into_iter().flatten().flatten() {
        let stale = file.file_name().to_str().is_some_and(|name| is_stale(name, user));
        let ours = file.metadata().is_ok_and(|data| data.is_file() && data.uid() == user);
        if stale && ours {
            // Somebody else may have been faster.
            let _ = fs::remove_file(file.path());
        }
    }
}

/// Returns true if this is the name of an endpoint of this user without a process.
fn is_stale(name: &str, user: u32) -> bool {
    let numbers: Option<Vec<u32>> = name.split(':').map(|part| part.parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[process, of, _]) if of == user => {
            process == process::id() || !Path::new(PROCESSES).join(process.to_string()).exists()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_endpoints_of_dead_processes_are_stale() {
        // Above the largest number that Linux gives to a process.
        assert!(is_stale("4194999:7:0", 7) && is_stale(&format!("{}:7:3", process::id()), 7));
        for other in ["1:7:0", "4194999:8:0", "4194999:7", "4194999:7:0:1", "4194999:7:x", "sem.4194999", ""] {
            assert!(!is_stale(other, 7), "{other}");
        }
    }
}
