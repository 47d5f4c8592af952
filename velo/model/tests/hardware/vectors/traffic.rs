//! Vectors of two nodes: stores of their threads, expected contents of the mailboxes, and the messages in them. Every message
//! is complete at the end: how a receiver treats others does not concern the hardware.

use super::{Script, address, map, statement};
use evb_velo::{Answer, Completer, Recombiner, Requester};
use std::collections::BTreeMap;

/// Threads of each node that have a mailbox, and its pages.
const THREADS: [(u64, u64); 4] = [(0, 1), (1, 2), (0x80, 1), (0xff, 4)];

/// Random messages.
const RANDOM: u64 = 450;

/// Node and thread.
type Place = (u64, u64);

/// The text of the file.
pub(super) fn vectors() -> String {
    let mut file = File::new();
    file.lengths();
    file.random();
    file.finish()
}

struct File {
    script: Script,
    requesters: [Requester; 2],
    completers: [Completer; 2],
    recombiners: BTreeMap<Place, Recombiner>,
    /// Messages that are not stored completely: the bytes and the offset of the next store.
    open: BTreeMap<(Place, Place), (Vec<u8>, u64)>,
    /// The statements of arrivals.
    arrivals: String,
}

impl File {
    fn new() -> Self {
        let about = "Two nodes: `open` a mailbox of some pages; each node makes its `store`s in this order; each `slot` is then in a\n\
            # mailbox, in order for each sender and receiver; the receiver can `take` the messages that they form.";
        let mut script = Script::new(about);
        let mut completers = [0, 1].map(|node| Completer::new(map(), node));
        for (node, (thread, pages)) in (0..2).flat_map(|node| THREADS.map(|thread| (node, thread))) {
            script.statement("open", [node, thread, pages]);
            assert!(completers[node as usize].open(thread, 32));
        }
        Self {
            script,
            requesters: [0, 1].map(|node| Requester::new(map(), node)),
            completers,
            recombiners: BTreeMap::new(),
            open: BTreeMap::new(),
            arrivals: String::new(),
        }
    }

    fn lengths(&mut self) {
        self.script.section("Messages of every length, from node to node and within a node.");
        for length in 1..=64 {
            let bytes = self.script.bytes(length);
            self.store((length % 2, 0), (length / 2 % 2, 1), &bytes, 0, length);
        }
    }

    fn random(&mut self) {
        self.script.section("Random messages; some are cut, with others between their parts.");
        for _ in 0..RANDOM {
            let (from, to) = self.pair();
            if !self.open.contains_key(&(from, to)) {
                let length = 1 + self.script.below(64);
                self.open.insert((from, to), (self.script.bytes(length), 0));
            }
            self.continue_message(from, to);
        }
        while let Some((&(from, to), _)) = self.open.first_key_value() {
            self.continue_message(from, to);
        }
    }

    fn place(&mut self) -> Place {
        (self.script.below(2), THREADS[self.script.below(THREADS.len() as u64) as usize].0)
    }

    /// Two different threads, of one node or of two.
    fn pair(&mut self) -> (Place, Place) {
        loop {
            let pair = (self.place(), self.place());
            if pair.0 != pair.1 {
                return pair;
            }
        }
    }

    /// Stores the rest of a message, or a part of it.
    fn continue_message(&mut self, from: Place, to: Place) {
        let (bytes, offset) = self.open.remove(&(from, to)).expect("an open message");
        let left = bytes.len() as u64 - offset;
        let data = if self.script.one_of(3) { 1 + self.script.below(left) } else { left };
        self.store(from, to, &bytes, offset, data);
        if data < left {
            self.open.insert((from, to), (bytes, offset + data));
        }
    }

    /// Stores a part of a message, and records what the model delivers.
    fn store(&mut self, from: Place, to: Place, bytes: &[u8], offset: u64, data: u64) {
        let part = &bytes[offset as usize..(offset + data) as usize];
        let words = self.script.transaction(from.1, address(to, bytes.len() as u64, offset), part);
        self.script.statement("store", [from.0].iter().chain(&words));
        let packet = self.requesters[from.0 as usize].post(&words).expect("a good store");
        let completer = &mut self.completers[to.0 as usize];
        assert_eq!(completer.accept(&packet), Answer::Delivered);
        let packet = completer.take(to.1).expect("a delivered packet");
        let words = packet.words(map()).expect("of this map");
        statement(&mut self.arrivals, "slot", [to.0, to.1].iter().chain(&words));
        if let Some(entry) = self.recombiners.entry(to).or_default().accept(&packet) {
            let hex: String = entry.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            statement(&mut self.arrivals, "take", [to.0, to.1, entry.source.bits(map())]);
            self.arrivals.insert_str(self.arrivals.len() - 1, &format!(" {hex}"));
        }
    }

    fn finish(mut self) -> String {
        self.script.section("Contents of the mailboxes, and the messages that they form.");
        self.script.text + &self.arrivals
    }
}
