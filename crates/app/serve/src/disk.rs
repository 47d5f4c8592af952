//! The space on the disk of the event files.

use crate::status::Disk;
use std::path::Path;

/// The disk of this folder, at this rate of stored bytes per second; `None` if it cannot be examined.
pub(crate) fn look(directory: &Path, stored_bytes_per_s: f64) -> Option<Disk> {
    // The folder may not be there before the first run.
    let there = directory.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    let space = rustix::fs::statvfs(there).ok()?;
    let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
    let seconds_until_full = (stored_bytes_per_s > 0.0).then(|| free_bytes as f64 / stored_bytes_per_s);
    let total_bytes = space.f_blocks.saturating_mul(space.f_frsize);
    Some(Disk { directory: directory.display().to_string(), free_bytes, total_bytes, seconds_until_full })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_yet_has_the_disk_of_the_one_above() {
        let folder = tempfile::tempdir().unwrap();
        let disk = look(&folder.path().join("not/yet"), 1e6).unwrap();
        assert!(disk.free_bytes > 0 && disk.free_bytes <= disk.total_bytes);
        assert!((disk.seconds_until_full.unwrap() - disk.free_bytes as f64 / 1e6).abs() < 1.0);
        assert_eq!(look(Path::new("not-there"), 0.0).unwrap().seconds_until_full, None);
    }
}
