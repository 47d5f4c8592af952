//! Vectors of the completer and its registers: packets, and the writes into the memory of the host that follow from them.

use super::{Script, map};
use evb_velo::{
    Answer, Completer, Endpoint, FIXED_SHIFT, Fault, Header, Packet, TARGET_SHIFT,
    mailbox::{POINTER_BITS, Ring, pointer, writes},
    registers::{Control, TableEntry},
};
use std::collections::BTreeMap;

const NODE: u64 = 0x2a;

/// Random steps.
const RANDOM: u64 = 700;

/// Threads of the random steps. The last one is often closed.
const THREADS: [u64; 4] = [0x10, 0x11, 0x80, 0xff];

/// The text of the file.
pub(super) fn vectors() -> String {
    let mut file = File::new();
    file.lengths_and_cuts();
    file.senders();
    file.faults();
    file.full();
    file.rings();
    file.random();
    file.script.text
}

struct File {
    script: Script,
    completer: Completer,
    rings: BTreeMap<u64, Ring>,
    /// A packet that waits for a free slot, and blocks those behind it.
    held: Option<Vec<u64>>,
}

impl File {
    fn new() -> Self {
        let about = "Completer: `table`, `head` write and `tail`, `count` read and compare registers; a `packet` is followed\n\
            # by its `write`s, by `drop`, or by `full`: then the writes follow the `head` that frees a slot.";
        let mut script = Script::new(about);
        script.statement("node", [NODE]);
        Self { script, completer: Completer::new(map(), NODE), rings: BTreeMap::new(), held: None }
    }

    /// Opens a mailbox as a driver does: with the head at the tail.
    fn open(&mut self, thread: u64, base: u64, pages: u64) {
        let ring = Ring::new(base, pages).expect("a base that is aligned");
        let tail = self.completer.tail(thread);
        self.script.statement("tail", [thread, tail]);
        self.script.statement("head", [thread, tail]);
        self.script.statement("table", [thread, TableEntry { ring, enabled: true }.encode()]);
        assert!(self.completer.open(thread, ring.slots() as usize));
        self.rings.insert(thread, ring);
    }

    fn close(&mut self, thread: u64) {
        let ring = self.rings[&thread];
        self.script.statement("table", [thread, TableEntry { ring, enabled: false }.encode()]);
        self.completer.close(thread);
    }

    fn packet(&mut self, words: Vec<u64>) {
        assert!(self.held.is_none(), "a waiting packet blocks the next ones");
        self.script.statement("packet", &words);
        self.deliver(words);
        if self.held.is_some() {
            self.script.statement("full", [0; 0]);
        }
    }

    fn deliver(&mut self, words: Vec<u64>) {
        let thread = Header::split(words[0], map()).target.thread;
        let tail = self.completer.tail(thread);
        match self.completer.accept_words(&words) {
            Answer::Delivered => {
                let slot = self.rings[&thread].slot(tail);
                writes(slot, &words).for_each(|(at, word)| self.script.statement("write", [at, word]));
            }
            Answer::Full => self.held = Some(words),
            Answer::Dropped(Fault::Node) => self.script.statement("drop node", [0; 0]),
            Answer::Dropped(Fault::Closed) => self.script.statement("drop closed", [0; 0]),
            Answer::Dropped(Fault::Data) => self.script.statement("drop data", [0; 0]),
        }
    }

    fn set_head(&mut self, thread: u64, head: u64) {
        self.script.statement("head", [thread, pointer(head)]);
        self.completer.set_head(thread, head);
        if let Some(words) = self.held.take() {
            self.deliver(words);
            assert!(self.held.is_none(), "the first head after `full` frees a slot");
        }
    }

    /// Releases this number of messages, as software does.
    fn release(&mut self, thread: u64, count: u64) {
        let (tail, waiting) = (self.completer.tail(thread), self.completer.waiting(thread));
        self.set_head(thread, (tail + (1 << POINTER_BITS) - waiting) + count);
    }

