//! A packet: a header of 64 bits and the data of one store, which stay in their [byte lanes](crate::lanes).
//!
//! | bits | field |
//! |---|---|
//! | 0 to 5 | offset of the data in the message, in bytes |
//! | 6 to 11 | length of the message in bytes, less one |
//! | 12 to 17 | length of the data in bytes, less one |
//! | 18 to 39 | target: node and thread, as in an address without its page |
//! | 40 to 61 | source: the same of the sending thread |
//! | 62 | 0 |
//! | 63 | 1: a header is never 0 |
//!
//! Both lengths are in the header so that a fragment can be recognised (VELO 2008, section 3, statelessness): its data
//! are shorter than its message. The paper gives neither order nor width of these fields. Both are choices of this
//! model, and the low 12 bits are those of the address.

extern crate alloc;

use crate::{AddressError, AddressMap, LINE_BITS, LINE_BYTES, PAGE_BITS, Target, lanes};
use alloc::vec::Vec;

/// Bits of a target or a source.
pub const ENDPOINT_BITS: u32 = 22;

/// Lowest bit of the length of the data in a header.
pub const DATA_SHIFT: u32 = 2 * LINE_BITS;

/// Lowest bit of the target in a header.
pub const TARGET_SHIFT: u32 = 3 * LINE_BITS;

/// Lowest bit of the source in a header.
pub const SOURCE_SHIFT: u32 = TARGET_SHIFT + ENDPOINT_BITS;

/// Lowest of the bits that are the same in all headers.
pub const FIXED_SHIFT: u32 = SOURCE_SHIFT + ENDPOINT_BITS;

/// Value of the bits that are the same in all headers: a header is never 0.
pub const FIXED: u64 = 0b10;

/// A thread of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// The node.
    pub node: u64,
    /// The thread on that node.
    pub thread: u64,
}

impl Endpoint {
    /// Node and thread in the bits of an address above its page: the number of this thread among all.
    pub const fn bits(self, map: AddressMap) -> u64 {
        self.node << map.thread_bits() | self.thread
    }

    /// The endpoint in these bits; its node may be outside of the map.
    pub const fn from_bits(bits: u64, map: AddressMap) -> Self {
        Self { node: bits >> map.thread_bits(), thread: bits & (map.threads_per_node() - 1) }
    }
}

/// The fields of a packet's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The thread that sent it.
    pub source: Endpoint,
    /// The thread whose mailbox it is for.
    pub target: Endpoint,
    /// Length of the whole message in bytes, 1 to 64.
    pub length: u64,
    /// Offset of the data in the message, in bytes.
    pub offset: u64,
    /// Length of the data in bytes, at least 1; they end within the message.
    pub data: u64,
}

/// The reason why a header is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Target, length or offset are invalid.
    #[error(transparent)]
    Target(AddressError),
    /// The sender is invalid.
    #[error("source: {0}")]
    Source(AddressError),
    /// The data are empty or end behind their message.
    #[error(
        "{data} B of data at offset {offset} of a message of {length} B: send 1 B at least, and end within the message"
    )]
    Data {
        /// Length of the data in bytes.
        data: u64,
        /// Their offset in bytes.
        offset: u64,
        /// Length of the message in bytes.
        length: u64,
    },
    /// The map has more threads than a header can name.
    #[error("a map with {threads} threads: headers name {} of them, so use n <= {}", 1 << ENDPOINT_BITS, ENDPOINT_BITS + PAGE_BITS)]
    Map {
        /// Threads of all nodes.
        threads: u64,
    },
    /// The fixed bits of a word are not those of a header.
    #[error("{word:#018x} is not a header: its top bits are not 10")]
    Fixed {
        /// The word.
        word: u64,
    },
}

