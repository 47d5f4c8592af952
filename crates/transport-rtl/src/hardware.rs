//! What the hardware shows to its hosts: the wires of each node at one edge of the clock.

/// What the host of a node puts on the bus for one cycle. The layout is that of `struct Inputs` in `sim/evb_velo.cpp`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Inputs {
    /// A word of a posted write, if `posted_valid`.
    pub posted_data: u64,
    /// What is written into a register, if `reg_valid` and `reg_write`.
    pub reg_data: u64,
    /// Address of the register.
    pub reg_address: u32,
    /// There is a word of a posted write.
    pub posted_valid: bool,
    /// It is the last of its transaction.
    pub posted_last: bool,
    /// The memory has taken one write.
    pub write_credit: bool,
    /// There is a request to a register.
    pub reg_valid: bool,
    /// It is a write.
    pub reg_write: bool,
}

/// What a node shows to its host behind an edge. The layout is that of `struct Outputs` in `sim/evb_velo.cpp`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Outputs {
    /// Where a word goes in the memory of the host, in bytes, if `write_valid`.
    pub write_address: u64,
    /// The word.
    pub write_data: u64,
    /// Answer to the read of two cycles ago.
    pub reg_read: u32,
    /// Room for one more word of posted writes.
    pub posted_credit: bool,
    /// There is a write to the memory of the host.
    pub write_valid: bool,
}

/// Some nodes with a network between them, and one clock.
pub trait Hardware: Send {
    /// Lets one cycle pass: `inputs` of each node are taken, then `outputs` of each are those of the next cycle.
    fn step(&mut self, inputs: &[Inputs], outputs: &mut [Outputs]);
}
