//! Test vectors of the hardware: corner cases first, then random ones. The expected results are those of the model.
//!
//! The files are text: a statement per line, numbers in hexadecimal, comments after `#`. `velo/hardware/README.md` describes
//! the statements.

mod completer;
mod requester;
mod traffic;

use evb_velo::{AddressMap, Target, bus, lanes};
use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};
use std::fmt::{LowerHex, Write};

/// The example of VELO 2008, section 3.
const N: u32 = 28;
const T: u32 = 20;

/// The seed of the random cases of all files.
const SEED: u64 = 2008;

/// The files, by their paths in `velo/hardware`.
pub(super) fn files() -> [(&'static str, String); 3] {
    [
        ("vectors/requester.vec", requester::vectors()),
        ("vectors/completer.vec", completer::vectors()),
        ("vectors/traffic.vec", traffic::vectors()),
    ]
}

fn map() -> AddressMap {
    AddressMap::new(N, T).expect("the example of the paper")
}

/// The text of a file and its random numbers.
struct Script {
    text: String,
    random: Xoshiro256PlusPlus,
}

impl Script {
    fn new(about: &str) -> Self {
        let mut text =
            format!("# {about}\n# Generated from crate `evb-velo` by its test `hardware`, with seed {SEED}.\n");
        writeln!(text, "map {N:x} {T:x}").expect("a string has room");
        Self { text, random: Xoshiro256PlusPlus::seed_from_u64(SEED) }
    }

    fn section(&mut self, about: &str) {
        writeln!(self.text, "\n# {about}").expect("a string has room");
    }

    fn statement<W: LowerHex>(&mut self, name: &str, words: impl IntoIterator<Item = W>) {
        statement(&mut self.text, name, words);
    }

    /// A number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.random.next_u64() % limit
    }

    /// True once in `times`, on average.
    fn one_of(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn bytes(&mut self, length: u64) -> Vec<u8> {
        (0..length).map(|_| self.random.next_u64() as u8).collect()
    }

    /// A store of a message: length of the message, offset, and length of the data.
    fn piece(&mut self) -> (u64, u64, u64) {
        let length = 1 + self.below(64);
        if self.one_of(2) {
            return (length, 0, length);
        }
        let offset = self.below(length);
        (length, offset, 1 + self.below(length - offset))
    }

    /// The words of a transaction, with ones or random bits where the bus defines none.
    fn transaction(&mut self, thread: u64, address: u64, bytes: &[u8]) -> Vec<u64> {
        let mut words = bus::store(map(), thread, address, bytes).expect("thread and address are in range");
        for (word, mask) in words[1..].iter_mut().zip(lanes::masks(address, bytes.len() as u64)) {
            let noise = if self.one_of(2) { u64::MAX } else { self.random.next_u64() };
            *word |= noise & !mask;
        }
        words
    }
}

/// Adds a statement: a name and numbers.
fn statement<W: LowerHex>(text: &mut String, name: &str, words: impl IntoIterator<Item = W>) {
    text.push_str(name);
    words.into_iter().for_each(|word| write!(text, " {word:x}").expect("a string has room"));
    text.push('\n');
}

/// The address of a store.
fn address((node, thread): (u64, u64), length: u64, offset: u64) -> u64 {
    map().encode(Target { node, thread, length, offset }).expect("in range")
}
