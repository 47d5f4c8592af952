//! Control messages between nodes: their identity and their progress.

use evb_core::NodeId;
use evb_transport::{Refusal, Token};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// Most bytes of a control message.
pub(crate) const CONTROL_BYTES: usize = 128;

const MAGIC: [u8; 8] = *b"evb-ofi\0";
const VERSION: u16 = 4;
const PROOF_BYTES: usize = 32;
const SAID_BYTES: usize = 60;
const HELLO_BYTES: usize = SAID_BYTES + PROOF_BYTES;
/// Label of the proof: the token is the key of nothing else with it.
const LABEL: &[u8] = b"evb ofi hello 4";
const STATUS_BYTES: usize = 17;
const NOTE_BYTES: usize = 32;
/// Most notes about rooms in one message.
pub(crate) const NOTES: usize = CONTROL_BYTES / NOTE_BYTES;

/// Parameters that are equal on all nodes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) nodes: u16,
    /// Messages that may be under way between two nodes, in one direction.
    pub(crate) credits: u16,
    pub(crate) frame_bytes: u32,
    /// Longest message; the highest bit tells layers from transports.
    pub(crate) max_bytes: u64,
    /// True if long messages are written into the receiver's memory, and false if they are sent by tag.
    pub(crate) writes: bool,
}

impl Terms {
    /// The bit in `max_bytes` that marks a layer.
    pub(crate) const LAYER: u64 = 1 << 63;
}

/// The first message to a peer, or the answer that refuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) to: NodeId,
    pub(crate) terms: Terms,
    /// The key for the tags of the peer.
    pub(crate) key: u64,
    /// The number that the sender has drawn for this peer, never 0.
    pub(crate) nonce: u64,
    /// The number of the peer, if the sender has heard it, and 0 if not. It shows that the hello is not a recorded one.
    pub(crate) echo: u64,
    pub(crate) refusal: Option<Refusal>,
}

impl Hello {
    /// Writes the message to the start of `room` and returns its length. It has a proof that its sender has the token, not
    /// the token, and a refusal has not even that.
    pub(crate) fn encode(&self, token: &Token, room: &mut [u8]) -> usize {
        let refusal = self.refusal.map_or(0, Refusal::code);
        let Terms { nodes, credits, frame_bytes, max_bytes, writes } = self.terms;
        let mut bytes = MAGIC.to_vec();
        [VERSION, refusal, self.to.0, nodes, credits, u16::from(writes)]
            .iter()
            .for_each(|word| bytes.extend(word.to_le_bytes()));
        let words = [u64::from(frame_bytes), max_bytes, self.key, self.nonce, self.echo];
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        let proof: [u8; PROOF_BYTES] = match self.refusal {
            None => code(token, &bytes).finalize().into_bytes().into(),
            Some(_) => [0; PROOF_BYTES],
        };
        bytes.extend(proof);
        room[..bytes.len()].copy_from_slice(&bytes);
        bytes.len()
    }

    /// Reads the message. The error is `Some` if the sender is to be refused, and `None` if the message gets no answer.
    pub(crate) fn decode(bytes: &[u8], token: &Token) -> Result<Self, Option<Refusal>> {
        let bytes: &[u8; HELLO_BYTES] = bytes.try_into().map_err(|_| None)?;
        let small = |index: usize| u16::from_le_bytes([bytes[8 + 2 * index], bytes[9 + 2 * index]]);
        let word = |index: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[20 + 8 * index + byte]));
        if bytes[..8] != MAGIC {
            return Err(None);
        }
        if small(0) != VERSION {
            return Err(Some(Refusal::Version));
        }
        let refusal = (small(1) != 0).then(|| Refusal::from_code(small(1)).unwrap_or(Refusal::Limits));
        let (said, proof) = bytes.split_at(SAID_BYTES);
        // Takes the same time for all proofs that are wrong.
        if refusal.is_none() && code(token, said).verify_slice(proof).is_err() {
            return Err(Some(Refusal::Token));
        }
        let (frame_bytes, max_bytes, writes) = (word(0) as u32, word(1), small(5) == 1);
        let terms = Terms { nodes: small(3), credits: small(4), frame_bytes, max_bytes, writes };
        Ok(Self { to: NodeId(small(2)), terms, key: word(2), nonce: word(3), echo: word(4), refusal })
    }
}

/// What two nodes know of each other's numbers. A hello that echoes the number of this node was made for it now; any other
/// may be a recorded one, and is only answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acquaintance {
    /// The number of this node for the peer.
    pub(crate) nonce: u64,
    /// The number of the peer that is to be echoed, or was.
    theirs: u64,
    is_answered: bool,
    is_proven: bool,
}

