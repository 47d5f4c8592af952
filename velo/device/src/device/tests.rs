//! Two devices of one process.

use super::*;
use crate::Body;

fn envelope(bytes: &[u8], tag: u64) -> Envelope {
    Envelope { length: bytes.len() as u64, tag, ..Envelope::default() }
}

fn pair() -> (Device, Device, Peer) {
    let (mut a, b) = (Device::open(None).unwrap(), Device::open(None).unwrap());
    let peer = a.connect(b.address()).unwrap();
    (a, b, peer)
}

#[test]
fn lines_arrive_in_order_until_the_mailbox_is_full() {
    let (mut a, mut b, peer) = pair();
    for round in 0..3_u64 {
        for number in 0..at::SLOTS as u64 {
            let bytes = (round + number).to_ne_bytes();
            assert!(a.send(peer, &envelope(&bytes, number), &[Span::of(&bytes)]).unwrap().is_none());
        }
        assert!(matches!(a.send(peer, &envelope(&[], 0), &[]), Err(DeviceError::Full)));
        for number in 0..at::SLOTS as u64 {
            let incoming = b.poll().unwrap();
            let Body::Line(line) = incoming.body else { panic!("{incoming:?}") };
            assert_eq!((incoming.envelope.tag, &line[..8]), (number, &(round + number).to_ne_bytes()[..]));
            assert_eq!(b.sender(incoming.sender), Some(a.address()));
        }
        assert!(b.poll().is_none());
    }
}

/// A sender that tries again at once and a receiver that looks at nothing: the sender gets no further than the ring, and
/// all that it got in arrives.
#[test]
fn a_flood_waits_with_its_sender() {
    for length in [at::LINE_BYTES, at::BLOCK_BYTES, at::BLOCK_BYTES + 1] {
        let ((mut a, mut b, peer), bytes) = (pair(), vec![7; length]);
        let (mut sent, mut notes) = (0, Vec::new());
        let mut flood = |times| {
            for _ in 0..times {
                match a.send(peer, &envelope(&bytes, sent), &[Span::of(&bytes)]) {
                    Ok(note) => notes.extend(note),
                    Err(DeviceError::Full) => continue,
                    Err(error) => panic!("{error}"),
                }
                sent += 1;
            }
            (sent, [&a, &b].map(pages))
        };
        // The blocks are tried in turn, and have all been once by then.
        let before = flood(2 * at::BLOCKS);
        assert_eq!(before.0, at::SLOTS as u64);
        assert_eq!(flood(10_000), before, "memory has grown, or a message too many has a place");
        (0..sent).for_each(|number| assert_eq!(take(&mut b, &bytes), number));
        (0..QUIET_POLLS).for_each(|_| assert!(b.poll().is_none()));
        assert!(notes.iter_mut().all(|note| a.serve(note)) && a.is_idle());
        a.send(peer, &envelope(&[], sent), &[]).unwrap();
        assert_eq!(take(&mut b, &[]), sent);
    }
}

/// Units of memory that the system has found for the segment of a device.
fn pages(device: &Device) -> i64 {
    rustix::fs::fstat(&device._file).unwrap().st_blocks
}

/// The tag of the next message, which has these bytes. One in the memory of its sender stays there.
fn take(b: &mut Device, bytes: &[u8]) -> u64 {
    let Incoming { sender, envelope, body } = b.poll().unwrap();
    match body {
        Body::Line(line) => assert_eq!(&line[..bytes.len()], bytes),
        Body::Block(index) => assert_eq!(b.take_block(sender, index, bytes.len()).unwrap(), bytes),
        Body::Note(index) => b.refuse(sender, index),
    }
    envelope.tag
}

/// A sender that is interrupted between claim and tail sets the tail back, for which others have moved it on.
#[test]
fn a_tail_that_is_set_back_delays_nothing() {
    let (mut a, mut b, peer) = pair();
    for (number, back) in [0, 1, 70, 3, 2 * at::SLOTS as u64].into_iter().cycle().take(1000).enumerate() {
        let tail = b.own.word(at::TAIL_AT);
        tail.store(tail.load(Ordering::Relaxed).saturating_sub(back), Ordering::Relaxed);
        a.send(peer, &envelope(&[], number as u64), &[]).unwrap();
        assert_eq!(b.poll().unwrap().envelope.tag, number as u64);
        (0..QUIET_POLLS).for_each(|_| assert!(b.poll().is_none()));
    }
}

