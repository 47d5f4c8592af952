//! A stopped process keeps its memory and its sockets, is given up, and continues later. Bodies lent to it must be
//! unchanged, and it must learn that it was given up.
//!
//! The other process is this test again, with a role in a variable.
#![cfg(target_os = "linux")]

use bytes::Bytes;
use evb_core::NodeId;
use evb_transport::{
    Connect, EndpointOptions, HEAD_BYTES, Message, Received, SendError, Token, Transport,
    conformance::{PATIENCE, changed},
};
use evb_transport_shm::{Shm, ShmOptions};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    env,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const ROLE: &str = "EVB_TEST_KEEPER_OF";
const TOKEN: Token = Token::new([0x77; Token::BYTES]);
const POOL_BYTES: usize = 256 << 10;
/// Bodies that the stopped process holds; their bytes are their numbers.
const HELD: u8 = 8;
const LENDER: NodeId = NodeId(0);
const KEEPER: NodeId = NodeId(1);
const THIRD: NodeId = NodeId(2);

fn bind(node: NodeId) -> Shm {
    let peer_timeout = Duration::from_millis(400);
    let options = ShmOptions {
        pool_bytes: POOL_BYTES,
        ..ShmOptions::new(changed(EndpointOptions::new(3, TOKEN), |endpoint| {
            endpoint.peer_timeout = peer_timeout;
            endpoint.max_body = 100_000;
        }))
    };
    Shm::bind(node, options).unwrap()
}

fn message(value: u8, length: usize) -> Message {
    Message { head: [value; HEAD_BYTES], body: vec![value; length].into() }
}

/// Receives one item.
fn one(node: &mut Shm) -> Received {
    let (start, mut sink) = (Instant::now(), Vec::new());
    while node.receive(1, &mut sink) == 0 {
        node.wait(Duration::from_millis(20));
        assert!(start.elapsed() < PATIENCE, "{} waits in vain", Transport::local(node));
    }
    sink.remove(0)
}

fn body(item: Received) -> Bytes {
    let Received::Message { message, .. } = item else { panic!("a message, not {item:?}") };
    message.body
}

/// The other process: it holds bodies until it hears of a loss, and checks them then.
#[test]
fn keeper() {
    let Ok(address) = env::var(ROLE) else { return };
    let mut node = bind(KEEPER);
    Connect::connect(&mut node, &[(LENDER, address)]).unwrap();
    let held: Vec<_> = (0..HELD).map(|_| body(one(&mut node))).collect();
    node.send(LENDER, message(0, 0)).unwrap();
    node.flush();
    let news = one(&mut node);
    for (value, body) in (0..).zip(&held) {
        assert!(body.len() == 20_000 && body.iter().all(|&byte| byte == value), "body {value} was written to");
    }
    let Received::Lost { peer: LENDER, reason } = news else { panic!("{news:?}") };
    assert_eq!(reason, "it gave this node up");
}

/// The other process; it ends with a failing test.
struct Keeper(Child);

impl Drop for Keeper {
    fn drop(&mut self) {
        // It has ended, unless the test has failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(lender: &mut Shm) -> (Keeper, Shm) {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command.args(["--exact", "keeper", "--nocapture"]).env(ROLE, lender.address());
    let child = command.stdout(Stdio::null()).spawn().unwrap();
    let (mut third, address) = (bind(THIRD), lender.address());
    let joining = thread::spawn(move || Connect::connect(&mut third, &[(LENDER, address)]).map(|()| third).unwrap());
    Connect::connect(lender, &[(KEEPER, "-".into()), (THIRD, "-".into())]).unwrap();
    (Keeper(child), joining.join().unwrap())
}

/// Sends so much that the free part of the pool is overwritten many times.
fn churn(lender: &mut Shm, third: &mut Shm) {
    for number in 0..300 {
        let mut waiting = message(100 + number as u8 % 100, 20_000);
        while let Err(error) = lender.send(THIRD, waiting) {
            let SendError::Full(back) = error else { panic!("{error}") };
            waiting = back;
        }
        lender.flush();
        drop(body(one(third)));
    }
}

#[test]
fn a_continued_process_finds_its_borrowed_bodies_unchanged() {
    let mut lender = bind(LENDER);
    let (mut child, mut third) = start(&mut lender);
    for value in 0..HELD {
        lender.send(KEEPER, message(value, 20_000)).unwrap();
    }
    lender.flush();
    assert_eq!(body(one(&mut lender)), Bytes::new(), "it has them");
    let process = Pid::from_child(&child.0);
    kill_process(process, Signal::STOP).unwrap();
    let (start, mut news) = (Instant::now(), Vec::new());
    while lender.receive(1, &mut news) == 0 {
        lender.wait(Duration::from_millis(5));
        third.wait(Duration::from_millis(5));
        assert!(start.elapsed() < PATIENCE, "the silence is not noticed");
    }
    assert!(matches!(news[0], Received::Lost { peer: KEEPER, .. }), "{news:?}");
    churn(&mut lender, &mut third);
    kill_process(process, Signal::CONT).unwrap();
    assert!(child.0.wait().unwrap().success(), "its bodies are not as they were, or it heard of nothing");
    let (start, buffers) = (Instant::now(), lender.buffers().unwrap());
    while buffers.take(POOL_BYTES).is_none() {
        lender.flush();
        lender.wait(Duration::from_millis(5));
        assert!(start.elapsed() < PATIENCE, "its memory does not come back");
    }
}
