//! The sending side: a store becomes a packet, and nothing is kept.

use crate::{
    AddressMap, Endpoint, Header, HeaderError, LINE_BYTES, Packet,
    bus::{BusError, Command},
    lanes,
};

/// The requester of one node. It knows only the map and its own node; the mapping gives the thread that stores.
#[derive(Clone, Copy, Debug)]
pub struct Requester {
    map: AddressMap,
    node: u64,
}

impl Requester {
    /// The requester of a node.
    pub const fn new(map: AddressMap, node: u64) -> Self {
        Self { map, node }
    }

    /// The packet of a store of 1 to 64 B that `thread` made to `address`, counted from the base of the BAR. The packet
    /// is a fragment if the write-combining buffer was flushed before the message was complete.
    ///
    /// # Errors
    /// [`HeaderError`] if the address is invalid, or the data are empty or end behind their message.
    pub fn store(&self, thread: u64, address: u64, data: &[u8]) -> Result<Packet, HeaderError> {
        let target = self.map.decode(address).map_err(HeaderError::Target)?;
        let header = Header {
            source: Endpoint { node: self.node, thread },
            target: Endpoint { node: target.node, thread: target.thread },
            length: target.length,
            offset: target.offset,
            data: data.len() as u64,
        };
        header.encode(self.map)?;
        let mut packet = Packet { header, data: [0; LINE_BYTES as usize] };
        packet.data[..data.len()].copy_from_slice(data);
        Ok(packet)
    }

    /// The packet of a store as it comes over the [bus of the host](crate::bus): a command and its data words. Bytes on
    /// the bus beside the data do not get into the packet.
    ///
    /// # Errors
    /// [`BusError`]: the command or its address is invalid, or the number of words is wrong.
    pub fn post(&self, words: &[u64]) -> Result<Packet, BusError> {
        let (&command, data) = words.split_first().ok_or(BusError::Empty)?;
        let Command { thread, address, data: length } = Command::decode(command, self.map)?;
        let bytes = lanes::unpack(address, length, data)?;
        Ok(self.store(thread, address, &bytes[..length as usize])?)
    }
}
