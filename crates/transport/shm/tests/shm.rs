//! Faults of shared memory only: processes that are killed at any instant, and strangers who look for a way in.
//!
//! The other processes are this test again, with a role in a variable. `EVB_SOAK_SECONDS` makes the killing longer.
#![cfg(target_os = "linux")]

mod support;

use bytes::Bytes;
use evb_core::NodeId;
use evb_transport::{
    Connect, ConnectError, EndpointOptions, HEAD_BYTES, Message, Received, SendError, Token, Transport,
    conformance::{PATIENCE, changed},
};
use evb_transport_shm::{Shm, ShmOptions};
use rustix::fs::{SealFlags, fcntl_get_seals};
use std::{
    env, fs,
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::FileExt,
            net::{SocketAddr, UnixStream},
            process::CommandExt,
        },
    },
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use support::shm_nodes;

const ROLE: &str = "EVB_TEST_ROLE";
const TOKEN: Token = Token::new([0x21; Token::BYTES]);
const SENDERS: u16 = 3;

fn options(nodes: u16) -> ShmOptions {
    ShmOptions {
        ring_bytes: 64 << 10,
        pool_bytes: 256 << 10,
        ..ShmOptions::new(changed(EndpointOptions::new(nodes, TOKEN), |endpoint| endpoint.max_body = 200_000))
    }
}

/// A command that starts this program as another process, in a role of [`role`].
fn play(role: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command.args(["--exact", "role", "--nocapture"]).env(ROLE, role);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The other processes. Without a role there is nothing to do.
#[test]
fn role() {
    let Ok(text) = env::var(ROLE) else { return };
    let words: Vec<_> = text.split(' ').collect();
    match words[..] {
        ["sender", address, node, life] => send_for_ever(address, node.parse().unwrap(), life.parse().unwrap()),
        ["stranger", address, process] => break_in(address, process),
        _ => panic!("no role: {text}"),
    }
}

fn mix(value: u64) -> u64 {
    let value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value ^ value >> 27
}

/// A message whose every byte follows from these numbers. The bodies use all three ways: in the lane, by reference, and
/// in pieces.
fn message(node: u16, life: u64, number: u64) -> Message {
    let key = mix(mix(u64::from(node) << 32 | life) ^ number);
    let length = match key % 16 {
        0..8 => key as usize % 100,
        8..13 => key as usize % 2000,
        13 | 14 => key as usize % 20_000,
        _ => key as usize % 150_000,
    };
    let mut head = [0; HEAD_BYTES];
    for (slot, word) in head.chunks_exact_mut(8).zip([u64::from(node), life, number, length as u64]) {
        slot.copy_from_slice(&word.to_le_bytes());
    }
    let mut body = vec![0; length.next_multiple_of(8)];
    for (index, word) in body.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&key.wrapping_add(index as u64).to_le_bytes());
    }
    body.truncate(length);
    Message { head, body: body.into() }
}

fn send_for_ever(address: &str, node: u16, life: u64) {
    let mut shm = Shm::bind(NodeId(node), options(SENDERS + 1)).unwrap();
    shm.connect(&[(NodeId(0), address.into())]).unwrap();
    for number in 0.. {
        let mut waiting = message(node, life, number);
        loop {
            match shm.send(NodeId(0), waiting) {
                Ok(()) => break,
                Err(SendError::Full(back)) => waiting = back,
                Err(_) => return,
            }
            shm.flush();
            shm.wait(PATIENCE);
            shm.receive(10, &mut Vec::new());
        }
        if mix(number).is_multiple_of(3) {
            shm.flush();
        }
    }
}

/// The receiver of a run whose senders are killed.
struct CrashTest {
    shm: Shm,
    /// Life and next number of each sender.
    senders: Vec<Option<(u64, u64)>>,
    lives: u64,
    deaths: u64,
    messages: u64,
    killers: Vec<thread::JoinHandle<()>>,
    /// Bodies that are held for a while.
    held: Vec<Bytes>,
}

