//! The memory that a live source takes beside the fragments that its unit holds.

use super::{
    outlet::Outlet,
    readers::{MAX_CONNECTIONS, READ_SIZE},
    streams::MOST_FLOWS,
};
use crate::{FrontEndLink, LiveSpec, slicer::MOST_OPEN, stream_buffer::StreamBuffer};

impl LiveSpec {
    /// Most bytes that the source takes for fragments of up to `max_fragment` bytes, until its unit has taken them: those in its
    /// queue, the blocks that its connections read into and keep to use them again, and hits in open slices.
    pub fn most_memory(&self, max_fragment: u32) -> u64 {
        let connections = self.most_streams() as u64;
        let of_each = StreamBuffer::most_memory(max_fragment as usize, READ_SIZE).saturating_add(READ_SIZE as u64);
        let slices = if self.slices.is_some() { MOST_OPEN as u64 } else { 0 };
        connections.saturating_mul(of_each).saturating_add(Outlet::most_memory(max_fragment)).saturating_add(slices)
    }

    /// Most streams of bytes that are cut into frames at a time.
    fn most_streams(&self) -> usize {
        let goes_across = self.framing.as_ref().is_some_and(|framing| framing.across_datagrams);
        match self.link {
            FrontEndLink::Tcp(_) => MAX_CONNECTIONS,
            FrontEndLink::Udp(_) | FrontEndLink::Capture { .. } if goes_across => MOST_FLOWS,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_core::EventCounter;

    #[test]
    fn each_connection_may_keep_blocks() {
        let of = |link| {
            let (counter, shared) = (EventCounter::new(32), Vec::new());
            LiveSpec { link, counter, framing: None, slices: None, control: None, shared }.most_memory(1 << 20)
        };
        let (one, many) = (of(FrontEndLink::TcpClient("a:1".into())), of(FrontEndLink::Tcp("a:1".into())));
        // Two blocks for a frame of a MiB and a read, 32 MiB that wait, and 64 MiB in the queue and with its taker.
        assert_eq!(one, (4 << 20) + (32 << 20) + READ_SIZE as u64 + (64 << 20));
        assert_eq!(many - one, 15 * (one - (64 << 20)));
    }
}
