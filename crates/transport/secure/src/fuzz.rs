//! The parsers of the handshake and of records on arbitrary bytes, for fuzzing and for the committed corpus.

use super::{Dialer, GREETING_BYTES, Greeting, MOST_FIRST, Opener, Purpose, Session, accept, may_begin};
use evb_transport::Token;
use std::io;

const TOKEN: Token = Token::new([7; Token::BYTES]);
/// What is sealed before it is harmed; the lengths are those around the limits of records.
const SAID: [usize; 6] = [0, 1, 300, MOST_FIRST, 16, 2];

/// Takes `data` for a hello and for an answer: it was not made with the token, so both are rejected.
///
/// # Panics
/// If one is taken: that is the fault which a fuzzer looks for.
pub fn fuzz_strangers(data: &[u8]) {
    let mut greeting: Greeting = [0; GREETING_BYTES];
    let length = data.len().min(GREETING_BYTES);
    greeting[..length].copy_from_slice(&data[..length]);
    for purpose in [Purpose::Control, Purpose::Launch, Purpose::Tcp, Purpose::Filter] {
        let began = (0..=length).all(|length| may_begin(&greeting[..length], purpose));
        assert!(began || !may_begin(&greeting, purpose), "a beginning must not come back");
        assert!(accept(&TOKEN, purpose, &greeting).is_err(), "a hello without the token");
        let (dialer, _) = Dialer::new(&TOKEN, purpose).expect("random numbers");
        assert!(dialer.finish(&greeting).is_err(), "an answer without the token");
    }
}

/// Changes the records of a session as `data` says, and opens them in one piece and in pieces. Each three bytes of `data`
/// are a place, and what is mixed into it; bytes behind a last zero follow the records.
///
/// Returns the number of bytes that were opened.
///
/// # Panics
/// If anything is opened but the beginning of what was sealed, or the pieces matter: that is the fault which a fuzzer looks
/// for.
pub fn fuzz_opener(data: &[u8]) -> usize {
    let (said, mut wire, openers) = sealed();
    for change in data.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % wire.len();
        wire[place] ^= change[2];
    }
    wire.extend(data.iter().rev().take_while(|&&byte| byte != 0));
    let pieces = data.iter().map(|&byte| 1 + usize::from(byte) * 3).chain(std::iter::repeat(1 << 12));
    let [mut first, mut second] = openers;
    let (whole, split) =
        (open_all(&mut first, &wire, std::iter::repeat(usize::MAX)), open_all(&mut second, &wire, pieces));
    assert_eq!(whole, split, "the pieces in which bytes come must not matter");
    assert!(said.starts_with(&whole.0), "nothing is opened that was not sealed");
    whole.0.len()
}

/// What was sealed, its records, and two openers of the same session.
fn sealed() -> (Vec<u8>, Vec<u8>, [Opener; 2]) {
    let (dialer, hello) = Dialer::new(&TOKEN, Purpose::Control).expect("random numbers");
    let (Session { opener, .. }, answer) = accept(&TOKEN, Purpose::Control, &hello).expect("the token");
    let mut sealer = dialer.finish(&answer).expect("the token").sealer;
    let (mut said, mut wire) = (Vec::new(), Vec::new());
    for (number, length) in SAID.into_iter().enumerate() {
        let part = vec![number as u8; length];
        sealer.seal(&part, &mut wire).expect("few records");
        said.extend(part);
    }
    (said, wire, [opener.again(), opener])
}

fn open_all(opener: &mut Opener, mut wire: &[u8], mut pieces: impl Iterator<Item = usize>) -> (Vec<u8>, bool) {
    let (mut opened, mut room) = (Vec::new(), [0; 512]);
    loop {
        let length = pieces.next().unwrap_or(usize::MAX).min(wire.len());
        let mut piece = Piece { bytes: &wire[..length], is_last: length == wire.len() };
        wire = &wire[length..];
        loop {
            match opener.read(&mut piece, &mut room) {
                Ok(0) => return (opened, true),
                Ok(count) => opened.extend_from_slice(&room[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return (opened, false),
            }
        }
    }
}

/// A piece of a stream, after which more comes or not.
struct Piece<'a> {
    bytes: &'a [u8],
    is_last: bool,
}

impl io::Read for Piece<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() && !self.is_last {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.bytes.read(room)
    }
}