impl Acquaintance {
    /// With a random number for a new peer.
    pub(crate) const fn new(random: u64) -> Self {
        Self { nonce: random | 1, theirs: 0, is_answered: true, is_proven: false }
    }

    /// Takes the numbers of a hello. Returns true if it proves the peer, which it does once.
    pub(crate) fn hear(&mut self, hello: &Hello) -> bool {
        if self.is_proven {
            return false;
        }
        (self.is_answered, self.theirs) = (self.is_answered && self.theirs == hello.nonce, hello.nonce);
        self.is_proven = hello.echo == self.nonce;
        self.is_proven
    }

    /// Returns true if this hello is of the peer that has proved itself.
    pub(crate) const fn is_of_proven(&self, hello: &Hello) -> bool {
        self.is_proven && hello.nonce == self.theirs
    }

    /// The number to echo; 0 if none was heard.
    pub(crate) const fn echo(&self) -> u64 {
        self.theirs
    }

    /// Notes that a hello with the echo was sent.
    pub(crate) const fn answer(&mut self) {
        self.is_answered = true;
    }

    /// Returns true if the peer waits for a hello with its number.
    pub(crate) const fn owes(&self) -> bool {
        !self.is_answered
    }
}

/// The code of what a hello says, by the token.
fn code(token: &Token, said: &[u8]) -> Hmac<Sha256> {
    let mut code = Hmac::new_from_slice(token.to_hex().as_bytes()).expect("a key of any length");
    code.update(LABEL);
    code.update(said);
    code
}

/// The progress of a node with a peer: sent after half of the credits are used, as a sign of life, and as a goodbye.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    /// Number of messages of the peer that were consumed.
    pub(crate) consumed: u64,
    /// Number of messages that were sent.
    pub(crate) sent: u64,
    /// True if no more messages will be sent.
    pub(crate) leaving: bool,
}

impl Status {
    /// Writes the message to the start of `room` and returns its length.
    pub(crate) fn encode(&self, room: &mut [u8]) -> usize {
        room[..8].copy_from_slice(&self.consumed.to_le_bytes());
        room[8..16].copy_from_slice(&self.sent.to_le_bytes());
        room[16] = u8::from(self.leaving);
        STATUS_BYTES
    }

    /// Reads the message; `None` if it is none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; STATUS_BYTES] = bytes.try_into().ok()?;
        let word = |index: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * index + byte]));
        Some(Self { consumed: word(0), sent: word(1), leaving: bytes[16] == 1 })
    }
}

/// A room for a long message to the sender of this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoomOffer {
    /// The number of the room.
    pub(crate) room: u32,
    /// Its length; 0 for a refusal.
    pub(crate) bytes: u64,
    /// Where to write to, if long messages are written.
    pub(crate) address: u64,
    pub(crate) key: u64,
    /// True for the answer to a question, and false for a room in place of one that was used.
    pub(crate) answers: bool,
}

/// The question for a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoomRequest {
    /// The least length of the room.
    pub(crate) bytes: u64,
    /// The room that is given back for it.
    pub(crate) back: Option<u32>,
}

/// Something about rooms. A message has one or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoomNote {
    RoomOffer(RoomOffer),
    RoomRequest(RoomRequest),
}

impl RoomNote {
    /// Writes at most [`NOTES`] notes into one message and returns its length.
    pub(crate) fn encode_all(notes: &[Self], room: &mut [u8]) -> usize {
        let parts = room[..CONTROL_BYTES].chunks_exact_mut(NOTE_BYTES);
        NOTE_BYTES * parts.zip(notes).map(|(part, note)| note.encode(part)).count()
    }

    /// Reads a message; `None` if it is none.
    pub(crate) fn decode_all(bytes: &[u8]) -> Option<Vec<Self>> {
        let notes = bytes.chunks(NOTE_BYTES).map(|part| Self::decode(part.try_into().ok()?));
        notes.collect::<Option<Vec<_>>>().filter(|notes| !notes.is_empty())
    }

    /// The first byte has the purpose (1 offer, 2 question), the second one a yes or no.
    fn encode(&self, room: &mut [u8]) {
        let (purpose, flag, number, words) = match *self {
            Self::RoomOffer(RoomOffer { room, bytes, address, key, answers }) => {
                (1, answers, room, [bytes, address, key])
            }
            Self::RoomRequest(RoomRequest { bytes, back }) => (2, back.is_some(), back.unwrap_or(0), [bytes, 0, 0]),
        };
        room[..4].copy_from_slice(&[purpose, u8::from(flag), 0, 0]);
        room[4..8].copy_from_slice(&number.to_le_bytes());
        for (part, word) in room[8..].chunks_exact_mut(8).zip(words) {
            part.copy_from_slice(&word.to_le_bytes());
        }
    }