    fn release_all(&mut self, thread: u64) {
        self.release(thread, self.completer.waiting(thread));
    }

    fn tail(&mut self, thread: u64) {
        self.script.statement("tail", [thread, self.completer.tail(thread)]);
    }

    fn counts(&mut self) {
        let (received, faults) = (self.completer.received(), self.completer.faults());
        let counts = [
            (Control::Received, received),
            (Control::FaultNode, faults.node),
            (Control::FaultClosed, faults.closed),
            (Control::FaultData, faults.data),
        ];
        counts.iter().for_each(|(control, count)| self.script.statement("count", [*control as u64, *count]));
    }

    /// The words of a packet with random data for a thread of this node.
    fn words(&mut self, source: Endpoint, thread: u64, (length, offset, data): (u64, u64, u64)) -> Vec<u64> {
        let header = Header { source, target: Endpoint { node: NODE, thread }, length, offset, data };
        let mut packet = Packet { header, data: [0; 64] };
        packet.data[..data as usize].copy_from_slice(&self.script.bytes(data));
        packet.words(map()).expect("in range")
    }

    fn source(&mut self) -> Endpoint {
        Endpoint { node: self.script.below(256), thread: self.script.below(256) }
    }

    /// Sends a packet from a random source.
    fn send(&mut self, thread: u64, piece: (u64, u64, u64)) {
        let source = self.source();
        let words = self.words(source, thread, piece);
        self.packet(words);
    }

    fn lengths_and_cuts(&mut self) {
        self.script.section("Messages of every length, through a ring of 32 slots.");
        self.open(0, 0x1000, 1);
        for length in 1..=64 {
            self.send(0, (length, 0, length));
            if length % 16 == 0 {
                self.tail(0);
                self.release_all(0);
            }
        }
        self.script.section("Messages of 64 B, cut at every place.");
        for cut in 1..64 {
            self.send(0, (64, 0, cut));
            self.send(0, (64, cut, 64 - cut));
            if cut % 8 == 7 {
                self.release(0, self.completer.waiting(0) - 1);
            }
        }
        self.release_all(0);
        self.counts();
    }

    fn senders(&mut self) {
        self.script.section("Two senders whose cut messages alternate, for one thread and then for two.");
        self.open(1, 0x2000, 1);
        let sources = [Endpoint { node: 0, thread: 0 }, Endpoint { node: 255, thread: 255 }];
        for (offset, data) in [(0, 3), (3, 5), (8, 8), (16, 4)] {
            for (source, thread) in [(0, 1), (1, 1), (0, 0), (1, 1)] {
                let words = self.words(sources[source], thread, (20, offset, data));
                self.packet(words);
            }
        }
        self.tail(1);
        self.tail(0);
    }

    fn faults(&mut self) {
        self.script.section(
            "Other nodes, closed threads, bad headers, with good packets between; the first fault in this order counts.",
        );
        let (endpoint, piece) = (Endpoint { node: 1, thread: 2 }, (7, 2, 5));
        let good = self.words(endpoint, 1, piece);
        let elsewhere = [0_u32, 3, 7, 8, 13].map(|bit| 1 << (TARGET_SHIFT + map().thread_bits() + bit));
        let closed = 0x40 << TARGET_SHIFT;
        let fixed = [0b11, 0b10, 0b01].map(|bits: u64| bits << FIXED_SHIFT);
        let mut flips: Vec<u64> = elsewhere.into_iter().chain([closed]).chain(fixed).collect();
        flips.extend([elsewhere[0] | closed | fixed[0], elsewhere[0] | fixed[1], closed | fixed[2]]);
        for flip in flips {
            let mut words = good.clone();
            words[0] ^= flip;
            self.packet(words);
            self.packet(good.clone());
        }
        for (length, offset, data) in [(1, 1, 1), (1, 63, 64), (8, 1, 8), (63, 0, 64), (64, 63, 2), (64, 1, 64)] {
            self.behind(1, length, offset, data);
        }
        self.counts();
        self.release_all(1);
    }

