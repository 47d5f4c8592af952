//! The registers of the unit: their addresses, and the words of the mailbox table.
//!
//! Writes have 64 bits and reads 32. A register address is a window of two bits above an index of `t - 12` bits. The
//! first window has the registers of the unit, the others one register for each thread.
//!
//! | bits of a table word | field |
//! |---|---|
//! | 0 to 27 | page of the ring: its address divided by 4 KiB |
//! | 28 to 34 | mask: pages of the ring, less one |
//! | 35 | the mailbox is open |

use crate::{
    AddressError, AddressMap, PAGE_BITS,
    mailbox::{HOST_BITS, MASK_BITS, Ring, RingError},
};

/// Bits of a window.
pub const WINDOW_BITS: u32 = 2;

/// Bits of the counters [`Control::Sent`] and [`Control::Received`]. They wrap.
pub const LONG_COUNTER_BITS: u32 = 32;

/// Bits of all other counters. They wrap.
pub const SHORT_COUNTER_BITS: u32 = 16;

/// Lowest bit of the mask in a table word, above the page.
pub const TABLE_MASK_SHIFT: u32 = HOST_BITS - PAGE_BITS;

/// The bit of a table word that opens a mailbox.
pub const TABLE_ENABLE_SHIFT: u32 = TABLE_MASK_SHIFT + MASK_BITS;

/// Bits of a table word.
pub const TABLE_BITS: u32 = TABLE_ENABLE_SHIFT + 1;

/// A window: the meaning of the index of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// The registers of the unit: [`Control`].
    Control = 0,
    /// For each thread, messages that its software has taken; write only.
    Head = 1,
    /// For each thread, its [`TableEntry`]; write only.
    Table = 2,
    /// For each thread, messages that the completer has put into its mailbox; read only.
    Tail = 3,
}

/// A register of the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Number of this node, to read and write; 0 after a reset.
    Node = 0,
    /// Packets that the requester has made.
    Sent = 1,
    /// Packets that the completer has put into mailboxes.
    Received = 2,
    /// Stores that are invalid.
    BadStores = 3,
    /// Packets dropped for [`Fault::Node`](crate::Fault::Node).
    FaultNode = 4,
    /// Packets dropped for [`Fault::Closed`](crate::Fault::Closed).
    FaultClosed = 5,
    /// Packets dropped for [`Fault::Data`](crate::Fault::Data).
    FaultData = 6,
    /// Link frames whose checksum was wrong.
    LinkErrors = 7,
    /// Link frames that were sent again.
    LinkRepeats = 8,
}

impl Window {
    /// All windows with their names.
    pub const ALL: [(Self, &'static str); 4] =
        [(Self::Control, "CONTROL"), (Self::Head, "HEAD"), (Self::Table, "TABLE"), (Self::Tail, "TAIL")];

    /// Address of a register of this window.
    ///
    /// # Errors
    /// [`AddressError::Thread`] for an index that has more bits than the number of a thread.
    pub const fn address(self, map: AddressMap, index: u64) -> Result<u64, AddressError> {
        if index >= map.threads_per_node() {
            return Err(AddressError::Thread { thread: index, threads: map.threads_per_node() });
        }
        Ok((self as u64) << map.thread_bits() | index)
    }
}

impl Control {
    /// All registers of the unit with their names, by index.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Node, "NODE"),
        (Self::Sent, "SENT"),
        (Self::Received, "RECEIVED"),
        (Self::BadStores, "BAD_STORES"),
        (Self::FaultNode, "FAULT_NODE"),
        (Self::FaultClosed, "FAULT_CLOSED"),
        (Self::FaultData, "FAULT_DATA"),
        (Self::LinkErrors, "LINK_ERRORS"),
        (Self::LinkRepeats, "LINK_REPEATS"),
    ];

    /// Address of this register.
    ///
    /// # Errors
    /// Those of [`Window::address`]: maps with fewer than 16 threads have no room for all registers.
    pub const fn address(self, map: AddressMap) -> Result<u64, AddressError> {
        Window::Control.address(map, self as u64)
    }
}

/// The word of a thread in the mailbox table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableEntry {
    /// The memory of the mailbox.
    pub ring: Ring,
    /// True if the mailbox is open.
    pub enabled: bool,
}

impl TableEntry {
    /// The entry as a word.
    pub const fn encode(self) -> u64 {
        (self.enabled as u64) << TABLE_ENABLE_SHIFT | self.ring.mask() << TABLE_MASK_SHIFT | self.ring.page()
    }

    /// The entry in a word; bits above the fields are ignored.
    ///
    /// # Errors
    /// [`RingError`] if the ring does not exist.
    pub const fn decode(word: u64) -> Result<Self, RingError> {
        let page = word & ((1 << TABLE_MASK_SHIFT) - 1);
        let mask = word >> TABLE_MASK_SHIFT & ((1 << MASK_BITS) - 1);
        match Ring::new(page << PAGE_BITS, mask + 1) {
            Ok(ring) => Ok(Self { ring, enabled: word >> TABLE_ENABLE_SHIFT & 1 == 1 }),
            Err(error) => Err(error),
        }
    }
}
