//! The frame reader on arbitrary bytes, for fuzzing and for the committed corpus.

use super::{frame::FrameError, reader::FrameReader};
use evb_transport::{ChunkPool, Message};

/// Longest body that [`fuzz_frames`] takes, in bytes; larger than the bodies that have rooms.
const MAX_BODY: usize = 1 << 17;

/// Reads `data` as the frames of a connection, once in one piece and once in pieces whose lengths come from its own
/// bytes. Returns the number of messages.
///
/// # Panics
/// If both results differ: that is the fault which a fuzzer looks for.
pub fn fuzz_frames(data: &[u8]) -> usize {
    let whole = read_all(data, std::iter::repeat(usize::MAX));
    let pieces = data.iter().map(|&byte| 1 + usize::from(byte) * 3).chain(std::iter::repeat(1 << 12));
    let split = read_all(data, pieces);
    assert_eq!(whole, split, "the pieces in which bytes come must not matter");
    whole.0.len()
}

fn read_all(mut data: &[u8], mut pieces: impl Iterator<Item = usize>) -> (Vec<Message>, Option<FrameError>, bool) {
    let (mut reader, mut pool, mut messages) = (FrameReader::new(MAX_BODY), ChunkPool::default(), Vec::new());
    loop {
        match reader.next(&mut pool) {
            Ok(Some(message)) => messages.push(message),
            Err(error) => return (messages, Some(error), reader.ended()),
            Ok(None) if data.is_empty() => return (messages, None, reader.ended()),
            Ok(None) => {
                let piece = pieces.next().unwrap_or(usize::MAX);
                let read = |room: &mut [u8]| {
                    let count = room.len().min(piece).min(data.len());
                    room[..count].copy_from_slice(&data[..count]);
                    data = &data[count..];
                    Ok(count)
                };
                reader.fill(&mut pool, read).expect("a slice does not fail");
            }
        }
    }
}
