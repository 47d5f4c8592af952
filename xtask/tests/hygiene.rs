//! Contents that must not get into the repository.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The files that git has or would add, as paths from the root with their bytes; empty outside of a clone.
fn files() -> Vec<(String, Vec<u8>)> {
    let mut command = Command::new("git");
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(ROOT);
    let Some(output) = command.output().ok().filter(|output| output.status.success()) else {
        println!("skipped: not a git clone");
        return Vec::new();
    };
    let names = String::from_utf8(output.stdout).expect("names of files are text");
    let names = names.split('\0').filter(|name| !name.is_empty());
    // The list contains files that are deleted but not committed.
    names.filter_map(|name| Some((name.to_owned(), fs::read(Path::new(ROOT).join(name)).ok()?))).collect()
}

/// Folders of this machine, whose paths have no meaning on another one.
fn folders_of_this_machine() -> Vec<String> {
    let root = Path::new(ROOT).canonicalize().ok();
    let homes =
        ["HOME", "CARGO_HOME", "RUSTUP_HOME", "CARGO_TARGET_DIR"].map(|name| env::var_os(name).map(PathBuf::from));
    let folders =
        homes.into_iter().chain([root]).flatten().filter(|path| path.is_absolute() && path.parent().is_some());
    folders.map(|path| format!("{}/", path.display())).chain(["/home/".into(), "/Users/".into()]).collect()
}

/// True if `bytes` contain `path`, and not as the end of a longer path.
fn has_path(bytes: &[u8], path: &str) -> bool {
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./}".contains(byte);
    let places = bytes.windows(path.len()).enumerate().filter(|(_, window)| *window == path.as_bytes());
    places.map(|(at, _)| &bytes[..at]).any(|before| !before.last().is_some_and(inside))
}

#[test]
fn no_file_names_a_folder_of_this_machine() {
    let folders = folders_of_this_machine();
    for (name, bytes) in files() {
        if name == "xtask/tests/hygiene.rs" {
            continue;
        }
        for folder in &folders {
            assert!(!has_path(&bytes, folder), "{name} names {folder}");
        }
    }
}

#[test]
fn paths_are_distinguished_from_ends_of_paths() {
    assert!(has_path(b"see /src/evb/data", "/src/evb/"));
    assert!(has_path(b"/src/evb/data", "/src/evb/"));
    assert!(!has_path(b"crates/src/evb/data", "/src/evb/"));
    assert!(!has_path(b"/src/evb-data", "/src/evb/"));
}

#[test]
fn no_source_contains_unfinished_code() {
    for (name, bytes) in files().iter().filter(|(name, _)| name.ends_with(".rs")) {
        let text = String::from_utf8_lossy(bytes);
        for unfinished in [concat!("to", "do!"), concat!("un", "implemented!"), concat!("db", "g!(")] {
            assert!(!text.contains(unfinished), "{name} contains {unfinished}");
        }
    }
}

#[test]
fn nothing_depends_on_a_git_repository() {
    for (name, bytes) in files() {
        let text = String::from_utf8_lossy(&bytes);
        let from_git = match name.rsplit('/').next() {
            Some("Cargo.toml") => text.lines().any(|line| line.replace(' ', "").contains("git=\"")),
            Some("Cargo.lock") => text.contains("source = \"git+"),
            _ => false,
        };
        assert!(!from_git, "{name} depends on a git repository, which may be gone tomorrow");
    }
}

#[test]
fn every_crate_has_the_license_of_the_workspace() {
    const LICENSE: &str = "Apache-2.0";
    for (name, bytes) in files() {
        let text = String::from_utf8_lossy(&bytes);
        let is_licensed = match name.rsplit('/').next() {
            Some("LICENSE") => text.lines().any(|line| line == format!("SPDX-License-Identifier: {LICENSE}")),
            // The root of a workspace names it.
            Some("Cargo.toml") if text.contains("[workspace]") => {
                text.contains(&format!("\nlicense = \"{LICENSE}\"\n"))
            }
            Some("Cargo.toml") => text.contains("\nlicense.workspace = true\n"),
            _ => true,
        };
        assert!(is_licensed, "{name} does not say that the license is {LICENSE}");
    }
}

#[test]
fn links_between_pages_are_valid() {
    let mut broken = Vec::new();
    for (name, bytes) in files().iter().filter(|(name, _)| name.ends_with(".md")) {
        let text = String::from_utf8_lossy(bytes);
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for target in targets.filter(|target| !target.is_empty() && !target.contains(':')) {
            let path = Path::new(ROOT).join(name).parent().expect("a folder").join(target);
            if !path.exists() {
                broken.push(format!("{name} links to {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "broken links: {broken:#?}");
}
