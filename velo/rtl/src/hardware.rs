//! The interface of the hardware to its hosts: the wires of each node at one edge of the clock.

/// Signals from the host of a node to the bus in one cycle. The layout is that of `struct Inputs` in
/// `sim/evb_velo.cpp`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Inputs {
    /// A word of a posted write, if `posted_valid`.
    pub posted_data: u64,
    /// The word written into a register, if `reg_valid` and `reg_write`.
    pub reg_data: u64,
    /// Address of the register.
    pub reg_address: u32,
    /// True if there is a word of a posted write.
    pub posted_valid: bool,
    /// True if the word is the last of its transaction.
    pub posted_last: bool,
    /// True if the memory has taken one write.
    pub write_credit: bool,
    /// True if there is a request to a register.
    pub reg_valid: bool,
    /// True if the request is a write.
    pub reg_write: bool,
}

/// Signals from a node to its host after an edge. The layout is that of `struct Outputs` in `sim/evb_velo.cpp`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Outputs {
    /// Address of a word in the memory of the host, in bytes, if `write_valid`.
    pub write_address: u64,
    /// The word.
    pub write_data: u64,
    /// Answer to the read of two cycles ago.
    pub reg_read: u32,
    /// Room for one more word of posted writes.
    pub posted_credit: bool,
    /// True if there is a write to the memory of the host.
    pub write_valid: bool,
}

/// Nodes with a network between them, and one clock.
pub trait Hardware: Send {
    /// Runs one cycle: takes the `inputs` of each node, then sets the `outputs` of each to those of the next cycle.
    fn step(&mut self, inputs: &[Inputs], outputs: &mut [Outputs]);
}
