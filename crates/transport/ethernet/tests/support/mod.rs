//! Helpers of the tests: a wire in memory, and one with faults.
#![allow(dead_code, reason = "not every test file uses all of it")]

use evb_core::NodeId;
use evb_transport::{
    Connect, EndpointOptions, OverLayer, Token, Transport,
    conformance::{boxed, changed},
};
use evb_transport_bond::{Bond, Stripe};
use evb_transport_ethernet::{Endpoint, EndpointLayer, EthernetOptions, Mac, Port, Wire};
use rustix::{
    event::{EventfdFlags, eventfd},
    io::{read, write},
};
use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex},
    thread,
};

pub(crate) const TOKEN: Token = Token::new([5; Token::BYTES]);

pub(crate) fn options(nodes: usize) -> EthernetOptions {
    EthernetOptions::new(EndpointOptions::new(nodes as u16, TOKEN))
}

/// Nodes of this process, joined from one thread each.
pub(crate) fn join<W: Wire>(wires: Vec<W>, options: &EthernetOptions) -> Vec<Box<dyn Transport>> {
    let count = wires.len() as u16;
    let options = EthernetOptions {
        endpoint: changed(options.endpoint.clone(), |endpoint| endpoint.nodes = count),
        ..options.clone()
    };
    let joining = wires.into_iter().zip(0..).map(|(wire, node)| {
        let options = options.clone();
        thread::spawn(move || {
            let mut endpoint = Endpoint::open(NodeId(node), options, wire).expect("an endpoint");
            let peers: Vec<_> = (0..count).filter(|&peer| peer != node).map(NodeId).collect();
            endpoint.connect(&peers).unwrap_or_else(|error| panic!("{error}"));
            Box::new(endpoint) as Box<dyn Transport>
        })
    });
    let joining: Vec<_> = joining.collect();
    joining.into_iter().map(|node| node.join().expect("joining does not fail")).collect()
}

/// Bonds of links, each with the wires of all nodes.
pub(crate) fn bond<W: Wire>(links: Vec<Vec<W>>, stripe: Stripe, options: &EthernetOptions) -> Vec<Box<dyn Transport>> {
    let links = links.into_iter().map(|wires| join(wires, options)).collect();
    boxed(Bond::of_connected(links, stripe, options.endpoint.max_body))
}

/// The same over the layer.
pub(crate) fn join_layers<W: Wire>(wires: Vec<W>, options: &EthernetOptions) -> Vec<Box<dyn Transport>> {
    let count = wires.len() as u16;
    let options = EthernetOptions {
        endpoint: changed(options.endpoint.clone(), |endpoint| endpoint.nodes = count),
        ..options.clone()
    };
    let joining = wires.into_iter().zip(0..).map(|(wire, node)| {
        let options = options.clone();
        thread::spawn(move || {
            let mut layer = EndpointLayer::open(NodeId(node), options, wire).expect("a layer");
            // The addresses only tell whether an interface is shared.
            let peers: Vec<_> =
                (0..count).filter(|&peer| peer != node).map(|peer| (NodeId(peer), String::new())).collect();
            layer.connect(&peers).unwrap_or_else(|error| panic!("{error}"));
            Box::new(OverLayer::new(layer)) as Box<dyn Transport>
        })
    });
    let joining: Vec<_> = joining.collect();
    joining.into_iter().map(|node| node.join().expect("joining does not fail")).collect()
}

/// A network in memory: each node has a queue of frames, and a file that can be read while there are any.
pub(crate) struct Memory {
    node: usize,
    mtu: usize,
    queues: Arc<Vec<Queue>>,
}

struct Queue {
    frames: Mutex<VecDeque<Vec<u8>>>,
    bell: OwnedFd,
}

/// Frames that a queue holds; more are lost.
const MOST_QUEUED: usize = 1024;

impl Memory {
    pub(crate) fn network(nodes: usize, mtu: usize) -> Vec<Self> {
        let bell = || eventfd(0, EventfdFlags::NONBLOCK).expect("a file");
        let queues: Arc<Vec<_>> =
            Arc::new((0..nodes).map(|_| Queue { frames: Mutex::default(), bell: bell() }).collect());
        (0..nodes).map(|node| Self { node, mtu, queues: Arc::clone(&queues) }).collect()
    }

