//! The hardware for other processes: each node is a card of a rack in shared memory.
//!
//! The clock runs while something is under way and stops otherwise, so cycles are those of the hardware, and not of the
//! programs that use it.

use crate::{
    RtlError, RtlOptions,
    bus::{Bus, Write},
    check,
    hardware::{Hardware, Inputs, Outputs},
    verilated,
};
use evb_velo::registers::Control;
use evb_velo_device::{CardState, Rack, RackShape};
use std::{
    fmt, thread,
    time::{Duration, Instant},
};

#[cfg(test)]
mod tests;

/// Cycles without an event after which nothing more comes of what is under way: a store that is not valid makes no packet.
/// A head that moves lets the clock go on.
const QUIET_CYCLES: u64 = 1 << 20;
/// Interval at which the processes of cards are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Cycles between two looks at the real time.
const LOOK_CYCLES: u64 = 1 << 10;
/// Looks at idle cards before the service gives its core to others between two looks, and before it sleeps between them.
const SPINS: u32 = 1000;
const YIELDS: u32 = 20_000;
/// Sleep between two looks.
const NAP: Duration = Duration::from_micros(50);

/// Counts of a node, from the registers of its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeReport {
    /// Packets that the requester has made.
    pub sent: u32,
    /// Packets that the completer has put into the mailbox.
    pub received: u32,
    /// Stores and packets that were dropped, for any reason.
    pub dropped: u32,
    /// Link frames whose checksum was wrong.
    pub link_errors: u32,
}

/// What a service has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceReport {
    /// Cycles that passed.
    pub cycles: u64,
    /// Packets that were written into mailboxes.
    pub packets: u64,
    /// The nodes, in order.
    pub nodes: Vec<NodeReport>,
}

/// A rack of simulated hardware.
pub struct Service {
    hardware: Box<dyn Hardware>,
    inputs: Vec<Inputs>,
    outputs: Vec<Outputs>,
    buses: Vec<Bus>,
    rack: Rack,
    cycle: u64,
    /// Transactions that the bus has taken, and packets that were written into mailboxes.
    stores: u64,
    packets: u64,
    /// The last cycle with an event.
    busy: u64,
}

impl Service {
    /// A rack of `nodes` nodes with this name. Its cards can be opened from now on. Of the options, the link and the pages
    /// count.
    ///
    /// # Errors
    /// Those of [`prepare`](crate::prepare), and a name that is invalid or taken.
    pub fn open(name: &str, nodes: usize, options: &RtlOptions) -> Result<Self, RtlError> {
        Self::of(verilated(nodes, options)?, name, nodes, options)
    }