    fn decode(bytes: &[u8; NOTE_BYTES]) -> Option<Self> {
        let word = |start: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[start + byte]));
        let (flag, number) = (bytes[1] == 1, u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]));
        let (bytes, purpose) = (word(8), bytes[0]);
        match purpose {
            1 => Some(Self::RoomOffer(RoomOffer {
                room: number,
                bytes,
                address: word(16),
                key: word(24),
                answers: flag,
            })),
            2 => Some(Self::RoomRequest(RoomRequest { bytes, back: flag.then_some(number) })),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = Token::new([9; Token::BYTES]);
    const TERMS: Terms = Terms { nodes: 5, credits: 64, frame_bytes: 8192, max_bytes: 1 << 63 | 77, writes: true };
    const HELLO: Hello = Hello { to: NodeId(3), terms: TERMS, key: 0x1234_5678_9abc, nonce: 5, echo: 7, refusal: None };

    fn encoded(hello: Hello) -> Vec<u8> {
        let mut room = [0; CONTROL_BYTES];
        let length = hello.encode(&TOKEN, &mut room);
        room[..length].to_vec()
    }

    #[test]
    fn a_hello_comes_back_and_a_changed_one_does_not() {
        let bytes = encoded(HELLO);
        assert_eq!(Hello::decode(&bytes, &TOKEN), Ok(HELLO));
        assert!(!bytes.windows(4).any(|part| part == [9; 4]), "the token is not shown");
        for index in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[index] ^= 0x40;
            assert_ne!(Hello::decode(&wrong, &TOKEN), Ok(HELLO), "byte {index}");
        }
        assert_eq!(Hello::decode(&bytes[1..], &TOKEN), Err(None));
        assert_eq!(Hello::decode(&bytes, &Token::new([8; Token::BYTES])), Err(Some(Refusal::Token)));
    }

    #[test]
    fn only_a_hello_that_echoes_the_own_number_proves_a_peer() {
        let [mut first, mut second] = [10, 20].map(Acquaintance::new);
        let hello = |of: &Acquaintance| Hello { nonce: of.nonce, echo: of.echo(), ..HELLO };
        let (old, recorded) = (Acquaintance::new(30), Hello { nonce: 31, echo: 41, ..HELLO });
        assert!(!first.hear(&recorded), "a recorded hello echoes what was drawn for another run");
        assert!(first.owes() && hello(&first).echo == old.nonce, "it is answered, which proves nothing");
        first.answer();
        assert!(!second.hear(&hello(&first)), "the answer to the recorded one");
        assert!(first.hear(&Hello { echo: first.nonce, ..hello(&second) }));
        assert!(first.owes());
        assert!(second.hear(&hello(&first)));
        assert!(!second.hear(&hello(&first)) && second.is_of_proven(&hello(&first)), "once");
        assert!(!second.is_of_proven(&recorded));
    }

    #[test]
    fn refusals_come_back_without_the_token() {
        for refusal in [Refusal::Version, Refusal::Token, Refusal::Node, Refusal::Limits] {
            let bytes = encoded(Hello { refusal: Some(refusal), ..HELLO });
            let read = Hello::decode(&bytes, &Token::new([1; Token::BYTES])).unwrap();
            assert_eq!(read.refusal, Some(refusal));
            assert_eq!(bytes[SAID_BYTES..], [0; PROOF_BYTES]);
        }
    }

    #[test]
    fn messages_about_rooms_come_back() {
        let offer = RoomOffer { room: 7, bytes: 1 << 40, address: u64::MAX, key: 3, answers: true };
        let notes = [
            RoomNote::RoomOffer(offer),
            RoomNote::RoomOffer(RoomOffer { answers: false, bytes: 0, ..offer }),
            RoomNote::RoomRequest(RoomRequest { bytes: 5, back: Some(0) }),
            RoomNote::RoomRequest(RoomRequest { bytes: 1 << 50, back: None }),
        ];
        let mut room = [0xff; CONTROL_BYTES + 1];
        for count in 1..=notes.len() {
            let length = RoomNote::encode_all(&notes[..count], &mut room);
            assert_eq!(RoomNote::decode_all(&room[..length]).as_deref(), Some(&notes[..count]));
            assert_eq!(
                (RoomNote::decode_all(&room[..length - 1]), RoomNote::decode_all(&room[..length + 1])),
                (None, None)
            );
        }
        room[0] = 3;
        assert_eq!((RoomNote::decode_all(&[]), RoomNote::decode_all(&room)), (None, None));
    }

    #[test]
    fn a_status_comes_back() {
        let (status, mut room) = (Status { consumed: 5, sent: 1 << 40, leaving: true }, [0; CONTROL_BYTES]);
        let length = status.encode(&mut room);
        assert_eq!(Status::decode(&room[..length]), Some(status));
        assert_eq!(Status::decode(&room[..length - 1]), None);
    }
}
