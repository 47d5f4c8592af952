//! The address map: node, thread, length and offset in the address of a store (VELO 2008, figure 2).
//!
//! From the top bit `n - 1` of the base address register (BAR) down: the target node (`n - t` bits), the thread on that
//! node (`t - 12` bits), and the 12 bits of a page with the length of the message and the offset of the store in it. A
//! driver maps pages. So the driver decides on node and thread, and the user on length and offset.
//!
//! The text of the paper does not divide the 12 bits. Here both halves have six: the length less one above, the offset
//! below. So the stores of a message follow each other within a cache line, and write combining joins them.

use crate::LINE_BYTES;

/// Bits of an address below the page number: pages have 4 kB.
pub const PAGE_BITS: u32 = 12;

/// Bits of the length, and of the offset below it.
pub const LINE_BITS: u32 = LINE_BYTES.ilog2();

/// The largest BAR, in bits: its size fits a `u64`.
const MAX_BITS: u32 = u64::BITS - 1;

/// The division of an address: `n` bits in all, `t` of them below the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressMap {
    n: u32,
    t: u32,
}

/// The fields in the address of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The target node.
    pub node: u64,
    /// The target thread on that node.
    pub thread: u64,
    /// Length of the whole message in bytes, 1 to 64.
    pub length: u64,
    /// Offset of this store's data in the message, in bytes; less than the length. It is 0 except for the later pieces
    /// of a message that was cut.
    pub offset: u64,
}

/// The reason why a map or an address is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The bits of a map do not follow each other.
    #[error("n = {n} and t = {t} make no address: use {PAGE_BITS} <= t <= n <= {MAX_BITS}")]
    Bits {
        /// Bits of the BAR.
        n: u32,
        /// Bits below the node.
        t: u32,
    },
    /// No such node.
    #[error("node {node} of {nodes}: count nodes from 0, or make n larger")]
    Node {
        /// The node.
        node: u64,
        /// Number of nodes.
        nodes: u64,
    },
    /// No such thread on a node.
    #[error("thread {thread} of {threads} on a node: count threads from 0, or make t larger")]
    Thread {
        /// The thread.
        thread: u64,
        /// Number of threads of one node.
        threads: u64,
    },
    /// A message that is empty or longer than a cache line.
    #[error("message of {length} B: send 1 to {LINE_BYTES} B")]
    Length {
        /// Length in bytes.
        length: u64,
    },
    /// A store that begins behind its message.
    #[error("offset {offset} in a message of {length} B: begin within the message")]
    Offset {
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes.
        length: u64,
    },
    /// An address outside of the BAR.
    #[error("address {address:#x} in a BAR of {bytes:#x} B: count addresses from its base")]
    Outside {
        /// The address, from the base of the BAR.
        address: u64,
        /// Size of the BAR in bytes.
        bytes: u64,
    },
}

impl AddressMap {
    /// A map of `n` bits, `t` of them below the node.
    ///
    /// # Errors
    /// [`AddressError::Bits`] unless `12 <= t <= n <= 63`.
    pub const fn new(n: u32, t: u32) -> Result<Self, AddressError> {
        if PAGE_BITS <= t && t <= n && n <= MAX_BITS { Ok(Self { n, t }) } else { Err(AddressError::Bits { n, t }) }
    }

    /// Number of nodes: `2^(n - t)` (VELO 2008, section 3).
    pub const fn nodes(self) -> u64 {
        1 << (self.n - self.t)
    }

    /// Number of threads of one node: `2^(t - 12)`.
    pub const fn threads_per_node(self) -> u64 {
        1 << (self.t - PAGE_BITS)
    }

    /// Number of threads of all nodes: `2^(n - t) * 2^(t - 12)` (VELO 2008, section 3).
    pub const fn threads(self) -> u64 {
        self.nodes() * self.threads_per_node()
    }

    /// Size of the BAR in bytes: `2^n`.
    pub const fn bar_bytes(self) -> u64 {
        1 << self.n
    }

    /// Bits of an address: `n`.
    pub const fn address_bits(self) -> u32 {
        self.n
    }

    /// Bits of the number of a thread: `t - 12`.
    pub const fn thread_bits(self) -> u32 {
        self.t - PAGE_BITS
    }

    /// The address of a store, from the base of the BAR.
    ///
    /// # Errors
    /// No such node or thread, a length other than 1 to 64 B, or an offset behind the message.
    pub const fn encode(self, target: Target) -> Result<u64, AddressError> {
        let Target { node, thread, length, offset } = target;
        if node >= self.nodes() {
            return Err(AddressError::Node { node, nodes: self.nodes() });
        }
        if thread >= self.threads_per_node() {
            return Err(AddressError::Thread { thread, threads: self.threads_per_node() });
        }
        if length == 0 || length > LINE_BYTES {
            return Err(AddressError::Length { length });
        }
        if offset >= length {
            return Err(AddressError::Offset { offset, length });
        }
        Ok(node << self.t | thread << PAGE_BITS | (length - 1) << LINE_BITS | offset)
    }

    /// The fields of an address, counted from the base of the BAR.
    ///
    /// # Errors
    /// The address is outside of the BAR, or its offset is behind the message.
    pub const fn decode(self, address: u64) -> Result<Target, AddressError> {
        if address >= self.bar_bytes() {
            return Err(AddressError::Outside { address, bytes: self.bar_bytes() });
        }
        let thread = address >> PAGE_BITS & (self.threads_per_node() - 1);
        let length = (address >> LINE_BITS & (LINE_BYTES - 1)) + 1;
        let offset = address & (LINE_BYTES - 1);
        if offset >= length {
            return Err(AddressError::Offset { offset, length });
        }
        Ok(Target { node: address >> self.t, thread, length, offset })
    }
}