    /// A rack of other hardware after a reset.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn of(
        mut hardware: Box<dyn Hardware>,
        name: &str,
        nodes: usize,
        options: &RtlOptions,
    ) -> Result<Self, RtlError> {
        check(nodes, options)?;
        let mut buses: Vec<_> = (0..nodes).map(|_| Bus::new(options.pages)).collect();
        let (mut inputs, mut outputs) = (vec![Inputs::default(); nodes], vec![Outputs::default(); nodes]);
        let mut settle = |buses: &mut Vec<Bus>| settle(&mut *hardware, buses, &mut inputs, &mut outputs);
        buses.iter_mut().for_each(Bus::ask_tail);
        settle(&mut buses);
        let tails: Vec<_> = buses.iter().map(|bus| u64::from(bus.read)).collect();
        (0..).zip(&mut buses).zip(&tails).for_each(|((node, bus), tail)| bus.open(node, *tail));
        settle(&mut buses);
        let rack = Rack::open(name, &RackShape { bits: crate::ADDRESS_BITS, pages: options.pages, tails })?;
        Ok(Self { hardware, inputs, outputs, buses, rack, cycle: 0, stores: 0, packets: 0, busy: 0 })
    }

    /// Serves the cards until all that were opened have left, and nothing is under way.
    ///
    /// # Errors
    /// [`RtlError::NoCard`] if no card is opened for as long as `patience`.
    pub fn serve(mut self, patience: Duration) -> Result<ServiceReport, RtlError> {
        let (start, mut looked, mut idle) = (Instant::now(), Instant::now(), 0_u32);
        loop {
            if self.is_under_way() {
                idle = 0;
                self.step();
            } else if self.has_ended() {
                return Ok(self.report());
            } else {
                idle = idle.saturating_add(1);
                rest(idle);
            }
            if (idle > 0 || self.cycle.is_multiple_of(LOOK_CYCLES)) && looked.elapsed() > LOOK {
                looked = Instant::now();
                self.look();
                if self.is_unused() && start.elapsed() > patience {
                    return Err(RtlError::NoCard { patience });
                }
            }
        }
    }

    /// Finds cards that have left, and throws away what lies in their mailboxes: it could hold up others.
    fn look(&self) {
        self.rack.look();
        (0..self.buses.len()).for_each(|node| self.discard(node));
    }

    fn discard(&self, node: usize) {
        if self.rack.state(node) == CardState::Left {
            self.rack.discard(node);
        }
    }

    fn states(&self) -> impl Iterator<Item = CardState> {
        (0..self.buses.len()).map(|node| self.rack.state(node))
    }

    fn is_unused(&self) -> bool {
        self.states().all(|state| state == CardState::Unused)
    }

    fn is_under_way(&self) -> bool {
        let waits = (0..self.buses.len()).any(|node| !self.buses[node].is_idle() || self.rack.has_posted(node));
        waits || (self.stores != self.packets && self.cycle - self.busy < QUIET_CYCLES) || self.frees()
    }

    /// Returns true if no card is open, and at least one was. Nothing is under way.
    fn has_ended(&self) -> bool {
        !self.is_unused() && !self.states().any(|state| matches!(state, CardState::Open(_)))
    }

    /// Returns true if a head has moved that the device should know about.
    fn frees(&self) -> bool {
        (0..self.buses.len()).any(|node| self.buses[node].owes(self.rack.head(node)))
    }

    /// Runs one cycle.
    fn step(&mut self) {
        let (rack, stores) = (&mut self.rack, &mut self.stores);
        for (node, (bus, inputs)) in self.buses.iter_mut().zip(&mut self.inputs).enumerate() {
            bus.give_back(rack.head(node));
            *inputs = bus.inputs(|| rack.take_posted(node).map(|posted| (posted.word, posted.is_last)));
            *stores += u64::from(inputs.posted_valid && inputs.posted_last);
            if inputs.posted_valid || inputs.reg_valid {
                self.busy = self.cycle;
            }
        }
        self.hardware.step(&self.inputs, &mut self.outputs);
        self.cycle += 1;
        for node in 0..self.buses.len() {
            if let Some(write) = self.buses[node].outputs(&self.outputs[node]) {
                self.write(node, write);
            }
        }
    }

    fn write(&mut self, node: usize, write: Write) {
        self.rack.write(node, 8 * write.index as u64, write.word);
        self.busy = self.cycle;
        if write.is_header() {
            self.packets += 1;
            self.discard(node);
        }
    }

    fn report(mut self) -> ServiceReport {
        let (cycles, packets) = (self.cycle, self.packets);
        let [sent, received, errors] =
            [Control::Sent, Control::Received, Control::LinkErrors].map(|register| self.register(register));
        let faults = [Control::BadStores, Control::FaultNode, Control::FaultClosed, Control::FaultData];
        let faults = faults.map(|register| self.register(register));
        let node = |node: usize| NodeReport {
            sent: sent[node],
            received: received[node],
            dropped: faults.iter().map(|fault| fault[node]).sum(),
            link_errors: errors[node],
        };
        ServiceReport { cycles, packets, nodes: (0..self.buses.len()).map(node).collect() }
    }

    /// Reads a register of each node.
    fn register(&mut self, register: Control) -> Vec<u32> {
        self.buses.iter_mut().for_each(|bus| bus.ask(register));
        settle(&mut *self.hardware, &mut self.buses, &mut self.inputs, &mut self.outputs);
        self.buses.iter().map(|bus| bus.read).collect()
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("rack", &self.rack).field("cycle", &self.cycle).finish_non_exhaustive()
    }
}

/// Runs the clock, while no card is used and nothing is under way, until all requests to registers are answered.
fn settle(hardware: &mut dyn Hardware, buses: &mut [Bus], inputs: &mut [Inputs], outputs: &mut [Outputs]) {
    let mut is_last = false;
    while !is_last {
        is_last = buses.iter().all(Bus::is_settled);
        buses.iter_mut().zip(&mut *inputs).for_each(|(bus, inputs)| *inputs = bus.inputs(|| None));
        hardware.step(inputs, outputs);
        buses.iter_mut().zip(&*outputs).for_each(|(bus, outputs)| _ = bus.outputs(outputs));
    }
}

/// Waits between two looks at idle cards.
fn rest(idle: u32) {
    match idle {
        0..SPINS => std::hint::spin_loop(),
        SPINS..YIELDS => thread::yield_now(),
        _ => thread::sleep(NAP),
    }
}
