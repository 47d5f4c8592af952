//! Helpers of several tests.

use evb_core::EventId;
use evb_sources::{FedHeader, OpenOptions, payload, write_fragment};
use std::path::{Path, PathBuf};

/// Options for readout unit `unit` with files from `directory`.
pub(crate) fn options(directory: &Path, unit: u16) -> OpenOptions {
    OpenOptions { data_directory: directory.to_owned(), unit, seed: 11, max_fragment: 1 << 20 }
}

/// A small generator, so that tests need no other: splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % limit
    }
}

pub(crate) fn header(level1_id: u32) -> FedHeader {
    FedHeader { event_type: 1, level1_id, bunch_crossing: 447, source_id: 841, version: 7 }
}

/// A recorded file with these level-1 ids, fragments of 16 to 500 bytes. Some payloads hold words that look like
/// headers and trailers.
pub(crate) fn fed_file(ids: impl IntoIterator<Item = u32>) -> Vec<u8> {
    let (mut file, mut random) = (Vec::new(), Random(3));
    for id in ids {
        let mut bytes = vec![0; random.below(61) as usize * 8];
        payload::fill(&mut bytes, 1, EventId(u64::from(id)), 841);
        if bytes.len() >= 64 && id % 3 == 0 {
            bytes[7] = 0xa0;
            bytes[15] = 0x51;
            // A trailer that fits but for its CRC, and then the header of the next event.
            bytes[16..24].copy_from_slice(&(0xa000_0004_0000_0000_u64).to_le_bytes());
            let next = 0x5100_0000_1bf3_4970_u64 | u64::from(id + 1) << 32;
            bytes[24..32].copy_from_slice(&next.to_le_bytes());
        }
        write_fragment(&mut file, header(id), &bytes);
    }
    file
}

/// The folder of recorded detector data: `EVB_DATA`, or `../shared/data` beside the repository.
pub(crate) fn data_folder() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data");
    let folder = std::env::var_os("EVB_DATA").map_or_else(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no recorded data in {} (set EVB_DATA)", folder.display());
    None
}
