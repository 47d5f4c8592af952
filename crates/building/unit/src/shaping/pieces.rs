//! Pieces of fragments that have bytes.
//!
//! A packet of several fragments travels as its fragments, one after another: TCP has no packets, and a process has no
//! wire. Grouping then holds fragments back until they are sent together.

use super::ShapedPart;
use bytes::{Bytes, BytesMut};
use evb_core::NodeId;
use evb_protocol::{Config, Fragment, Message, Piece, wire::HEAD_BYTES};

/// The message for a part of a message: the message itself if the part is all of it, else a piece of its fragment.
/// Returns `None` for all but the last part of a message without a payload: it travels with the last part.
pub fn cut(part: ShapedPart<Message<Bytes>>) -> Option<Message<Bytes>> {
    let ShapedPart { item, offset, bytes, last } = part;
    match item {
        Message::Fragment(fragment) if fragment.length > 0 && (offset > 0 || !last) => {
            let in_payload = |place: u64| place.saturating_sub(HEAD_BYTES as u64) as usize;
            let (from, to) = (in_payload(offset), in_payload(offset + bytes));
            let payload = fragment.payload.slice(from..to);
            let of = Fragment { payload, ..fragment };
            // The first bytes of a fragment are those of its head, which every piece has.
            let piece = Piece { offset: from as u32, bytes: (to - from) as u32, of };
            (from < to).then(|| Message::Piece(Box::new(piece)))
        }
        whole => last.then_some(whole),
    }
}

/// The fragments of which a builder has pieces. A readout unit sends one fragment to a builder after the other, so
/// there is at most one for each readout unit.
pub struct Assembler {
    first_unit: NodeId,
    most: u32,
    partial: Vec<Option<Partial>>,
}

struct Partial {
    fragment: Fragment<Bytes>,
    bytes: BytesMut,
}

impl Assembler {
    /// An assembler for the fragments of a configuration.
    pub fn new(config: &Config) -> Self {
        Self {
            first_unit: config.readout_nodes().first,
            most: u32::try_from(config.max_fragment.0).unwrap_or(u32::MAX),
            partial: (0..config.readout_units).map(|_| None).collect(),
        }
    }

    /// Takes a piece; returns the fragment that is whole with it. A piece that does not follow the one before is
    /// dropped, and so is the fragment: its builder asks for it.
    pub fn add(&mut self, from: NodeId, piece: Piece<Bytes>) -> Option<Fragment<Bytes>> {
        let Piece { of: fragment, offset, .. } = piece;
        let slot = self.partial.get_mut(usize::from(from.0.checked_sub(self.first_unit.0)?))?;
        if offset == 0 {
            let bytes = BytesMut::with_capacity(fragment.length.min(self.most) as usize);
            *slot = Some(Partial { bytes, fragment: Fragment { payload: Bytes::new(), ..fragment.clone() } });
        }
        let partial = slot.as_mut()?;
        let follows = partial.bytes.len() == offset as usize && is_same(&partial.fragment, &fragment);
        if !follows || fragment.length > self.most {
            *slot = None;
            return None;
        }
        partial.bytes.extend_from_slice(&fragment.payload);
        if partial.bytes.len() < fragment.length as usize {
            return None;
        }
        let Partial { fragment, bytes } = slot.take()?;
        Some(Fragment { payload: bytes.freeze(), ..fragment })
    }
}

fn is_same(one: &Fragment<Bytes>, other: &Fragment<Bytes>) -> bool {
    (one.event, one.source, one.length, one.checksum) == (other.event, other.source, other.length, other.checksum)
}
