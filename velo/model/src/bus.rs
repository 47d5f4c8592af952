//! The bus of the host: a store as the device gets it, as a command word and data words in their byte lanes.
//!
//! | bits of the command | field |
//! |---|---|
//! | 0 to n - 1 | address from the base of the BAR, as in [`AddressMap`] |
//! | n to n + t - 13 | the thread that stores |
//! | to 57 | 0 |
//! | 58 to 63 | length of the data in bytes, less one |
//!
//! A thread cannot write the bits of its number: the driver maps a window of the device for each thread, an alias
//! of the whole BAR, and grants pages of it. VELO 2008 says that the packet names its sender, but not how the device
//! knows it. The windows are a choice of this model, and need no table.

extern crate alloc;

use crate::{AddressError, AddressMap, HeaderError, LINE_BITS, LINE_BYTES, lanes};
use alloc::vec::Vec;

/// Bits of the physical address in a command.
pub const ADDRESS_BITS: u32 = 58;

/// Lowest bit of the length of the data.
pub const DATA_SHIFT: u32 = ADDRESS_BITS;

/// Bits of the length of the data.
pub const DATA_BITS: u32 = LINE_BITS;

/// The fields of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The thread that stores, on the node of the device.
    pub thread: u64,
    /// Address from the base of the BAR, valid or not.
    pub address: u64,
    /// Length of the data in bytes, 1 to 64.
    pub data: u64,
}

/// The reason why a command or a transaction is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The windows of all threads have more bits than a command has for an address.
    #[error("windows of {bits} bits: commands have {ADDRESS_BITS}, so use n + t <= {}", ADDRESS_BITS + crate::PAGE_BITS)]
    Map {
        /// Bits of a physical address.
        bits: u32,
    },
    /// No such thread or address, or a physical address outside of all windows.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The data are empty or longer than a cache line.
    #[error("a store of {data} B: store 1 to {LINE_BYTES} B")]
    Data {
        /// Length of the data in bytes.
        data: u64,
    },
    /// A transaction without a command.
    #[error("a transaction without words: begin with its command")]
    Empty,
    /// A transaction with more or fewer data words than its command announces.
    #[error(transparent)]
    Count(#[from] lanes::CountError),
    /// The store makes no valid packet.
    #[error(transparent)]
    Header(#[from] HeaderError),
}

/// Bits of a physical address from the base of the BAR: those of an address, and the number of the storing thread above
/// them.
pub const fn physical_bits(map: AddressMap) -> u32 {
    map.address_bits() + map.thread_bits()
}

impl Command {
    /// The command as a word.
    ///
    /// # Errors
    /// An invalid field, or a map with more windows than a command can name.
    pub fn encode(self, map: AddressMap) -> Result<u64, BusError> {
        let (Self { thread, address, data }, bits) = (self, physical_bits(map));
        if bits > ADDRESS_BITS {
            return Err(BusError::Map { bits });
        }
        if thread >= map.threads_per_node() {
            return Err(AddressError::Thread { thread, threads: map.threads_per_node() }.into());
        }
        if address >= map.bar_bytes() {
            return Err(AddressError::Outside { address, bytes: map.bar_bytes() }.into());
        }
        if data == 0 || data > LINE_BYTES {
            return Err(BusError::Data { data });
        }
        Ok((data - 1) << DATA_SHIFT | thread << map.address_bits() | address)
    }

    /// The command in a word. The address is not checked.
    ///
    /// # Errors
    /// [`AddressError::Outside`] if a bit above the windows is set, or [`BusError::Map`].
    pub fn decode(word: u64, map: AddressMap) -> Result<Self, BusError> {
        let bits = physical_bits(map);
        if bits > ADDRESS_BITS {
            return Err(BusError::Map { bits });
        }
        let physical = word & ((1 << ADDRESS_BITS) - 1);
        if physical >> bits != 0 {
            return Err(AddressError::Outside { address: physical, bytes: 1 << bits }.into());
        }
        let address = physical & (map.bar_bytes() - 1);
        Ok(Self { thread: physical >> map.address_bits(), address, data: (word >> DATA_SHIFT) + 1 })
    }
}

/// The words of a store of 1 to 64 B: its command, then its data. Bytes beside the data, which a bus may fill with
/// anything, are 0.
///
/// # Errors
/// Those of [`Command::encode`].
pub fn store(map: AddressMap, thread: u64, address: u64, bytes: &[u8]) -> Result<Vec<u64>, BusError> {
    let command = Command { thread, address, data: bytes.len() as u64 }.encode(map)?;
    let mut words = alloc::vec![command];
    words.extend(lanes::pack(address, bytes));
    Ok(words)
}
