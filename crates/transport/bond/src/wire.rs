//! Heads of the bond's own messages, which have no bodies and go before and between those of the user.

use evb_transport::HEAD_BYTES;

/// What an own message says beside its acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    /// The next messages over this link are pieces.
    Run(Run),
    /// Nothing more; the sender may want an answer over this link at once.
    Ack { asks: bool },
    /// The sender has lost this link.
    Down { link: u8 },
    /// The sender leaves: the end of its links is not a fault.
    Bye,
}

/// Consecutive pieces that follow over one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Number of the first piece; pieces of a pair are numbered from 0 on.
    pub(super) first: u64,
    /// How many there are.
    pub(super) count: u16,
    /// Bytes of the body that they are segments of; 0 if each piece is a message.
    pub(super) whole: u32,
}

/// An own message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: MessageKind,
    /// Pieces that the sender's user has taken, all links together.
    pub(super) taken: u64,
    /// Pieces that came to the sender over this link.
    pub(super) came: u64,
}

const RUN: u8 = 1;
const ACK: u8 = 2;
const DOWN: u8 = 3;
const BYE: u8 = 4;

impl Head {
    pub(super) fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        match self.kind {
            MessageKind::Run(Run { first, count, whole }) => {
                head[0] = RUN;
                head[2..4].copy_from_slice(&count.to_le_bytes());
                head[4..8].copy_from_slice(&whole.to_le_bytes());
                head[8..16].copy_from_slice(&first.to_le_bytes());
            }
            MessageKind::Ack { asks } => (head[0], head[1]) = (ACK, asks.into()),
            MessageKind::Down { link } => (head[0], head[1]) = (DOWN, link),
            MessageKind::Bye => head[0] = BYE,
        }
        head[16..24].copy_from_slice(&self.taken.to_le_bytes());
        head[24..].copy_from_slice(&self.came.to_le_bytes());
        head
    }

    /// The message of a head; `None` if it is none of a bond.
    pub(super) fn decode(head: &[u8; HEAD_BYTES]) -> Option<Self> {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| head[at + index]));
        let kind = match (head[0], head[1]) {
            (RUN, 0) => MessageKind::Run(Run { first: word(8), count: word(2) as u16, whole: word(4) as u32 }),
            (ACK, asks @ 0..=1) => MessageKind::Ack { asks: asks == 1 },
            (DOWN, link) => MessageKind::Down { link },
            (BYE, 0) => MessageKind::Bye,
            _ => return None,
        };
        Some(Self { kind, taken: word(16), came: word(24) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back() {
        let run = Run { first: u64::MAX - 7, count: 300, whole: 1 << 31 };
        for kind in [
            MessageKind::Run(run),
            MessageKind::Ack { asks: true },
            MessageKind::Ack { asks: false },
            MessageKind::Down { link: 3 },
            MessageKind::Bye,
        ] {
            let head = Head { kind, taken: 1 << 40, came: 77 };
            assert_eq!(Head::decode(&head.encode()), Some(head));
        }
        assert_eq!(Head::decode(&[0; HEAD_BYTES]), None);
        assert_eq!(Head::decode(&[9; HEAD_BYTES]), None);
    }
}
