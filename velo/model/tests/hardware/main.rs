//! The parts of `velo/hardware` that are generated from this crate: the package of constants and the test vectors.
//! `UPDATE_HARDWARE=1 cargo test -p evb-velo --test hardware` writes them.

mod package;
mod vectors;

use std::{env, fs, path::Path};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../hardware");

#[test]
fn generated_files_are_current() {
    let package = ("rtl/velo_pkg.sv", package::text());
    for (name, text) in vectors::files().into_iter().chain([package]) {
        let path = Path::new(FOLDER).join(name);
        if env::var_os("UPDATE_HARDWARE").is_some() {
            fs::write(&path, text).unwrap();
        } else {
            let is_current = fs::read_to_string(&path).is_ok_and(|found| found == text);
            assert!(
                is_current,
                "velo/hardware/{name} is stale: write it with UPDATE_HARDWARE=1, and review the change"
            );
        }
    }
}
