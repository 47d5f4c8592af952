//! Vectors of two whole nodes: stores of their threads, expected contents of the mailboxes, and the messages in them.
//! Every message is whole in the end: what a receiver does with others is no matter of hardware.

use super::{Script, address, map, say};
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
    /// The part of a message that is still to be stored: its bytes and the offset of the next store.
    open: BTreeMap<(Place, Place), (Vec<u8>, u64)>,
    /// Lines of what arrives.
    arrivals: String,
}

impl File {
    fn new() -> Self {
        let about = "Two nodes: `open` mailboxes of so many pages; each node makes its `store`s in this order; each `slot` is then in a\n\
            # mailbox, in order for each sender and receiver, and gives with others the messages that the receiver can `take`.";
        let mut script = Script::new(about);
        let mut completers = [0, 1].map(|node| Completer::new(map(), node));
        for (node, (thread, pages)) in (0..2).flat_map(|node| THREADS.map(|thread| (node, thread))) {
            script.say("open", [node, thread, pages]);
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
        self.script.section("Random messages; some are cut, and others come between their parts.");
        for _ in 0..RANDOM {
            let (from, to) = self.pair();
            if !self.open.contains_key(&(from, to)) {
                let length = 1 + self.script.below(64);
                self.open.insert((from, to), (self.script.bytes(length), 0));
            }
            self.go_on(from, to);
        }
        while let Some((&(from, to), _)) = self.open.first_key_value() {
            self.go_on(from, to);
        }
    }

    fn place(&mut self) -> Place {
        (self.script.below(2), THREADS[self.script.below(THREADS.len() as u64) as usize].0)
    }

    /// Two threads, of one node or of two.
    fn pair(&mut self) -> (Place, Place) {
        loop {
            let pair = (self.place(), self.place());
            if pair.0 != pair.1 {
                return pair;
            }
        }
    }

    /// The rest of a message, or a part of it.
    fn go_on(&mut self, from: Place, to: Place) {
        let (bytes, offset) = self.open.remove(&(from, to)).expect("a message that was begun");
        let left = bytes.len() as u64 - offset;
        let data = if self.script.one_of(3) { 1 + self.script.below(left) } else { left };
        self.store(from, to, &bytes, offset, data);
        if data < left {
            self.open.insert((from, to), (bytes, offset + data));
        }
    }

    /// A store of a part of a message, and what the model makes of it.
    fn store(&mut self, from: Place, to: Place, bytes: &[u8], offset: u64, data: u64) {
        let part = &bytes[offset as usize..(offset + data) as usize];
        let words = self.script.transaction(from.1, address(to, bytes.len() as u64, offset), part);
        self.script.say("store", [from.0].iter().chain(&words));
        let packet = self.requesters[from.0 as usize].post(&words).expect("a good store");
        let completer = &mut self.completers[to.0 as usize];
        assert_eq!(completer.accept(&packet), Answer::Delivered);
        let packet = completer.take(to.1).expect("it was delivered");
        let words = packet.words(map()).expect("of this map");
        say(&mut self.arrivals, "slot", [to.0, to.1].iter().chain(&words));
        if let Some(entry) = self.recombiners.entry(to).or_default().accept(&packet) {
            let hex: String = entry.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            say(&mut self.arrivals, "take", [to.0, to.1, entry.source.bits(map())]);
            self.arrivals.insert_str(self.arrivals.len() - 1, &format!(" {hex}"));
        }
    }

    fn finish(mut self) -> String {
        self.script.section("What lies in the mailboxes, and comes of it.");
        self.script.text + &self.arrivals
    }
}
