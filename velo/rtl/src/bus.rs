//! The host's side of a node's bus: credits in both directions, requests to registers, and the head of the mailbox.

use crate::{
    RtlOptions,
    hardware::{Inputs, Outputs},
};
use evb_velo::{
    AddressMap,
    mailbox::{self, Ring, SLOT_WORDS},
    registers::{Control, TableEntry, Window},
};
use std::collections::VecDeque;

/// Words that the device takes before it gives the first credit (parameter `POSTED` of `velo_node`).
pub(crate) const POSTED: usize = 32;
/// The thread whose mailbox gets the messages; see [`crate::layer`] for the threads that send.
pub(crate) const RECEIVER: u64 = 0;
/// Address of the mailbox in the memory of the host, in bytes: any address aligned to the largest ring.
const RING_BASE: u64 = 1 << 20;
/// Number of parts of a ring whose slots are freed one by one.
const PARTS: u64 = 4;

/// A request to a register.
#[derive(Clone, Copy, Debug)]
enum Request {
    Read { address: u64 },
    Write { address: u64, data: u64 },
}

/// A write of the device to the mailbox.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    /// Number of the word in the ring.
    pub(crate) index: usize,
    pub(crate) word: u64,
}

impl Write {
    /// Returns true for the header of a slot, which completes its packet.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_header(self) -> bool {
        self.index.is_multiple_of(SLOT_WORDS)
    }
}

/// The bus of one node.
#[derive(Debug)]
pub(crate) struct Bus {
    pub(crate) map: AddressMap,
    pub(crate) ring: Ring,
    credits: usize,
    /// Messages whose slots were freed at the device.
    freed: u64,
    /// Writes that the memory has taken and not returned a credit for.
    owed: usize,
    /// Requests to registers: at most one for each message of a ring, and those of the beginning.
    requests: VecDeque<Request>,
    /// The last value of the register output.
    pub(crate) read: u32,
}

impl Bus {
    /// The bus of a device after a reset, whose mailbox has this many pages.
    pub(crate) fn new(pages: u64) -> Self {
        Self {
            map: RtlOptions::map(),
            ring: Ring::new(RING_BASE, pages).expect("the options have been checked"),
            credits: POSTED,
            freed: 0,
            owed: 0,
            requests: VecDeque::new(),
            read: 0,
        }
    }

    /// Requests the node number to be set and the mailbox to be opened, whose tail is `tail`.
    pub(crate) fn open(&mut self, node: u64, tail: u64) {
        self.freed = tail;
        let entry = TableEntry { ring: self.ring, enabled: true };
        let address = |window: Window| window.address(self.map, RECEIVER).expect("every map has a thread");
        self.requests.extend([
            Request::Write { address: control(self.map, Control::Node), data: node },
            Request::Write { address: address(Window::Head), data: tail },
            Request::Write { address: address(Window::Table), data: entry.encode() },
        ]);
    }

    /// Requests the tail of the mailbox: it is in `read` two cycles after the cycle that takes the request.
    pub(crate) fn ask_tail(&mut self) {
        let address = Window::Tail.address(self.map, RECEIVER).expect("every map has a thread");
        self.requests.push_back(Request::Read { address });
    }

    /// Requests a register of the unit: it is in `read` two cycles after the cycle that takes the request.
    pub(crate) fn ask(&mut self, register: Control) {
        self.requests.push_back(Request::Read { address: control(self.map, register) });
    }

    /// Returns true if no request to a register is left.
    pub(crate) fn is_settled(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns true if nothing waits for the next cycle.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_idle(&self) -> bool {
        self.is_settled() && self.owed == 0
    }

    /// The signals of the host in this cycle. `next` has the next posted word and whether it ends its transaction; it is
    /// asked if the device can take a word.
    pub(crate) fn inputs(&mut self, next: impl FnOnce() -> Option<(u64, bool)>) -> Inputs {
        let mut inputs = Inputs::default();
        if self.credits > 0
            && let Some((word, last)) = next()
        {
            self.credits -= 1;
            (inputs.posted_valid, inputs.posted_data, inputs.posted_last) = (true, word, last);
        }
        if self.owed > 0 {
            (self.owed, inputs.write_credit) = (self.owed - 1, true);
        }
        match self.requests.pop_front() {
            Some(Request::Read { address }) => (inputs.reg_valid, inputs.reg_address) = (true, address as u32),
            Some(Request::Write { address, data }) => {
                (inputs.reg_valid, inputs.reg_write) = (true, true);
                (inputs.reg_address, inputs.reg_data) = (address as u32, data);
            }
            None => {}
        }
        inputs
    }

    /// Takes the signals of the device after the edge, and returns what it writes to the mailbox.
    ///
    /// # Panics
    /// If the device writes to memory outside of the mailbox.
    pub(crate) fn outputs(&mut self, outputs: &Outputs) -> Option<Write> {
        self.credits += usize::from(outputs.posted_credit);
        self.read = outputs.reg_read;
        outputs.write_valid.then(|| {
            self.owed += 1;
            let address = outputs.write_address;
            let index =
                address.checked_sub(RING_BASE).map(|at| (at / 8) as usize).filter(|index| *index < self.words());
            let index = index.unwrap_or_else(|| panic!("a write to {address:#x}, outside of the mailbox"));
            Write { index, word: outputs.write_data }
        })
    }

    /// Words of the ring.
    pub(crate) fn words(&self) -> usize {
        self.ring.slots() as usize * SLOT_WORDS
    }

    /// Number of the first word of the slot of a message.
    pub(crate) fn slot(&self, number: u64) -> usize {
        ((self.ring.slot(number) - RING_BASE) / 8) as usize
    }

    /// Returns true if enough messages were taken, up to `head`, to free their slots at the device.
    pub(crate) fn owes(&self, head: u64) -> bool {
        mailbox::waiting(self.freed, head) >= self.ring.slots() / PARTS
    }

    /// Frees the slots of messages that were taken, up to `head`, at the device, when there are enough of them.
    pub(crate) fn give_back(&mut self, head: u64) {
        if self.owes(head) {
            let address = Window::Head.address(self.map, RECEIVER).expect("every map has a thread");
            self.requests.push_back(Request::Write { address, data: head });
            self.freed = head;
        }
    }
}

fn control(map: AddressMap, register: Control) -> u64 {
    register.address(map).expect("the map has room for the registers")
}
