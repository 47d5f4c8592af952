//! Vectors of the requester: stores, and the packets that follow from them.

use super::{Script, address, map};
use evb_velo::{
    Requester,
    bus::{self, ADDRESS_BITS},
};

const NODE: u64 = 0x2a;

/// Random stores.
const RANDOM: u64 = 400;

/// The text of the file.
pub(super) fn vectors() -> String {
    let mut file = File::new();
    file.lengths_and_cuts();
    file.lanes();
    file.numbers();
    file.bad_stores();
    file.random();
    file.script.text
}

struct File {
    script: Script,
    requester: Requester,
}

impl File {
    fn new() -> Self {
        let mut script =
            Script::new("Requester: `store` command and data words, then `send` header and data words, or `bad`.");
        script.statement("node", [NODE]);
        Self { script, requester: Requester::new(map(), NODE) }
    }

    fn post(&mut self, words: &[u64]) {
        self.script.statement("store", words);
        match self.requester.post(words) {
            Ok(packet) => {
                let words = packet.words(map()).expect("the requester makes packets of its map");
                self.script.statement("send", words);
            }
            Err(_) => self.script.statement("bad", [0; 0]),
        }
    }

    /// Stores random bytes to an address, from a random thread.
    fn store(&mut self, address: u64, data: u64) {
        let (thread, bytes) = (self.script.below(256), self.script.bytes(data));
        let words = self.script.transaction(thread, address, &bytes);
        self.post(&words);
    }

    fn store_anywhere(&mut self, length: u64, offset: u64, data: u64) {
        let target = (self.script.below(256), self.script.below(256));
        self.store(address(target, length, offset), data);
    }

    fn lengths_and_cuts(&mut self) {
        self.script.section("Messages of every length.");
        (1..=64).for_each(|length| self.store_anywhere(length, 0, length));
        self.script.section("Messages of 64 B, cut at every place.");
        for cut in 1..64 {
            self.store_anywhere(64, 0, cut);
            self.store_anywhere(64, cut, 64 - cut);
        }
    }

    fn lanes(&mut self) {
        self.script.section("Every first byte lane with up to 10 B.");
        for (lane, data) in (0..8).flat_map(|lane| (1..=10).map(move |data| (lane, data))) {
            let offset = lane + 8 * self.script.below(6);
            self.store_anywhere(64, offset, data);
        }
    }

    fn numbers(&mut self) {
        self.script.section("The first and the last node and threads.");
        for bits in 0..8 {
            let number = |bit: u64| 255 * (bits >> bit & 1);
            let words = self.script.transaction(number(2), address((number(0), number(1)), 1, 0), &[0xa5]);
            self.post(&words);
        }
    }

    fn bad_stores(&mut self) {
        self.script.section("Bits above the windows of all threads, with good stores between.");
        for bit in bus::physical_bits(map())..ADDRESS_BITS {
            let mut words = self.script.transaction(5, address((3, 4), 9, 0), &[0x11; 9]);
            words[0] |= 1 << bit;
            self.post(&words);
            self.store_anywhere(3, 0, 3);
        }
        self.script.section("Stores that begin behind their message, or end there.");
        for (length, offset, data) in
            [(1, 1, 1), (8, 8, 8), (63, 63, 1), (1, 63, 64), (1, 0, 2), (1, 0, 64), (63, 0, 64)]
        {
            self.store_behind(length, offset, data);
        }
        for length in (2..64).step_by(5) {
            self.store_behind(length, length - 1, 2);
            self.store_anywhere(length, length - 1, 1);
        }
        self.store_behind(64, 63, 2);
        self.store_behind(64, 1, 64);
    }

    /// Makes a store that may end behind its message, which [`address`] would refuse.
    fn store_behind(&mut self, length: u64, offset: u64, data: u64) {
        self.store(address((7, 8), length, 0) | offset, data);
    }

    fn random(&mut self) {
        self.script.section("Random stores; one of eight has any offset and length.");
        for _ in 0..RANDOM {
            let (length, offset, data) = self.script.piece();
            if self.script.one_of(8) {
                let (offset, data) = (self.script.below(64), 1 + self.script.below(64));
                self.store_behind(length, offset, data);
            } else {
                self.store_anywhere(length, offset, data);
            }
        }
    }
}
