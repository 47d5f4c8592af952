//! Gives the command its version: that of the package, and in a release build the commit.

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = env::var("CARGO_PKG_VERSION").expect("cargo sets the version");
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = is_release.then(commit).flatten().map(|commit| format!(" ({commit})")).unwrap_or_default();
    println!("cargo::rustc-env=EVB_VERSION={version}{commit}");
}

/// The commit that is checked out, with a `+` if files of the repository are changed; none without git. Builds for
/// development leave it out: each commit would build the command again.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists())?;
    println!("cargo::rerun-if-changed={log}");
    let commit = git(&["rev-parse", "--short=8", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty());
    Some(if changed { commit + "+" } else { commit })
}
