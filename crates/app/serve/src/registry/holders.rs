//! The programs that have the registry open: a lock of theirs holds it up.

use super::identity;
use std::{fs, path::Path, process};

/// The other programs that have a file open, such as "sqlite3 (process 4711)", as far as this user can see them.
pub(super) fn holders(path: &Path) -> Vec<String> {
    let Some(file) = identity(path) else { return Vec::new() };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_it_open = |pid: &u32| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        *pid != process::id() && open.into_iter().any(|entry| identity(&entry.path()) == Some(file))
    };
    pids.filter(has_it_open).map(describe).collect()
}

fn describe(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("{} (process {pid})", name.trim())
}

/// The end of a message about a locked file.
pub(super) fn open_in(holders: &[String]) -> String {
    if holders.is_empty() { String::new() } else { format!("; it is open in {}", holders.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs::File, process::Command};

    #[test]
    fn programs_with_an_open_file_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let file = File::create(&path).unwrap();
        assert!(holders(&path).is_empty(), "this process is not named");
        let mut other = Command::new("sleep").arg("1000").stdin(file).spawn().unwrap();
        let found = holders(&path);
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(found, [format!("sleep (process {})", other.id())]);
        assert_eq!(open_in(&found), format!("; it is open in sleep (process {})", other.id()));
    }
}
