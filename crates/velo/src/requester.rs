//! The sending side: a store becomes a packet, and nothing is kept.

use crate::{
    AddressMap, Endpoint, Header, HeaderError, LINE_BYTES, Packet,
    bus::{BusError, Command},
    lanes,
};

/// The requester of one node. All that it knows is the map and the node it is in; which thread stores, the mapping tells.
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

    /// The packet of a store of 1 to 64 B that `thread` made to `address`, counted from the base of the BAR. It is a
    /// fragment when the write-combining buffer was flushed before the message was complete.
    ///
    /// # Errors
    /// [`HeaderError`] if the address means nothing, or the data are empty or end behind their message.
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

    /// The packet of a store as it comes over the [bus of the host](crate::bus): a command and its data words. What the bus
    /// has beside the data does not come into the packet.
    ///
    /// # Errors
    /// [`BusError`]: the command or its address mean nothing, or have another number of words.
    pub fn post(&self, words: &[u64]) -> Result<Packet, BusError> {
        let (&command, data) = words.split_first().ok_or(BusError::Empty)?;
        let Command { thread, address, data: length } = Command::decode(command, self.map)?;
        let bytes = lanes::unpack(address, length, data)?;
        Ok(self.store(thread, address, &bytes[..length as usize])?)
    }
}
