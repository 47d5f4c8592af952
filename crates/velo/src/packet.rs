//! What travels: a header of 64 bits and the data of one store.
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
//! Both lengths are there so that a fragment shows itself (VELO 2008, section 3, statelessness): a packet whose data are
//! shorter than its message is one. The paper names neither order nor width of these fields; these are ours, and the low
//! 12 bits are those of the address.

use crate::{AddressError, AddressMap, LINE_BITS, LINE_BYTES, PAGE_BITS, Target};

/// Bits of a target or a source.
pub const ENDPOINT_BITS: u32 = 22;

const DATA_SHIFT: u32 = 2 * LINE_BITS;
const TARGET_SHIFT: u32 = 3 * LINE_BITS;
const SOURCE_SHIFT: u32 = TARGET_SHIFT + ENDPOINT_BITS;
const RESERVED: u64 = 1 << 62;
const VALID: u64 = 1 << 63;

/// A thread of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// The node.
    pub node: u64,
    /// The thread there.
    pub thread: u64,
}

/// What a packet says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The thread that sent it.
    pub source: Endpoint,
    /// The thread whose mailbox it is for.
    pub target: Endpoint,
    /// Length of the whole message in bytes, 1 to 64.
    pub length: u64,
    /// Where in the message the data stand, in bytes.
    pub offset: u64,
    /// Length of the data in bytes, at least 1; they end within the message.
    pub data: u64,
}

/// Why there is no such header, or a word is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Target, length or offset cannot be.
    #[error(transparent)]
    Target(AddressError),
    /// The sender cannot be.
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
    #[error("{word:#018x} is no header: its top bits are not 10")]
    Fixed {
        /// The word.
        word: u64,
    },
}

impl Header {
    /// The header as a word.
    ///
    /// # Errors
    /// A field that cannot be, or a map with more than 2^22 threads.
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
        Ok(VALID | source << SOURCE_SHIFT | (address >> PAGE_BITS) << TARGET_SHIFT | (data - 1) << DATA_SHIFT | low)
    }

    /// What a word says.
    ///
    /// # Errors
    /// As [`encode`](Header::encode), for a word that it does not give.
    pub const fn decode(word: u64, map: AddressMap) -> Result<Self, HeaderError> {
        if word & (VALID | RESERVED) != VALID {
            return Err(HeaderError::Fixed { word });
        }
        if map.threads() > 1 << ENDPOINT_BITS {
            return Err(HeaderError::Map { threads: map.threads() });
        }
        let mask = (1 << ENDPOINT_BITS) - 1;
        let low = word & ((1 << PAGE_BITS) - 1);
        let Target { node, thread, length, offset } = match map.decode((word >> TARGET_SHIFT & mask) << PAGE_BITS | low)
        {
            Ok(target) => target,
            Err(error) => return Err(HeaderError::Target(error)),
        };
        let source = match map.decode((word >> SOURCE_SHIFT & mask) << PAGE_BITS) {
            Ok(source) => Endpoint { node: source.node, thread: source.thread },
            Err(error) => return Err(HeaderError::Source(error)),
        };
        let data = (word >> DATA_SHIFT & (LINE_BYTES - 1)) + 1;
        if data > length - offset {
            return Err(HeaderError::Data { data, offset, length });
        }
        Ok(Self { source, target: Endpoint { node, thread }, length, offset, data })
    }

    /// Whether this is a part of its message only.
    pub const fn is_fragment(self) -> bool {
        self.data < self.length
    }
}

/// A header and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What the packet says of itself.
    pub header: Header,
    /// The data; what is behind [`Header::data`] bytes is 0.
    pub data: [u8; LINE_BYTES as usize],
}

impl Packet {
    /// The bytes that travel.
    pub fn bytes(&self) -> &[u8] {
        &self.data[..self.header.data as usize]
    }
}