#[test]
fn blocks_are_free_again_when_they_are_read() {
    let (mut a, mut b, peer) = pair();
    let bytes: Vec<u8> = (0..5000_u32).map(|byte| byte as u8).collect();
    for _ in 0..1000 {
        a.send(peer, &envelope(&bytes, 0), &[Span::of(&bytes[..100]), Span::of(&bytes[100..])]).unwrap();
        let Incoming { sender, body: Body::Block(index), .. } = b.poll().unwrap() else { panic!("no block") };
        assert_eq!(b.take_block(sender, index, bytes.len()).unwrap(), bytes);
    }
}

#[test]
fn long_messages_are_fetched_or_come_in_blocks() {
    for fetches in [true, false] {
        let (mut a, mut b, peer) = pair();
        b.fetches = fetches;
        let (bytes, mut got) = (vec![7_u8; 100_000], vec![0_u8; 100_000]);
        let mut note = a.send(peer, &envelope(&bytes, 0), &[Span::of(&bytes)]).unwrap().unwrap();
        let room = [Span { address: got.as_mut_ptr() as usize, length: got.len() }];
        let Incoming { sender, body: Body::Note(index), .. } = b.poll().unwrap() else { panic!("no note") };
        let mut done = if b.fetch_note(sender, index, &room).unwrap() { bytes.len() } else { 0 };
        while done < bytes.len() {
            assert!(!a.serve(&mut note));
            done += b.pull(sender, index, &room, done, bytes.len()).unwrap();
        }
        assert!(a.serve(&mut note));
        assert_eq!(bytes, got);
    }
}

#[test]
fn names_are_unique_and_lead_to_a_device() {
    let name = format!("test-{}", std::process::id());
    let b = Device::open(Some(&name)).unwrap();
    let mut a = Device::open(None).unwrap();
    assert!(Device::open(Some(&name)).is_err() && Device::open(Some("a/b")).is_err());
    let peer = a.find(&name).unwrap();
    assert_eq!(a.targets[peer].address, b.address());
    drop(b);
    assert!(matches!(a.find(&name), Err(DeviceError::Unknown(_))));
}

#[test]
fn memory_is_reached_only_as_it_was_lent() {
    let (a, b, peer) = pair();
    let (mut lent, own) = ([0_u8; 64], [5_u8; 8]);
    let grant = Grant { key: 9, address: lent.as_mut_ptr() as u64, length: 64, rights: 2 };
    assert!(b.lend(grant) && !b.lend(grant));
    a.remote(peer, true, &[Span::of(&own)], 9, 56, false).unwrap();
    assert_eq!((lent[55], lent[56]), (0, 5));
    assert!(a.remote(peer, true, &[Span::of(&own)], 9, 57, false).is_err());
    assert!(a.remote(peer, false, &[Span::of(&own)], 9, 0, false).is_err());
    b.take_back(9);
    assert!(a.remote(peer, true, &[Span::of(&own)], 9, 0, false).is_err());
}

#[test]
fn many_senders_share_a_mailbox() {
    const EACH: u64 = 20_000;
    let mut b = Device::open(None).unwrap();
    let address = b.address();
    let send = move |_| {
        let mut a = Device::open(None).unwrap();
        let peer = a.connect(address).unwrap();
        for number in 0..EACH {
            while a.send(peer, &envelope(&[], number), &[]).is_err() {
                std::thread::yield_now();
            }
        }
        a
    };
    std::thread::scope(|scope| {
        let senders = [0, 1, 2].map(|index| scope.spawn(move || send(index)));
        let mut next = [0; 3];
        while next.iter().sum::<u64>() < 3 * EACH {
            match b.poll() {
                Some(incoming) => {
                    assert_eq!(incoming.envelope.tag, next[incoming.sender as usize]);
                    next[incoming.sender as usize] += 1;
                }
                None => drop(b.wait(Duration::from_millis(1))),
            }
        }
        let _ends = senders.map(|sender| sender.join().unwrap());
    });
}
