//! The trailer of an event: what version 2 adds. It follows the payloads, so that headers and payloads stay where readers
//! of version 1 expect them.

use super::{put_u32, put_u64, u32_at, u64_at};
use crate::{ApartReason, EventInfo, checksum};
use evb_core::{EventId, Mark};

pub(crate) const TRAILER_MAGIC: [u8; 4] = *b"\xE5EXT";
/// Bytes of a trailer without its identities.
const START_BYTES: usize = 24;
const IDENTITY_BYTES: usize = 16;

/// Flags of a fragment.
const HAS_COUNTER: u8 = 1;
const HAS_MARK: u8 = 2;

/// Bytes of the trailer of an event with this number of fragments.
pub(crate) const fn trailer_bytes(fragments: usize) -> usize {
    START_BYTES + fragments * IDENTITY_BYTES
}

/// Appends a trailer. `head_checksum` is that of the event's head: the trailer matches this event only.
pub(crate) fn encode_trailer(
    event: EventInfo,
    head_checksum: u32,
    fragments: impl Iterator<Item = FragmentIdentity>,
    out: &mut Vec<u8>,
) {
    let at = out.len();
    let mut start = [0; START_BYTES];
    start[..4].copy_from_slice(&TRAILER_MAGIC);
    put_u64(&mut start, 8, event.triggered.unwrap_or(0));
    put_u64(&mut start, 16, event.source_time.unwrap_or(0));
    out.extend_from_slice(&start);
    for identity in fragments {
        out.extend_from_slice(&identity.encode());
    }
    let sum = trailer_checksum(&out[at..], head_checksum);
    put_u32(&mut out[at..], 4, sum);
}

/// The times and identities in a whole trailer; `None` if the magic or the checksum is wrong.
pub(crate) fn decode_trailer(
    id: EventId,
    head_checksum: u32,
    bytes: &[u8],
) -> Option<(EventInfo, impl Iterator<Item = FragmentIdentity>)> {
    if bytes[..4] != TRAILER_MAGIC || u32_at(bytes, 4) != trailer_checksum(bytes, head_checksum) {
        return None;
    }
    let time = |at| Some(u64_at(bytes, at)).filter(|&time| time > 0);
    let event = EventInfo { id, triggered: time(8), source_time: time(16) };
    Some((event, bytes[START_BYTES..].chunks_exact(IDENTITY_BYTES).map(FragmentIdentity::decode)))
}

/// The checksum of everything after the checksum itself, combined with that of the head.
fn trailer_checksum(trailer: &[u8], head_checksum: u32) -> u32 {
    checksum(&trailer[8..]) ^ head_checksum
}

/// What is known of a fragment beside its headers. The default is a fragment of version 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FragmentIdentity {
    pub(crate) counter: Option<u64>,
    pub(crate) mark: Option<Mark>,
    pub(crate) apart: Option<ApartReason>,
}

impl FragmentIdentity {
    fn encode(self) -> [u8; IDENTITY_BYTES] {
        let mut bytes = [0; IDENTITY_BYTES];
        put_u64(&mut bytes, 0, self.counter.unwrap_or(0));
        put_u32(&mut bytes, 8, self.mark.map_or(0, Mark::value));
        bytes[12] = identity_flags(self.counter, self.mark);
        bytes[13] = self.apart.map_or(0, |reason| reason as u8);
        bytes
    }

    fn decode(bytes: &[u8]) -> Self {
        let has = |flag: u8| bytes[12] & flag != 0;
        Self {
            counter: has(HAS_COUNTER).then(|| u64_at(bytes, 0)),
            mark: has(HAS_MARK).then(|| Mark::new(u32_at(bytes, 8))),
            apart: ApartReason::from_byte(bytes[13]),
        }
    }
}

/// The flags of a fragment for counter and mark.
pub(crate) fn identity_flags(counter: Option<u64>, mark: Option<Mark>) -> u8 {
    (if counter.is_some() { HAS_COUNTER } else { 0 }) | if mark.is_some() { HAS_MARK } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailer_is_valid_for_its_own_event_only() {
        let (event, identity) = (EventId(1).into(), FragmentIdentity { counter: Some(0), ..Default::default() });
        let mut bytes = Vec::new();
        encode_trailer(event, 7, [identity; 2].into_iter(), &mut bytes);
        assert_eq!(bytes.len(), trailer_bytes(2));
        let decoded = decode_trailer(event.id, 7, &bytes).map(|(event, identities)| (event, identities.collect()));
        assert_eq!(decoded, Some((event, vec![identity; 2])));
        assert!(decode_trailer(event.id, 8, &bytes).is_none());
    }
}
