//! The two records that follow the proof of a new connection, without any I/O: who dials, and the acceptor's verdict.
//! `docs/reference/tcp-wire.md` describes the bytes.

use evb_core::NodeId;
use evb_transport::Refusal;
use evb_transport_secure::{SEAL_BYTES, Session};
use std::io;

/// Length of both records in bytes, sealed.
pub(super) const RECORD_BYTES: usize = PLAIN_BYTES + SEAL_BYTES;
const PLAIN_BYTES: usize = 8;
/// What a verdict begins with.
const WELCOME: u16 = 0;
const NOT_EXPECTED: u16 = 1;
const OTHER_ENCRYPTION: u16 = 2;

/// The nodes of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) nodes: u16,
    /// All frames are sealed.
    pub(super) encrypt: bool,
}

/// The dialer's record.
pub(super) fn hello(session: &mut Session, Hello { from, to, nodes, encrypt }: Hello) -> io::Result<Vec<u8>> {
    record(session, [from.0, to.0, nodes, u16::from(encrypt)])
}

/// Reads the dialer's record. The error is none that the dialer could understand: it has not proved anything.
pub(super) fn read_hello(session: &mut Session, record: &[u8]) -> Option<Hello> {
    let [from, to, nodes, encrypt] = fields(session, record)?;
    Some(Hello { from: NodeId(from), to: NodeId(to), nodes, encrypt: encrypt != 0 })
}

/// The acceptor's verdict about a dialer that has the token.
pub(super) fn verdict(session: &mut Session, verdict: Result<(), Refusal>, local: NodeId) -> io::Result<Vec<u8>> {
    let status = match verdict {
        Ok(()) => WELCOME,
        Err(Refusal::Encryption) => OTHER_ENCRYPTION,
        Err(_) => NOT_EXPECTED,
    };
    record(session, [status, local.0, 0, 0])
}

/// Reads the acceptor's verdict.
pub(super) fn read_verdict(session: &mut Session, record: &[u8], peer: NodeId) -> Result<(), Refusal> {
    match fields(session, record) {
        Some([WELCOME, from, ..]) if from == peer.0 => Ok(()),
        Some([OTHER_ENCRYPTION, ..]) => Err(Refusal::Encryption),
        Some(_) => Err(Refusal::Node),
        None => Err(Refusal::Proof),
    }
}

fn record(session: &mut Session, fields: [u16; 4]) -> io::Result<Vec<u8>> {
    let (plain, mut wire) = (fields.map(u16::to_le_bytes).concat(), Vec::with_capacity(RECORD_BYTES));
    session.sealer.seal(&plain, &mut wire)?;
    Ok(wire)
}

fn fields(session: &mut Session, record: &[u8]) -> Option<[u16; 4]> {
    let plain: [u8; PLAIN_BYTES] = session.opener.open(record).ok()??.try_into().ok()?;
    Some(std::array::from_fn(|index| u16::from_le_bytes([plain[2 * index], plain[2 * index + 1]])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_transport::Token;
    use evb_transport_secure::{Dialer, Purpose, accept};

    const HELLO: Hello = Hello { from: NodeId(3), to: NodeId(1), nodes: 5, encrypt: true };

    fn pair() -> [Session; 2] {
        let token = Token::new([9; Token::BYTES]);
        let (dialer, hello) = Dialer::new(&token, Purpose::Tcp).unwrap();
        let (acceptor, answer) = accept(&token, Purpose::Tcp, &hello).unwrap();
        [dialer.finish(&answer).unwrap(), acceptor]
    }

    #[test]
    fn a_hello_comes_back_and_a_changed_or_repeated_one_does_not() {
        let [mut dialer, mut acceptor] = pair();
        let bytes = hello(&mut dialer, HELLO).unwrap();
        assert_eq!(bytes.len(), RECORD_BYTES);
        assert_eq!(read_hello(&mut acceptor, &bytes), Some(HELLO));
        assert_eq!(read_hello(&mut acceptor, &bytes), None, "once");
        for index in 0..RECORD_BYTES {
            let [mut dialer, mut acceptor] = pair();
            let mut wrong = hello(&mut dialer, HELLO).unwrap();
            wrong[index] ^= 0x40;
            assert_eq!(read_hello(&mut acceptor, &wrong), None, "byte {index}");
        }
    }

    #[test]
    fn verdicts_come_back() {
        let (unexpected, unequal) = (Err(Refusal::Node), Err(Refusal::Encryption));
        for (told, peer, expected) in
            [(Ok(()), 1, Ok(())), (Ok(()), 2, unexpected), (unexpected, 1, unexpected), (unequal, 1, unequal)]
        {
            let [mut dialer, mut acceptor] = pair();
            let bytes = verdict(&mut acceptor, told, NodeId(1)).unwrap();
            assert_eq!(read_verdict(&mut dialer, &bytes, NodeId(peer)), expected);
        }
        assert_eq!(read_verdict(&mut pair()[0], &[0; RECORD_BYTES], NodeId(1)), Err(Refusal::Proof));
    }
}
