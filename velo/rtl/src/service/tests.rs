//! Cards over the model of the hardware, in a separate service thread.

use super::*;
use crate::fake::Fake;
use evb_velo_device::{Body, CARD_BYTES, Card, DeviceError, Envelope, Peer, Span};
use std::thread::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(60);

/// A service with its own name, and its thread.
fn service(test: &str, nodes: usize) -> (String, JoinHandle<Result<ServiceReport, RtlError>>) {
    let name = format!("{test}-{}", std::process::id());
    let service =
        Service::of(Box::new(Fake::new(nodes)), &name, nodes, &RtlOptions { pages: 1, ..RtlOptions::default() });
    let service = service.expect("a service");
    (name, thread::spawn(move || service.serve(PATIENCE)))
}

fn send(card: &mut Card, peer: Peer, bytes: &[u8]) {
    let (envelope, end) = (Envelope { length: bytes.len() as u64, ..Envelope::default() }, Instant::now() + PATIENCE);
    loop {
        match card.send(peer, &envelope, &[Span::of(bytes)]) {
            Ok(()) => return,
            Err(DeviceError::Full) if Instant::now() < end => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn receive(card: &mut Card) -> Vec<u8> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(incoming) = card.poll() {
            return match incoming.body {
                Body::Line(line) => line[..incoming.envelope.length as usize].to_vec(),
                _ => card.block(),
            };
        }
        thread::yield_now();
    }
    panic!("nothing comes")
}

#[test]
fn messages_of_all_lengths_pass_in_both_directions() {
    let (name, service) = service("lengths", 2);
    let (mut first, mut second) = (Card::open(&name).unwrap(), Card::open(&name).unwrap());
    let mut packets = 0;
    for length in [0, 1, 40, 41, 500, CARD_BYTES] {
        let bytes: Vec<_> = (0..length).map(|byte| byte as u8).collect();
        for _ in 0..2 {
            send(&mut first, second.address().file as usize, &bytes);
            assert_eq!(receive(&mut second), bytes);
            packets += (24 + length as u64).div_ceil(64);
            std::mem::swap(&mut first, &mut second);
        }
    }
    drop((first, second));
    let report = service.join().unwrap().expect("it ends when both have left");
    assert_eq!(report.packets, packets);
    assert!(report.cycles > 20 * packets / 2 && report.nodes.len() == 2, "{report:?}");
}

#[test]
fn a_full_mailbox_holds_up_its_senders_until_its_card_has_left() {
    let (name, service) = service("full", 3);
    let [mut first, second, mut third] = [(); 3].map(|()| Card::open(&name).unwrap());
    // More than a mailbox and the posted words hold.
    let (envelope, mut refused) = (Envelope { length: 1000, ..Envelope::default() }, 0);
    while refused < 1000 {
        match first.send(1, &envelope, &[Span::of(&[7; 1000])]) {
            Ok(()) => refused = 0,
            Err(DeviceError::Full) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        thread::yield_now();
    }
    drop(second);
    send(&mut first, 2, b"past the one that has left");
    assert_eq!(receive(&mut third), b"past the one that has left");
    drop((first, third));
    service.join().unwrap().expect("it ends");
}

#[test]
fn an_unused_service_ends() {
    let name = format!("unused-{}", std::process::id());
    let service = Service::of(Box::new(Fake::new(2)), &name, 2, &RtlOptions::default()).expect("a service");
    let taken = Service::of(Box::new(Fake::new(2)), &name, 2, &RtlOptions::default());
    assert!(matches!(taken, Err(RtlError::Rack(_))));
    let error = service.serve(Duration::from_millis(1)).expect_err("no card is opened");
    assert!(matches!(error, RtlError::NoCard { .. }), "{error}");
    assert!(matches!(Card::open(&name), Err(DeviceError::Unknown(_))));
}