impl Header {
    /// The header as a word.
    ///
    /// # Errors
    /// An invalid field, or a map with more than 2^22 threads.
    pub const fn encode(self, map: AddressMap) -> Result<u64, HeaderError> {
        let Self { source, target, length, offset, data } = self;
        let target = Target { node: target.node, thread: target.thread, length, offset };
        let source = Target { node: source.node, thread: source.thread, length: 1, offset: 0 };
        if map.threads() > 1 << ENDPOINT_BITS {
            return Err(HeaderError::Map { threads: map.threads() });
        }
        let address = match map.encode(target) {
            Ok(address) => address,
            Err(error) => return Err(HeaderError::Target(error)),
        };
        let source = match map.encode(source) {
            Ok(address) => address >> PAGE_BITS,
            Err(error) => return Err(HeaderError::Source(error)),
        };
        if data == 0 || data > length - offset {
            return Err(HeaderError::Data { data, offset, length });
        }
        let low = address & ((1 << PAGE_BITS) - 1);
        let target = (address >> PAGE_BITS) << TARGET_SHIFT;
        Ok(FIXED << FIXED_SHIFT | source << SOURCE_SHIFT | target | (data - 1) << DATA_SHIFT | low)
    }

    /// The header in a word.
    ///
    /// # Errors
    /// Those of [`encode`](Header::encode), for a word that it does not produce.
    pub const fn decode(word: u64, map: AddressMap) -> Result<Self, HeaderError> {
        if !Self::has_fixed_bits(word) {
            return Err(HeaderError::Fixed { word });
        }
        let header = Self::split(word, map);
        match header.encode(map) {
            Ok(_) => Ok(header),
            Err(error) => Err(error),
        }
    }

    /// The fields of any word, as hardware sees them. Nothing is checked, and they may name a node or thread that does
    /// not exist.
    pub const fn split(word: u64, map: AddressMap) -> Self {
        let (endpoint, line) = ((1 << ENDPOINT_BITS) - 1, LINE_BYTES - 1);
        Self {
            source: Endpoint::from_bits(word >> SOURCE_SHIFT & endpoint, map),
            target: Endpoint::from_bits(word >> TARGET_SHIFT & endpoint, map),
            length: (word >> LINE_BITS & line) + 1,
            offset: word & line,
            data: (word >> DATA_SHIFT & line) + 1,
        }
    }

    /// Returns true if a word has the fixed bits of a header.
    pub const fn has_fixed_bits(word: u64) -> bool {
        word >> FIXED_SHIFT == FIXED
    }

    /// Returns true if there are data, and they end within their message, which fits a cache line.
    pub const fn is_consistent(self) -> bool {
        self.data > 0 && self.offset.saturating_add(self.data) <= self.length && self.length <= LINE_BYTES
    }

    /// Returns true if the data are only a part of the message.
    pub const fn is_fragment(self) -> bool {
        self.data < self.length
    }
}

/// The reason why words are not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// There are no words.
    #[error("a packet without words: begin with its header")]
    Empty,
    /// The first word is not a header.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// There are more or fewer words than the header announces.
    #[error(transparent)]
    Count(#[from] lanes::CountError),
}

/// A header and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The header of the packet.
    pub header: Header,
    /// The data from index 0 on, wherever they belong in the message; bytes behind [`Header::data`] bytes are 0.
    pub data: [u8; LINE_BYTES as usize],
}

impl Packet {
    /// The words of the packet on the network: its header, then the words that its data touch.
    ///
    /// # Errors
    /// Those of [`Header::encode`].
    pub fn words(&self, map: AddressMap) -> Result<Vec<u64>, HeaderError> {
        let mut words = alloc::vec![self.header.encode(map)?];
        words.extend(lanes::pack(self.header.offset, self.bytes()));
        Ok(words)
    }

    /// The packet of these words. Bytes beside the data in their words are ignored.
    ///
    /// # Errors
    /// [`PacketError`] if the first word is not a header of this map, or does not fit the number of words.
    pub fn from_words(words: &[u64], map: AddressMap) -> Result<Self, PacketError> {
        let (&word, data) = words.split_first().ok_or(PacketError::Empty)?;
        let header = Header::decode(word, map)?;
        Ok(Self { header, data: lanes::unpack(header.offset, header.data, data)? })
    }

    /// The data bytes of the packet.
    pub fn bytes(&self) -> &[u8] {
        &self.data[..self.header.data as usize]
    }
}