    fn mac(node: usize) -> Mac {
        Mac([2, 0, 0, 0, 0, node as u8])
    }
}

impl Queue {
    fn put(&self, frame: &[u8]) {
        let mut frames = self.frames.lock().expect("no code panics under this lock");
        if frames.len() < MOST_QUEUED {
            frames.push_back(frame.to_vec());
            write(&self.bell, &1_u64.to_ne_bytes()).expect("the bell rings");
        }
    }

    fn take(&self) -> Option<Vec<u8>> {
        let mut frames = self.frames.lock().expect("no code panics under this lock");
        let frame = frames.pop_front();
        if frames.is_empty() {
            let _silent = read(&self.bell, &mut [0; 8]);
        }
        frame
    }
}

impl Wire for Memory {
    fn port(&self) -> Port {
        Port { mac: Self::mac(self.node), mtu: self.mtu, frames: MOST_QUEUED }
    }

    fn hear_own_machine(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn send(&mut self, frames: &[&[u8]]) -> usize {
        for frame in frames.iter().filter(|frame| !frame.is_empty()) {
            for (node, queue) in self.queues.iter().enumerate() {
                if node != self.node && (frame[..6] == Self::mac(node).0 || frame[..6] == Mac::ALL.0) {
                    queue.put(frame);
                }
            }
        }
        frames.len()
    }

    fn receive(&mut self, limit: usize, take: &mut dyn FnMut(&[u8])) -> usize {
        for count in 0..limit {
            let Some(frame) = self.queues[self.node].take() else { return count };
            take(&frame);
        }
        limit
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.queues[self.node].bell.as_fd()
    }
}

/// Shares of frames, in thousandths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) swapped: u64,
    pub(crate) harmed: u64,
}

/// A relay in front of a wire, which spoils frames that arrive.
pub(crate) struct Relay<W> {
    wire: W,
    faults: Faults,
    draw: u64,
    /// Frames that are late, each with the number of frames that go before it.
    late: VecDeque<(u64, Vec<u8>)>,
}

impl<W> Relay<W> {
    pub(crate) fn new(wire: W, faults: Faults, seed: u64) -> Self {
        Self { wire, faults, draw: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), late: VecDeque::new() }
    }
}

fn below(draw: &mut u64, bound: u64) -> u64 {
    *draw = draw.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (*draw ^ *draw >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (value ^ value >> 31) % bound
}

impl<W: Wire> Wire for Relay<W> {
    fn port(&self) -> Port {
        self.wire.port()
    }

    fn hear_own_machine(&mut self) -> io::Result<()> {
        self.wire.hear_own_machine()
    }

    fn send(&mut self, frames: &[&[u8]]) -> usize {
        self.wire.send(frames)
    }

    fn receive(&mut self, limit: usize, take: &mut dyn FnMut(&[u8])) -> usize {
        let Self { wire, faults, draw, late } = self;
        wire.receive(limit, &mut |frame| {
            late.iter_mut().for_each(|(after, _)| *after = after.saturating_sub(1));
            let choice = below(draw, 1000);
            let [lost, doubled, swapped, harmed] = [faults.lost, faults.doubled, faults.swapped, faults.harmed];
            if choice < lost {
                return;
            } else if choice < lost + doubled {
                take(frame);
                take(frame);
            } else if choice < lost + doubled + swapped {
                late.push_back((1 + below(draw, 8), frame.to_vec()));
            } else if choice < lost + doubled + swapped + harmed {
                let mut frame = frame.to_vec();
                let bit = below(draw, 8 * frame.len() as u64);
                frame[bit as usize / 8] ^= 1 << (bit % 8);
                take(&frame);
            } else {
                take(frame);
            }
            while late.front().is_some_and(|(after, _)| *after == 0) {
                late.pop_front().into_iter().for_each(|(_, frame)| take(&frame));
            }
        })
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.wire.file()
    }
}
