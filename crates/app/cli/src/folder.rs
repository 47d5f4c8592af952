//! Folders for results.

use crate::failure::Failure;
use std::{
    fs::{self, OpenOptions},
    path::Path,
};

/// Makes the folder, and checks that this file in it can be written before the long work begins. An earlier file gets
/// another name: records can be drawn again, but not made again without the work.
pub(crate) fn prepare(folder: &Path, file: &str) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    let path = folder.join(file);
    if fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() > 0) {
        let free = (1_u64..).map(|number| folder.join(format!("{file}.{number}"))).find(|kept| !kept.exists());
        let kept = free.unwrap_or_else(|| path.clone());
        fs::rename(&path, &kept).map_err(|error| unwritable(&kept, &error))?;
    }
    open(&path)
}

/// The same for a file that can be made again.
pub(crate) fn prepare_again(folder: &Path, file: &str) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    open(&folder.join(file))
}

fn open(path: &Path) -> Result<(), Failure> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map(drop).map_err(|error| unwritable(path, &error))
}

/// Writes a table into a folder: NAME.csv, and the same with types as NAME.parquet.
pub(crate) fn write_table(folder: &Path, name: &str, csv: &str) -> Result<(), Failure> {
    let path = folder.join(format!("{name}.csv"));
    fs::write(&path, csv).map_err(|error| unwritable(&path, &error))?;
    evb_tables::write_results(csv, &folder.join(format!("{name}.parquet"))).map_err(Failure::new)
}

/// The failure to write a file or folder.
pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::with_hint(
        format!("cannot write {}: {error}", path.display()),
        "check the path, the free space and `ulimit -f`",
    )
}
