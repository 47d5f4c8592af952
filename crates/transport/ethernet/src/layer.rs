//! The message layer of a node: messages are bytes, which are borrowed for a call and have no heads.

use crate::{Endpoint, EthernetOptions, endpoint::WRITE_AHEAD_BYTES, wire::Wire};
use evb_core::NodeId;
use evb_transport::{Connect, JoinError, MessageLayer, Refused, Take, Transport};
use std::{io, time::Duration};

/// The message layer of one node on a wire.
pub struct EndpointLayer<W: Wire> {
    endpoint: Endpoint<W>,
    max_bytes: usize,
    lost: Vec<NodeId>,
}

impl<W: Wire> EndpointLayer<W> {
    /// Opens the layer of node `local` on a wire; its longest message is the longest body of the options.
    ///
    /// # Errors
    /// If the system refuses a thread or a file.
    ///
    /// # Panics
    /// If `local` is not below `options.endpoint.nodes`.
    pub fn open(local: NodeId, options: EthernetOptions, wire: W) -> io::Result<Self> {
        let max_bytes = options.endpoint.max_body;
        Ok(Self { endpoint: Endpoint::start(local, options, wire, true)?, max_bytes, lost: Vec::new() })
    }
}

impl<W: Wire> MessageLayer for EndpointLayer<W> {
    fn local(&self) -> NodeId {
        self.endpoint.local()
    }

    fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    #[inline]
    fn send(&mut self, to: NodeId, bytes: &[u8]) -> Result<(), Refused> {
        let mut core = self.endpoint.lock();
        let result = core.machine.send_bytes(to, bytes);
        match result {
            Ok(()) if core.machine.waiting_bytes(to) < WRITE_AHEAD_BYTES => Ok(()),
            Ok(()) => {
                let now = core.now();
                core.push_out(now);
                Ok(())
            }
            Err(Refused::Full) => {
                core.poll();
                core.machine.send_bytes(to, bytes)
            }
            Err(error) => Err(error),
        }
    }

    fn flush(&mut self) -> bool {
        Transport::flush(&mut self.endpoint)
    }

    #[inline]
    fn receive(&mut self, limit: usize, take: &mut Take<'_>) -> usize {
        let mut core = self.endpoint.lock();
        let now = core.poll();
        core.machine.receive_bytes(now, limit, take, &mut self.lost)
    }

    fn lost(&mut self) -> Option<NodeId> {
        self.lost.pop()
    }

    fn wait(&mut self, timeout: Duration) {
        Transport::wait(&mut self.endpoint, timeout);
    }
}

impl<W: Wire> Connect for EndpointLayer<W> {
    fn address(&self) -> String {
        Connect::address(&self.endpoint)
    }

    fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), JoinError> {
        Connect::connect(&mut self.endpoint, peers)
    }
}
