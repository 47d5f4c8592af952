//! Folders for results.

use crate::failure::Failure;
use std::{
    fs::{self, OpenOptions},
    path::Path,
};

/// Makes the folder, and checks that this file in it can be written before the long work begins.
pub(crate) fn prepare(folder: &Path, file: &str) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    let path = folder.join(file);
    let opened = OpenOptions::new().append(true).create(true).open(&path);
    opened.map(drop).map_err(|error| unwritable(&path, &error))
}

/// The failure to write a file or folder.
pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::with_hint(
        format!("cannot write {}: {error}", path.display()),
        "check the path, the free space and `ulimit -f`",
    )
}
