//! The handshake and its records against everybody who has no token.

use super::{
    acceptor::{MOMENT, MOST_ACCEPTED, Stranger},
    *,
};
use evb_transport::Token;
use std::{
    io::{self, ErrorKind, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

const TOKEN: Token = Token::new([1; Token::BYTES]);
const OTHER: Token = Token::new([2; Token::BYTES]);
const PURPOSE: Purpose = Purpose::Control;

/// Both sides of a session: dialer, acceptor.
fn pair() -> (Session, Session) {
    let (dialer, hello) = Dialer::new(&TOKEN, PURPOSE).unwrap();
    let (acceptor, answer) = accept(&TOKEN, PURPOSE, &hello).unwrap();
    (dialer.finish(&answer).unwrap(), acceptor)
}

fn sealed(sealer: &mut Sealer, plain: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    sealer.seal(plain, &mut wire).unwrap();
    wire
}

fn opened(opener: &mut Opener, mut wire: &[u8]) -> io::Result<Vec<u8>> {
    let (mut all, mut room) = (Vec::new(), [0; 999]);
    loop {
        match opener.read(&mut wire, &mut room)? {
            0 => return Ok(all),
            count => all.extend_from_slice(&room[..count]),
        }
    }
}

#[test]
fn both_sides_read_what_the_other_has_sealed() {
    let (mut dialer, mut acceptor) = pair();
    acceptor.opener.trust();
    let long: Vec<u8> = (0..3 * MOST_PLAIN + 5).map(|index| index as u8).collect();
    for said in [&b"hello"[..], b"", &long] {
        let wire = sealed(&mut dialer.sealer, said);
        assert_eq!(opened(&mut acceptor.opener, &wire).unwrap(), said);
    }
    let wire = sealed(&mut acceptor.sealer, b"welcome");
    assert!(!wire.windows(4).any(|part| part == b"welc"), "nothing is readable on the wire");
    assert_eq!(opened(&mut dialer.opener, &wire).unwrap(), b"welcome");
}

#[test]
fn another_token_and_another_purpose_are_refused_on_both_sides() {
    let (_, hello) = Dialer::new(&OTHER, PURPOSE).unwrap();
    assert_eq!(accept(&TOKEN, PURPOSE, &hello).unwrap_err(), Refusal::Token);
    let (dialer, hello) = Dialer::new(&TOKEN, PURPOSE).unwrap();
    assert_eq!(accept(&TOKEN, Purpose::Tcp, &hello).unwrap_err(), Refusal::Version);
    // An impostor with another token cannot even read the hello; it may answer an own one.
    let (_, foreign) = Dialer::new(&OTHER, PURPOSE).unwrap();
    let (_, answer) = accept(&OTHER, PURPOSE, &foreign).unwrap();
    assert_eq!(dialer.finish(&answer).unwrap_err(), Refusal::Proof);
    let (dialer, _) = Dialer::new(&TOKEN, PURPOSE).unwrap();
    assert_eq!(dialer.finish(&refuse(PURPOSE, Refusal::Token)).unwrap_err(), Refusal::Token);
}

/// The purpose is part of what is proved, not only of what is said.
#[test]
fn a_hello_whose_purpose_was_changed_is_refused() {
    let (_, mut hello) = Dialer::new(&TOKEN, PURPOSE).unwrap();
    hello[6] = Purpose::Tcp as u8;
    assert_eq!(accept(&TOKEN, Purpose::Tcp, &hello).unwrap_err(), Refusal::Token);
}

#[test]
fn every_flipped_bit_of_the_handshake_is_seen() {
    let (_, hello) = Dialer::new(&TOKEN, PURPOSE).unwrap();
    for place in 0..8 * GREETING_BYTES {
        let flip = |mut bytes: Greeting| {
            bytes[place / 8] ^= 1 << (place % 8);
            bytes
        };
        // Curve25519 ignores the highest bit of a key; Noise mixes the bytes of the key into what is proved.
        assert!(accept(&TOKEN, PURPOSE, &flip(hello)).is_err(), "bit {place} of the hello");
        let (dialer, hello) = Dialer::new(&TOKEN, PURPOSE).unwrap();
        let (_, answer) = accept(&TOKEN, PURPOSE, &hello).unwrap();
        assert!(dialer.finish(&flip(answer)).is_err(), "bit {place} of the answer");
    }
}

/// A recorded hello is answered, with a new key, and the recorded first record is none of that session.
#[test]
fn a_recorded_session_cannot_be_replayed() {
    let (dialer, hello) = Dialer::new(&TOKEN, PURPOSE).unwrap();
    let (mut acceptor, answer) = accept(&TOKEN, PURPOSE, &hello).unwrap();
    let mut dialer_session = dialer.finish(&answer).unwrap();
    let first = sealed(&mut dialer_session.sealer, b"first");
    assert_eq!(opened(&mut acceptor.opener, &first).unwrap(), b"first");
    let (mut again, other_answer) = accept(&TOKEN, PURPOSE, &hello).unwrap();
    assert_ne!(answer, other_answer);
    assert_eq!(opened(&mut again.opener, &first).unwrap_err().kind(), ErrorKind::InvalidData);
    // A recorded answer proves nothing to the next dialer.
    let (next, _) = Dialer::new(&TOKEN, PURPOSE).unwrap();
    assert_eq!(next.finish(&answer).unwrap_err(), Refusal::Proof);
}

#[test]
fn records_that_were_changed_repeated_swapped_or_left_out_end_the_session() {
    let three = |sealer: &mut Sealer| [0, 1, 2].map(|number| sealed(sealer, &[number; 40]));
    for place in 0..8 * three(&mut pair().0.sealer)[0].len() {
        let (mut dialer, mut acceptor) = pair();
        let mut wire = three(&mut dialer.sealer).concat();
        wire[place / 8] ^= 1 << (place % 8);
        assert!(opened(&mut acceptor.opener, &wire).is_err(), "bit {place}");
        assert!(acceptor.opener.record(&mut &wire[..]).is_err(), "nothing follows a wrong record");
    }
    for order in [[0, 0, 1], [1, 0, 2], [0, 2, 2]] {
        let (mut dialer, mut acceptor) = pair();
        let records = three(&mut dialer.sealer);
        let wire = order.map(|number| records[number].clone()).concat();
        assert!(opened(&mut acceptor.opener, &wire).is_err(), "{order:?}");
    }
    // What this side has sealed is nothing that the other side has sealed.
    let (mut dialer, _) = pair();
    let own = sealed(&mut dialer.sealer, b"own");
    assert!(opened(&mut dialer.opener, &own).is_err());
}

#[test]
fn a_stream_that_ends_within_a_record_is_cut_off() {
    let (mut dialer, _) = pair();
    let wire = sealed(&mut dialer.sealer, b"said");
    for length in 1..wire.len() {
        let (_, mut acceptor) = pair();
        let error = opened(&mut acceptor.opener, &wire[..length]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{length} bytes");
    }
}

/// Who has proved nothing cannot make this side hold a long record.
#[test]
fn a_first_record_is_short() {
    let (mut dialer, mut acceptor) = pair();
    let wire = sealed(&mut dialer.sealer, &vec![0; MOST_FIRST + 1]);
    assert_eq!(opened(&mut acceptor.opener, &wire).unwrap_err().kind(), ErrorKind::InvalidData);
}

fn entrance() -> (Acceptor, std::net::SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (Acceptor::new(listener, TOKEN, PURPOSE).unwrap(), address)
}

/// Looks until `enough` holds for the results so far.
fn results(entrance: &mut Acceptor, enough: impl Fn(&Acceptor, &[AcceptResult]) -> bool) -> Vec<AcceptResult> {
    let (mut all, end) = (Vec::new(), Instant::now() + Duration::from_secs(20));
    while !enough(entrance, &all) {
        assert!(Instant::now() < end, "{all:?}, {entrance:?}");
        entrance.wait(Duration::from_millis(10));
        all.extend(entrance.look().unwrap());
    }
    all
}

fn dialed(address: std::net::SocketAddr, token: Token) -> thread::JoinHandle<Result<(TcpStream, Session), DialError>> {
    thread::spawn(move || {
        let stream = TcpStream::connect(address).map_err(DialError::Broken)?;
        let session = dial(&stream, &token, PURPOSE, b"who", Duration::from_secs(20))?;
        Ok((stream, session))
    })
}

/// A flood takes a bounded part of the time: few are accepted in one look, and looks have a distance.
#[test]
fn a_flood_comes_in_at_a_pace() {
    let (mut entrance, address) = entrance();
    let flood: Vec<_> = (0..MOST_ACCEPTED + 3).map(|_| TcpStream::connect(address).unwrap()).collect();
    let before = Instant::now();
    entrance.look().unwrap();
    assert_eq!(entrance.strangers.len(), MOST_ACCEPTED);
    entrance.wait(Duration::from_secs(20));
    assert!(before.elapsed() >= MOMENT, "the others knock all the time");
    entrance.look().unwrap();
    assert_eq!(entrance.strangers.len(), flood.len());
}

#[test]
fn who_has_the_token_comes_in_and_others_hear_why_not() {
    let (mut entrance, address) = entrance();
    let (wrong, right) = (dialed(address, OTHER), dialed(address, TOKEN));
    let results = results(&mut entrance, |_, results| results.len() == 2);
    assert!(matches!(wrong.join().unwrap(), Err(DialError::Refused(Refusal::Token))));
    assert!(results.iter().any(|result| matches!(result, AcceptResult::Refused { refusal: Refusal::Token, .. })));
    let arrived = results.into_iter().find_map(|result| match result {
        AcceptResult::Arrived(arrived) => Some(*arrived),
        AcceptResult::Refused { .. } => None,
    });
    let mut arrived = arrived.expect("one has the token");
    assert_eq!(arrived.first, b"who");
    let (mut stream, mut session) = right.join().unwrap().unwrap();
    arrived.sealer.write(&arrived.stream, b"welcome").unwrap();
    assert_eq!(session.opener.record(&mut stream).unwrap().unwrap(), b"welcome");
    assert_eq!((entrance.turned_away(), entrance.is_idle()), (1, true));
}

/// However many are silent, who has the token comes in at once, and the silent ones are closed, the oldest first.
#[test]
fn silent_connections_hold_no_place() {
    let (mut entrance, address) = entrance();
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(address).unwrap());
        assert!(entrance.look().unwrap().is_empty());
    }
    let right = dialed(address, TOKEN);
    let results = results(&mut entrance, |_, results| !results.is_empty());
    assert!(matches!(&results[..], [AcceptResult::Arrived(_)]));
    right.join().unwrap().unwrap();
    assert!(entrance.strangers.len() <= 64 && entrance.turned_away() >= 300 - 64);
    silent[0].set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert!(matches!((&silent[0]).read(&mut [0]), Ok(0) | Err(_)), "the oldest one is closed");
}

/// A recorded hello is refused before it costs a key, and the whole recording has no effect.
#[test]
fn a_recording_of_a_connection_comes_to_nothing() {
    let (mut entrance, address) = entrance();
    let (dialer, hello) = Dialer::new(&TOKEN, PURPOSE).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&hello).unwrap();
    let mut answer = [0; GREETING_BYTES];
    results(&mut entrance, |entrance, _| entrance.strangers.iter().any(Stranger::has_greeted));
    stream.read_exact(&mut answer).unwrap();
    let first = sealed(&mut dialer.finish(&answer).unwrap().sealer, b"who");
    stream.write_all(&first).unwrap();
    assert!(matches!(&results(&mut entrance, |_, results| !results.is_empty())[..], [AcceptResult::Arrived(_)]));
    let mut again = TcpStream::connect(address).unwrap();
    again.write_all(&[&hello[..], &first].concat()).unwrap();
    let results = results(&mut entrance, |_, results| !results.is_empty());
    assert!(matches!(&results[..], [AcceptResult::Refused { refusal: Refusal::Token, .. }]));
}

