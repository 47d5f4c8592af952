//! Folders that results are written into.

use crate::failure::Failure;
use std::{
    fs::{self, OpenOptions},
    path::Path,
};

/// Makes the folder, and sees that this file in it can be written, before the long work.
pub(crate) fn prepare(folder: &Path, file: &str) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    let path = folder.join(file);
    let opened = OpenOptions::new().append(true).create(true).open(&path);
    opened.map(drop).map_err(|error| unwritable(&path, &error))
}

/// A file or folder cannot be written.
pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::with_hint(
        format!("cannot write {}: {error}", path.display()),
        "check the path, the free space and `ulimit -f`",
    )
}