impl CrashTest {
    fn new() -> Self {
        let shm = Shm::bind(
            NodeId(0),
            ShmOptions {
                endpoint: changed(options(SENDERS + 1).endpoint, |endpoint| {
                    endpoint.connect_timeout = Duration::from_millis(500)
                }),
                ..options(SENDERS + 1)
            },
        );
        Self {
            shm: shm.unwrap(),
            senders: vec![None; usize::from(SENDERS) + 1],
            lives: 0,
            deaths: 0,
            messages: 0,
            killers: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Starts a process in the place of a sender, and the thread that kills it.
    fn spawn(&mut self, node: u16) {
        self.lives += 1;
        let life = self.lives;
        let mut child: Child = play(&format!("sender {} {node} {life}", self.shm.address())).spawn().unwrap();
        let age = Duration::from_micros(mix(life) % 120_000);
        self.killers.retain(|killer| !killer.is_finished());
        self.killers.push(thread::spawn(move || {
            thread::sleep(age);
            child.kill().unwrap();
            child.wait().unwrap();
        }));
        match self.shm.connect(&[(NodeId(node), "-".into())]) {
            Ok(()) => self.senders[usize::from(node)] = Some((life, 0)),
            // It was killed before it had joined.
            Err(error) => assert!(matches!(error, ConnectError::Timeout { .. }), "{error}"),
        }
    }

    fn receive(&mut self) {
        let mut sink = Vec::new();
        if self.shm.receive(100, &mut sink) == 0 {
            self.shm.wait(Duration::from_millis(20));
        }
        for item in sink {
            match item {
                Received::Message { from, message: received } => self.verify(from, received),
                Received::Lost { peer, reason } => {
                    assert!(reason.starts_with("its process ended"), "{reason}");
                    self.senders[peer.index()].take().expect("a loss is reported once");
                    self.deaths += 1;
                }
            }
        }
        if self.held.len() > 40 {
            self.held.drain(..30);
        }
    }

    fn verify(&mut self, from: NodeId, received: Message) {
        let (life, number) = self.senders[from.index()].as_mut().expect("nothing comes after the loss");
        let wanted = message(from.0, *life, *number);
        assert_eq!(received.head, wanted.head, "message {number} of life {life} of {from}");
        assert!(received.body == wanted.body, "body of message {number} of life {life} of {from}");
        *number += 1;
        self.messages += 1;
        if received.body.len() > 1000 {
            self.held.push(received.body);
        }
    }
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn named_memory() -> Vec<String> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name.contains("evb")).collect()
}

/// Kills senders at random instants and replaces them. All received messages are whole, in order and unique, and
/// nothing is left of dead senders.
fn fight(duration: Duration) {
    let mut field = CrashTest::new();
    let (files, names, start) = (open_files(), named_memory(), Instant::now());
    while start.elapsed() < duration || field.deaths < 5 {
        for node in 1..=SENDERS {
            if field.senders[usize::from(node)].is_none() {
                field.spawn(node);
            }
        }
        field.receive();
        assert!(start.elapsed() < duration + PATIENCE, "{} deaths only", field.deaths);
    }
    while field.senders.iter().any(Option::is_some) {
        field.receive();
        assert!(start.elapsed() < duration + PATIENCE, "somebody does not die");
    }
    field.killers.drain(..).for_each(|killer| killer.join().unwrap());
    field.held.clear();
    assert_eq!((open_files(), named_memory()), (files, names), "files, and names in /dev/shm");
    println!("{} lives, {} deaths, {} messages", field.lives, field.deaths, field.messages);
    assert!(field.messages > 100);
}

/// Serialises the tests of this file: they share a process, and so its files.
#[test]
fn one_after_the_other() {
    let seconds = env::var("EVB_SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    fight(Duration::from_secs(seconds));
    strangers_find_no_way_in();
    a_wrong_token_is_refused();
}

/// All files of shared memory that a process has open or mapped, as paths that other processes could use.
fn ways_in(process: &str) -> Vec<PathBuf> {
    let list = |folder: &str| fs::read_dir(format!("/proc/{process}/{folder}")).into_iter().flatten().flatten();
    let shared =
        |path: &PathBuf| fs::read_link(path).is_ok_and(|target| target.to_string_lossy().contains("memfd:evb"));
    list("fd").chain(list("map_files")).map(|entry| entry.path()).filter(shared).collect()
}

fn strangers_find_no_way_in() {
    let mut nodes = shm_nodes(2, &options(2));
    let address = nodes[0].address();
    let ways = ways_in("self");
    assert!(ways.iter().any(|path| path.to_string_lossy().contains("/fd/")), "the test looks at nothing: {ways:?}");
    ways.iter().for_each(no_way_in);
    wrong_tokens(&address);
    let process = std::process::id().to_string();
    if rustix::process::geteuid().is_root() {
        let other_user = play(&format!("stranger {address} {process}")).uid(65_534).gid(65_534).status();
        match other_user {
            Ok(status) => assert!(status.success(), "a process of another user found a way in"),
            Err(error) => println!("skipped: another user cannot run this test: {error}"),
        }
    } else {
        println!("skipped: only root can be another user");
    }
    // The run goes on.
    let sent = message(1, 0, 3);
    nodes[1].send(NodeId(0), sent.clone()).unwrap();
    nodes[1].flush();
    let mut sink = Vec::new();
    let start = Instant::now();
    while nodes[0].receive(1, &mut sink) == 0 {
        nodes[0].wait(Duration::from_millis(20));
        assert!(start.elapsed() < PATIENCE);
    }
    assert_eq!(sink, [Received::Message { from: NodeId(1), message: sent }]);
    let start = Instant::now();
    while nodes[0].rejected() == 0 {
        nodes[0].wait(Duration::from_millis(20));
        assert!(start.elapsed() < PATIENCE, "the strangers were not noticed");
    }
}

/// Checks that a file of another process cannot be written, even by the same user.
fn no_way_in(path: &PathBuf) {
    let file: File = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(_) => return,
    };
    let sealed = SealFlags::FUTURE_WRITE | SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW;
    assert!(fcntl_get_seals(&file).unwrap().contains(sealed), "{path:?} takes writable mappings");
    assert!(file.write_at(&[1], 0).is_err(), "{path:?} can be written");
    assert!(file.set_len(0).is_err() && file.set_len(1 << 30).is_err(), "{path:?} can be cut");
}

/// Checks that a run whose nodes are all joined refuses everybody, without a descriptor or an answer.
fn wrong_tokens(address: &str) {
    for words in [b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![0; 64], vec![0xff; 1000]] {
        let mut socket = UnixStream::connect_addr(&SocketAddr::from_abstract_name(address).unwrap()).unwrap();
        let _ = socket.write_all(&words);
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let mut answer = [0; 64];
        assert!(!matches!(socket.read(&mut answer), Ok(count) if count > 0), "an answer to a stranger");
    }
}

/// Tries to join as another user who knows the token.
fn break_in(address: &str, process: &str) {
    let opened = ways_in(process).into_iter().filter(|path| File::open(path).is_ok()).count();
    assert_eq!(opened, 0, "files of another user");
    let mut shm = Shm::bind(
        NodeId(1),
        ShmOptions {
            endpoint: changed(options(2).endpoint, |endpoint| endpoint.connect_timeout = Duration::from_millis(100)),
            ..options(2)
        },
    )
    .unwrap();
    let error = shm.connect(&[(NodeId(0), address.into())]).unwrap_err();
    assert!(error.to_string().contains("another user"), "{error}");
}

fn a_wrong_token_is_refused() {
    let mut node = Shm::bind(NodeId(0), options(2)).unwrap();
    let mut stranger =
        Shm::bind(NodeId(1), ShmOptions::new(EndpointOptions::new(2, Token::new([8; Token::BYTES])))).unwrap();
    let (address, mut honest) = (node.address(), Shm::bind(NodeId(1), options(2)).unwrap());
    let joining = thread::spawn(move || {
        let refused = stranger.connect(&[(NodeId(0), address.clone())]).unwrap_err();
        honest.connect(&[(NodeId(0), address)]).map(|()| (refused, honest)).unwrap()
    });
    node.connect(&[(NodeId(1), "-".into())]).unwrap();
    let (refused, _honest) = joining.join().unwrap();
    assert!(refused.to_string().ends_with("refuses this node: the token is not that of its run"), "{refused}");
    assert_eq!(node.rejected(), 1);
    assert!(matches!(node.connect(&[(NodeId(1), "-".into())]), Err(ConnectError::Peer(NodeId(1)))));
}
