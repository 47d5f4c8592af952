//! One FED fragment: header, trailer and CRC-16.

use crc_fast::{CrcAlgorithm, Digest};

/// Bytes in a word.
pub(crate) const WORD: usize = 8;
/// Top four bits of a header word.
pub(crate) const HEADER_TAG: u8 = 0x5;
/// Top four bits of a trailer word.
pub(crate) const TRAILER_TAG: u8 = 0xa;
/// Lowest bit of the CRC in the trailer word.
const CRC_SHIFT: u32 = 16;
/// Bytes whose order is reversed at a time.
const SWAPPED: usize = 1024;

/// The header of a fragment. Fields wider than those of the format are cut to its width when written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FedHeader {
    /// Event type, 4 bits.
    pub event_type: u8,
    /// Level-1 id: the trigger number, 24 bits.
    pub level1_id: u32,
    /// Bunch crossing, 12 bits.
    pub bunch_crossing: u16,
    /// Source id: the number of the FED, 12 bits.
    pub source_id: u16,
    /// Format version, 4 bits.
    pub version: u8,
}

/// The defect of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FedError {
    /// Not a whole number of words, or less than a header and a trailer.
    #[error("{bytes} bytes are not a header, a trailer and whole 64-bit words between them")]
    Size {
        /// Size of the fragment in bytes.
        bytes: usize,
    },
    /// The first word is not a header.
    #[error("the first word {word:#018x} is not a header: it does not begin with 5")]
    Header {
        /// The first word.
        word: u64,
    },
    /// The last word is not a trailer.
    #[error("the last word {word:#018x} is not a trailer: it does not begin with a")]
    Trailer {
        /// The last word.
        word: u64,
    },
    /// The length in the trailer is wrong.
    #[error("the trailer says {said} words, the fragment has {found}")]
    Length {
        /// Words according to the trailer.
        said: u32,
        /// Words found.
        found: usize,
    },
    /// The CRC in the trailer is wrong.
    #[error("the trailer says CRC {said:#06x}, the fragment has {found:#06x}")]
    Crc {
        /// CRC according to the trailer.
        said: u16,
        /// CRC of the bytes.
        found: u16,
    },
}

impl FedHeader {
    pub(crate) const fn from_word(word: u64) -> Self {
        Self {
            event_type: (word >> 56) as u8 & 0xf,
            level1_id: (word >> 32) as u32 & 0xff_ffff,
            bunch_crossing: (word >> 20) as u16 & 0xfff,
            source_id: (word >> 8) as u16 & 0xfff,
            version: (word >> 4) as u8 & 0xf,
        }
    }

    fn to_word(self) -> u64 {
        u64::from(HEADER_TAG) << 60
            | u64::from(self.event_type & 0xf) << 56
            | u64::from(self.level1_id & 0xff_ffff) << 32
            | u64::from(self.bunch_crossing & 0xfff) << 20
            | u64::from(self.source_id & 0xfff) << 8
            | u64::from(self.version & 0xf) << 4
    }
}

/// The fields of a trailer word.
#[derive(Clone, Copy)]
pub(crate) struct Trailer {
    pub(crate) words: u32,
    pub(crate) crc: u16,
}

impl Trailer {
    pub(crate) const fn from_word(word: u64) -> Self {
        Self { words: (word >> 32) as u32 & 0xff_ffff, crc: (word >> CRC_SHIFT) as u16 }
    }

    const fn to_word(self) -> u64 {
        (TRAILER_TAG as u64) << 60 | (self.words as u64) << 32 | (self.crc as u64) << CRC_SHIFT
    }
}

/// Checks one whole fragment: header, trailer, length and CRC-16.
///
/// # Errors
/// The first defect in this order.
pub fn check_fragment(bytes: &[u8]) -> Result<FedHeader, FedError> {
    if bytes.len() < 2 * WORD || !bytes.len().is_multiple_of(WORD) {
        return Err(FedError::Size { bytes: bytes.len() });
    }
    let (body, last) = bytes.split_at(bytes.len() - WORD);
    let (first, last) = (word_at(body), word_at(last));
    if tag(first) != HEADER_TAG {
        return Err(FedError::Header { word: first });
    }
    if tag(last) != TRAILER_TAG {
        return Err(FedError::Trailer { word: last });
    }
    let (trailer, found) = (Trailer::from_word(last), bytes.len() / WORD);
    if trailer.words as usize != found {
        return Err(FedError::Length { said: trailer.words, found });
    }
    let mut crc = Crc16::new();
    crc.update(body);
    let (said, found) = (trailer.crc, crc.finish(last));
    if said != found {
        return Err(FedError::Crc { said, found });
    }
    Ok(FedHeader::from_word(first))
}

/// Appends one valid fragment. The payload is padded with zeros to whole words.
///
/// # Panics
/// If the payload is longer than the 24-bit length of the format allows, 128 MiB.
pub fn write_fragment(out: &mut Vec<u8>, header: FedHeader, payload: &[u8]) {
    let words = 2 + payload.len().div_ceil(WORD);
    assert!(words < 1 << 24, "a FED fragment has less than 2^24 words");
    let start = out.len();
    out.extend_from_slice(&header.to_word().to_le_bytes());
    out.extend_from_slice(payload);
    out.resize(start + (words - 1) * WORD, 0);
    let mut trailer = Trailer { words: words as u32, crc: 0 };
    let mut crc = Crc16::new();
    crc.update(&out[start..]);
    trailer.crc = crc.finish(trailer.to_word());
    out.extend_from_slice(&trailer.to_word().to_le_bytes());
}

/// The format's CRC-16 (polynomial 0x8005, initial value 0xffff, not reflected: "CRC-16/CMS" in the catalogue of
/// CRC algorithms), over every word from its top byte down, the CRC field itself taken as zero.
pub(crate) struct Crc16(Digest);

impl Crc16 {
    pub(crate) fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc16Cms))
    }

    /// Takes in whole words.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let mut swapped = [0; SWAPPED];
        for chunk in bytes.chunks(SWAPPED) {
            let words = chunk.as_chunks::<WORD>().0.iter();
            for (to, from) in swapped.as_chunks_mut::<WORD>().0.iter_mut().zip(words) {
                *to = u64::from_le_bytes(*from).to_be_bytes();
            }
            self.0.update(&swapped[..chunk.len()]);
        }
    }

    /// Takes in the trailer word and gives the CRC.
    pub(crate) fn finish(mut self, trailer: u64) -> u16 {
        self.0.update(&(trailer & !(0xffff << CRC_SHIFT)).to_be_bytes());
        self.0.finalize() as u16
    }
}

/// The top four bits of a word.
pub(crate) const fn tag(word: u64) -> u8 {
    (word >> 60) as u8
}

/// The first word of `bytes`, which has at least one.
pub(crate) fn word_at(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("a caller gives at least one word"))
}