    /// Sends a packet whose data end behind its message.
    fn behind(&mut self, thread: u64, length: u64, offset: u64, data: u64) {
        let source = self.source();
        let header = Header { source, target: Endpoint { node: NODE, thread }, length: 64, offset: 0, data };
        let word = header.encode(map()).expect("in range") & !0xfff | (length - 1) << 6 | offset;
        let mut words = vec![word];
        words.extend(evb_velo::lanes::pack(offset, &self.script.bytes(data)));
        self.packet(words);
    }

    fn full(&mut self) {
        self.script.section("A full ring holds a packet until a slot is released.");
        self.open(2, 0x3000, 1);
        (0..33).for_each(|_| self.send(2, (1, 0, 1)));
        self.tail(2);
        self.release(2, 1);
        self.send(2, (64, 0, 64));
        self.counts();
        self.release(2, 2);
        self.send(2, (2, 1, 1));
        self.send(2, (9, 0, 9));
        self.release(2, 32);
        self.tail(2);
        self.script.section("Heads on the other side of the wrap.");
        self.open(3, 0x4000, 1);
        let wrap = 1 << POINTER_BITS;
        for filled in [32, 31, 32] {
            self.set_head(3, wrap + self.completer.tail(3) - filled);
            self.send(3, (8, 0, 8));
            if self.held.is_some() {
                self.release(3, 1);
            }
        }
        self.release_all(3);
    }

    fn rings(&mut self) {
        self.script.section("Larger rings, opened again at other addresses: the tail continues.");
        for (base, pages, count) in [(0x6000, 2, 70), (0x10_0000, 4, 60), (0xff_fff8_0000, 128, 3), (0x7000, 1, 3)] {
            self.open(4, base, pages);
            for sent in 1..=count {
                self.send(4, (3, 0, 3));
                if sent % 32 == 0 {
                    self.release(4, 31);
                }
            }
            self.tail(4);
            self.close(4);
            self.send(4, (3, 0, 3));
        }
        self.counts();
    }

    fn random(&mut self) {
        self.script.section("Random packets, heads, and mailboxes that close and open.");
        for (index, thread) in (0..).zip(THREADS) {
            self.open(thread, 0x100_0000 * (index + 1), 1 << (index % 3));
        }
        for step in 0..RANDOM {
            let thread = THREADS[self.script.below(4) as usize];
            match self.script.below(24) {
                0 => self.release_some(thread),
                1 => self.tail(thread),
                2 if thread == THREADS[3] => self.close(thread),
                3 if thread == THREADS[3] => self.open_anywhere(thread),
                4 => self.flip(thread),
                _ => self.send_random(thread),
            }
            if step % 100 == 99 {
                self.counts();
            }
        }
        THREADS.iter().for_each(|&thread| self.tail(thread));
    }

    fn release_some(&mut self, thread: u64) {
        let count = self.script.below(self.completer.waiting(thread) + 1);
        self.release(thread, count);
    }

    fn open_anywhere(&mut self, thread: u64) {
        let pages = 1 << self.script.below(8);
        let base = (self.script.below((1 << 28) / pages) * pages) << 12;
        self.open(thread, base, pages);
    }

    /// Sends a packet with one flipped bit in the header.
    fn flip(&mut self, thread: u64) {
        let (source, piece) = (self.source(), self.script.piece());
        let mut words = self.words(source, thread, piece);
        words[0] ^= 1 << (TARGET_SHIFT as u64 + 8 + self.script.below(14));
        self.packet(words);
    }

    fn send_random(&mut self, thread: u64) {
        let piece = self.script.piece();
        self.send(thread, piece);
        if self.held.is_some() {
            let count = 1 + self.script.below(self.completer.waiting(thread));
            self.release(thread, count);
        }
    }
}
