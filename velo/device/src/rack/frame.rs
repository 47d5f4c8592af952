//! Messages of any length in lines of 64 B: an envelope of three words, and then the bytes.
//!
//! | word | content |
//! |---|---|
//! | 0 | length of the message, and the flags in its upper half |
//! | 1 | tag |
//! | 2 | data |

use crate::{BLOCK_BYTES, Envelope, LINE_BYTES, Span, fetch};

/// Bytes of an envelope.
pub(crate) const HEAD_BYTES: usize = 24;

/// Longest message in bytes.
pub const CARD_BYTES: usize = BLOCK_BYTES;

/// A message as the bytes that are cut into lines. It has no more than [`CARD_BYTES`].
pub(crate) fn encode(envelope: &Envelope, spans: &[Span]) -> Vec<u8> {
    let mut bytes = vec![0; HEAD_BYTES + envelope.length as usize];
    let first = envelope.length | u64::from(envelope.flags) << 32;
    for (place, word) in bytes.chunks_exact_mut(8).zip([first, envelope.tag, envelope.data]) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    fetch::copy_in(spans, 0, &mut bytes[HEAD_BYTES..]);
    bytes
}

/// Words of the bus for this many bytes: a command and the data of each line.
pub(crate) const fn bus_words(bytes: usize) -> usize {
    bytes.div_ceil(LINE_BYTES) + bytes.div_ceil(8)
}

/// A message whose first lines have arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Begun(Vec<u8>);

/// What a line does to a message.
#[derive(Debug)]
pub(crate) enum Step {
    /// More lines follow.
    More,
    /// The message is complete.
    Complete(Envelope, Vec<u8>),
    /// The bytes are those of no message.
    Broken,
}

impl Begun {
    /// Takes the next line of a sender.
    pub(crate) fn take(&mut self, line: &[u8]) -> Step {
        self.0.extend_from_slice(line);
        let Some(envelope) = decode(&self.0) else { return Step::Broken };
        let (length, has) = (envelope.length, (self.0.len() - HEAD_BYTES) as u64);
        if length > CARD_BYTES as u64 || has > length {
            return Step::Broken;
        }
        if has < length {
            return Step::More;
        }
        let mut bytes = std::mem::take(&mut self.0);
        bytes.drain(..HEAD_BYTES);
        Step::Complete(envelope, bytes)
    }
}

/// The envelope at the beginning of these bytes: a sender puts all of it into its first line.
fn decode(bytes: &[u8]) -> Option<Envelope> {
    let mut words =
        bytes.get(..HEAD_BYTES)?.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 B")));
    let [first, tag, data] = [(); 3].map(|()| words.next().expect("three words"));
    Some(Envelope { length: first & u64::from(u32::MAX), tag, data, flags: (first >> 32) as u16 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(length: usize) -> (Envelope, Vec<u8>, Vec<u8>) {
        let bytes: Vec<_> = (0..length).map(|byte| byte as u8 ^ 0x5a).collect();
        let envelope = Envelope { length: length as u64, tag: 7, data: 1 << 60, flags: 0x8001 };
        let all = encode(&envelope, &[Span::of(&bytes[..length / 3]), Span::of(&bytes[length / 3..])]);
        (envelope, bytes, all)
    }

    #[test]
    fn messages_survive_the_cut() {
        for length in [0, 1, 8, 40, 41, 104, 105, 1000, CARD_BYTES] {
            let ((envelope, bytes, all), mut begun) = (lines(length), Begun::default());
            let words = all.chunks(LINE_BYTES).map(|line| 1 + line.len().div_ceil(8)).sum::<usize>();
            assert_eq!(bus_words(all.len()), words, "{length} B");
            let mut steps: Vec<_> = all.chunks(LINE_BYTES).map(|line| begun.take(line)).collect();
            let Some(Step::Complete(got, content)) = steps.pop() else { panic!("{length} B are not complete") };
            assert_eq!((got, content), (envelope, bytes));
            assert!(steps.iter().all(|step| matches!(step, Step::More)), "{length} B are complete too early");
        }
    }

    #[test]
    fn lines_of_no_message_are_found() {
        let (_, _, all) = lines(100);
        let is_broken = |line: &[u8]| matches!(Begun::default().take(line), Step::Broken);
        assert!(is_broken(&all[..HEAD_BYTES - 1]), "no whole envelope");
        assert!(is_broken(&[&all[..], &[1]].concat()), "longer than it says");
        let long = encode(&Envelope { length: 1 + CARD_BYTES as u64, ..Envelope::default() }, &[]);
        assert!(is_broken(&long[..LINE_BYTES]), "longer than any message");
    }
}