#[test]
fn garbage_is_closed_without_an_answer() {
    let (mut entrance, address) = entrance();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    results(&mut entrance, |entrance, _| entrance.turned_away() == 1);
    let mut said = Vec::new();
    let _reset = stream.read_to_end(&mut said);
    assert!(said.is_empty());
}

#[test]
fn nothing_of_a_session_is_shown_in_logs() {
    let (dialer, _) = pair();
    let (waiting, _) = Dialer::new(&TOKEN, PURPOSE).unwrap();
    let shown = format!("{dialer:?} {waiting:?} {TOKEN:?}");
    assert!(!shown.contains("01") && shown.contains("Sealer { next: 0, .. }"), "{shown}");
}

/// An impostor that answers in time, but slowly, holds up no other node for longer than its patience.
#[test]
fn an_answer_must_come_in_time_however_slowly_its_bytes_arrive() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut slow, _) = listener.accept().unwrap();
    let drip = thread::spawn(move || {
        for byte in refuse(PURPOSE, Refusal::Token) {
            if slow.write_all(&[byte]).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    });
    let result = dial(&stream, &TOKEN, PURPOSE, b"who", Duration::from_millis(100));
    assert!(matches!(result, Err(DialError::Broken(error)) if error.kind() == ErrorKind::TimedOut));
    drop(stream);
    drip.join().unwrap();
}
