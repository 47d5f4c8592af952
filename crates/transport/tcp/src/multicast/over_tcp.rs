//! Reliable multicast over TCP: how the nodes find their group. The nodes know each other's addresses, which carry the
//! port of a group and its tag, too. All take the group of the node with the lowest id, if each of them has one.

use super::{
    SEPARATOR,
    group::Group,
    reliable::{MulticastOptions, ReliableMulticast},
    wire::Tag,
};
use crate::Tcp;
use evb_core::NodeId;
use evb_transport::{Connect, JoinError, Transport};

/// The word in place of a port at a node without multicast.
const NO_PORT: &str = "-";

impl ReliableMulticast<Tcp, Group> {
    /// Adds multicast to an endpoint that is not connected yet. If there is none, all
    /// nodes send copies, and say so.
    pub fn over_tcp(transport: Tcp, options: MulticastOptions) -> Self {
        let interface = options.interface;
        let mut tag = [0; 12];
        let joined = match getrandom::fill(&mut tag) {
            Ok(()) => Group::join(interface, 0).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let (group, problem) = match joined {
            Ok(group) => (Some(group), None),
            Err(error) => (None, Some(error)),
        };
        let mut this = Self::new(transport, group, Tag::new(tag), options);
        if let Some(problem) = problem {
            this.fall_back(format!("there is no multicast at {interface}: {problem}"));
        }
        this
    }

    /// Takes the group of the node with the lowest id, since all nodes must have one.
    fn join_first(&mut self, node: NodeId, theirs: &str) -> Result<(), JoinError> {
        let wrong = || JoinError::new(format!("{theirs:?} of {node} is not a multicast group"));
        let (port, tag) = theirs.split_once(SEPARATOR).ok_or_else(wrong)?;
        (self.tag, self.group) = (tag.parse().map_err(|_| wrong())?, None);
        match Group::join(self.options.interface, port.parse().map_err(|_| wrong())?) {
            Ok(group) => self.group = Some(group),
            // It receives no datagram, and asks for each broadcast: the other nodes fall back, too.
            Err(error) => self.fall_back(format!("it cannot join the group: {error}")),
        }
        Ok(())
    }

    /// Uses the group if all nodes have multicast.
    fn agree(&mut self, peers: &[(NodeId, &str)]) -> Result<(), JoinError> {
        let local = self.local();
        if let Some((node, _)) = peers.iter().find(|(_, theirs)| *theirs == NO_PORT) {
            self.fall_back(format!("{node} has no multicast"));
        }
        if self.state.fell_back.is_some() {
            self.group = None;
            return Ok(());
        }
        self.is_numbered = true;
        match peers.iter().min().filter(|(node, _)| *node < local) {
            Some((node, theirs)) => self.join_first(*node, theirs),
            None => Ok(()),
        }
    }
}

impl Connect for ReliableMulticast<Tcp, Group> {
    fn address(&self) -> String {
        let below = Connect::address(&self.transport);
        match &self.group {
            Some(group) => format!("{below}{SEPARATOR}{}{SEPARATOR}{}", group.port(), self.tag),
            None => format!("{below}{SEPARATOR}{NO_PORT}"),
        }
    }

    fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), JoinError> {
        let (mut below, mut groups) = (Vec::new(), Vec::new());
        for (node, text) in peers {
            let parts = text.split_once(SEPARATOR);
            let (address, group) =
                parts.ok_or_else(|| JoinError::new(format!("{text:?} of {node} has no multicast group")))?;
            below.push((*node, address.to_owned()));
            groups.push((*node, group));
        }
        self.agree(&groups)?;
        Connect::connect(&mut self.transport, &below)?;
        if let Some(group) = &mut self.group {
            self.transport.watch(&mut group.socket).map_err(|error| JoinError::new(format!("multicast: {error}")))?;
        }
        Ok(())
    }
}
