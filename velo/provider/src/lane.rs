//! The way of an endpoint's messages: a device in shared memory, or a card of simulated hardware.
//!
//! It is an `enum` and not a trait: libfabric's tables need functions of one type, and the way over shared memory pays one
//! comparison for the choice.

use crate::info;
use evb_velo_device::{Address, Card, Device, DeviceError, Envelope, Grant, Incoming, Note, Peer, Span};
use std::sync::Once;

/// The way of messages.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the way over shared memory goes through no other pointer")]
pub(crate) enum Lane {
    /// Shared memory: everything that the provider has.
    Memory(Device),
    /// The hardware: messages of up to [`CARD_BYTES`](evb_velo_device::CARD_BYTES), which are copied when they are sent.
    Hardware(Box<Card>),
}

impl Lane {
    /// The way that the environment asks for.
    pub(crate) fn open() -> Result<Self, DeviceError> {
        match info::hardware() {
            Some(name) => Card::open(name).map(|card| Self::Hardware(Box::new(card))),
            None => Device::open(None).map(Self::Memory),
        }
    }

    pub(crate) fn address(&self) -> Address {
        match self {
            Self::Memory(device) => device.address(),
            Self::Hardware(card) => card.address(),
        }
    }

    pub(crate) fn connect(&mut self, address: Address) -> Result<Peer, DeviceError> {
        match self {
            Self::Memory(device) => device.connect(address),
            Self::Hardware(card) => card.connect(address),
        }
    }

    pub(crate) fn sender(&mut self, number: u16) -> Option<Address> {
        match self {
            Self::Memory(device) => device.sender(number),
            Self::Hardware(card) => card.sender(number),
        }
    }

    #[inline]
    pub(crate) fn send(
        &mut self,
        peer: Peer,
        envelope: &Envelope,
        spans: &[Span],
    ) -> Result<Option<Note>, DeviceError> {
        match self {
            Self::Memory(device) => device.send(peer, envelope, spans),
            Self::Hardware(card) => card.send(peer, envelope, spans).map(|()| None),
        }
    }

    /// Returns true if [`poll_into`](Self::poll_into) may find something.
    #[inline]
    pub(crate) fn may_have_next(&mut self) -> bool {
        match self {
            Self::Memory(device) => device.has_next(),
            Self::Hardware(_) => true,
        }
    }

    /// Puts the next message into `incoming`; false if none has arrived.
    #[inline]
    pub(crate) fn poll_into(&mut self, incoming: &mut Incoming) -> bool {
        match self {
            Self::Memory(device) => device.poll_into(incoming),
            Self::Hardware(card) => card.poll().map(|next| *incoming = next).is_some(),
        }
    }

    pub(crate) fn is_alive(&self, peer: Peer) -> bool {
        match self {
            Self::Memory(device) => device.is_alive(peer),
            Self::Hardware(card) => card.is_alive(peer) && !card.is_lost(),
        }
    }

    /// Returns true if nothing comes any more from anybody.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Memory(_) => false,
            Self::Hardware(card) => card.is_lost(),
        }
    }

    /// Tells the user once that nothing comes any more: MPI says only that a call has failed.
    #[cold]
    pub(crate) fn complain(&self) {
        static ONCE: Once = Once::new();
        let name = info::hardware().unwrap_or_default();
        ONCE.call_once(|| eprintln!("velo: the hardware `{name}` has ended or stalls: no message comes any more"));
    }

    pub(crate) fn take_block(&mut self, sender: u16, index: u16, length: usize) -> Option<Vec<u8>> {
        match self {
            Self::Memory(device) => device.take_block(sender, index, length),
            Self::Hardware(card) => Some(card.block()),
        }
    }

    pub(crate) fn deliver_block(&mut self, sender: u16, index: u16, length: usize, spans: &[Span]) -> bool {
        match self {
            Self::Memory(device) => device.deliver_block(sender, index, length, spans),
            Self::Hardware(card) => {
                evb_velo_device::copy_out(spans, 0, &card.block());
                true
            }
        }
    }

    /// The device in shared memory, which alone has notes and lent memory.
    pub(crate) fn memory(&mut self) -> Option<&mut Device> {
        match self {
            Self::Memory(device) => Some(device),
            Self::Hardware(_) => None,
        }
    }

    /// Lends memory to peers; the hardware lends none.
    pub(crate) fn lend(&mut self, grant: Grant) {
        if let Some(device) = self.memory() {
            device.lend(grant);
        }
    }

    /// Takes lent memory back.
    pub(crate) fn take_back(&mut self, key: u64) {
        if let Some(device) = self.memory() {
            device.take_back(key);
        }
    }
}
