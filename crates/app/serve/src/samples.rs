//! Samples of events in a file of shared memory, for programs on this machine.
//!
//! The file is a ring of slots. The writer never waits: it overwrites the oldest sample, and a reader who is too slow misses
//! some. Each place begins with the number of its sample, which is 0 while it is being written. A reader reads it before and after
//! its copy: if it is another one behind the copy, the copy is worth nothing. All fields are little-endian.
//!
//! | byte | field |
//! |---|---|
//! | 0 | `EVBSAMPL` |
//! | 8 | version of the layout, u32 |
//! | 12 | places, u32 |
//! | 16 | bytes from one place to the next, u64 |
//! | 24 | samples written so far, u64; number n is in place n mod places |
//! | 4096 | the places: number of the sample, u64; length, u32; four bytes unused; the sample as JSON, as in `/api/samples` |

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

const MAGIC: &[u8; 8] = b"EVBSAMPL";
const LAYOUT: u32 = 1;
/// Samples that the file holds.
const PLACES: u32 = 16;
/// Bytes of a place: the largest sample in hexadecimal digits, and the names around it.
const PLACE_BYTES: u64 = 1280 << 10;
const FIRST_PLACE: u64 = 4096;
/// Offset of the number of samples.
const WRITTEN_AT: u64 = 24;
/// Bytes before the sample in a place.
const HEAD_BYTES: u64 = 16;

/// The file; it is removed when the service ends.
#[derive(Debug)]
pub(crate) struct SampleFile {
    file: File,
    path: PathBuf,
    written: u64,
}

impl SampleFile {
    /// Makes the file, which the group may read, in place of one that an earlier service left.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        // Readers of an old file keep it, and see that another one has its name.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o640).open(path)?;
        file.set_len(FIRST_PLACE + u64::from(PLACES) * PLACE_BYTES)?;
        file.write_all_at(&LAYOUT.to_le_bytes(), 8)?;
        file.write_all_at(&PLACES.to_le_bytes(), 12)?;
        file.write_all_at(&PLACE_BYTES.to_le_bytes(), 16)?;
        file.write_all_at(MAGIC, 0)?;
        Ok(Self { file, path: path.to_owned(), written: 0 })
    }

    /// Writes a sample in place of the oldest one. One that is too large is left out.
    pub(crate) fn write(&mut self, sample: &[u8]) -> io::Result<()> {
        if sample.len() as u64 > PLACE_BYTES - HEAD_BYTES {
            return Ok(());
        }
        let number = self.written + 1;
        let place = FIRST_PLACE + (number % u64::from(PLACES)) * PLACE_BYTES;
        self.file.write_all_at(&0_u64.to_le_bytes(), place)?;
        self.file.write_all_at(&(sample.len() as u32).to_le_bytes(), place + 8)?;
        self.file.write_all_at(sample, place + HEAD_BYTES)?;
        self.file.write_all_at(&number.to_le_bytes(), place)?;
        self.file.write_all_at(&number.to_le_bytes(), WRITTEN_AT)?;
        self.written = number;
        Ok(())
    }
}

impl Drop for SampleFile {
    fn drop(&mut self) {
        let _error = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number_at(file: &File, at: u64) -> u64 {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at).unwrap();
        u64::from_le_bytes(bytes)
    }

    #[test]
    fn the_oldest_sample_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples");
        let mut samples = SampleFile::create(&path).unwrap();
        for number in 1..=u64::from(PLACES) + 3 {
            samples.write(format!("sample {number}").as_bytes()).unwrap();
        }
        samples.write(&vec![b'x'; PLACE_BYTES as usize]).unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(number_at(&file, WRITTEN_AT), 19, "one that is too large is left out");
        let place = FIRST_PLACE + 3 * PLACE_BYTES;
        assert_eq!(number_at(&file, place), 19);
        let mut text = [0; 9];
        file.read_exact_at(&mut text, place + HEAD_BYTES).unwrap();
        assert_eq!(&text, b"sample 19");
        assert_eq!(number_at(&file, FIRST_PLACE + 4 * PLACE_BYTES), 4, "the oldest that is left");
    }

    #[test]
    fn a_file_that_was_left_is_replaced_and_ours_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples");
        fs::write(&path, "old").unwrap();
        drop(SampleFile::create(&path).unwrap());
        assert!(!path.exists());
        assert!(SampleFile::create(&folder.path().join("missing/samples")).is_err());
    }
}
