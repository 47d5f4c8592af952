//! Some nodes of a layer, numbered anew: a work may be for any of them, in any order.

use evb_core::{NodeId, Span};
use evb_transport::{MessageLayer, Refused, Take, VirtualTime};
use std::time::Duration;

/// A layer whose node `i` is the member `i`. Messages of other nodes are dropped.
pub(crate) struct Renumbered<'a, L: ?Sized> {
    layer: &'a mut L,
    members: &'a [NodeId],
    local: NodeId,
}

impl<'a, L: MessageLayer + ?Sized> Renumbered<'a, L> {
    /// The layer of one of the members; `None` if its node is none.
    pub(crate) fn new(layer: &'a mut L, members: &'a [NodeId]) -> Option<Self> {
        let local = number(members, layer.local())?;
        Some(Self { layer, members, local })
    }
}

fn number(members: &[NodeId], node: NodeId) -> Option<NodeId> {
    members.iter().position(|&member| member == node).map(|number| NodeId(number as u16))
}

impl<L: MessageLayer + ?Sized> MessageLayer for Renumbered<'_, L> {
    fn local(&self) -> NodeId {
        self.local
    }

    fn max_bytes(&self) -> usize {
        self.layer.max_bytes()
    }

    #[inline]
    fn send(&mut self, to: NodeId, bytes: &[u8]) -> Result<(), Refused> {
        let to = self.members.get(to.index()).ok_or(Refused::Lost)?;
        self.layer.send(*to, bytes)
    }

    #[inline]
    fn flush(&mut self) -> bool {
        self.layer.flush()
    }

    #[inline]
    fn receive(&mut self, limit: usize, take: &mut Take<'_>) -> usize {
        let members = self.members;
        self.layer.receive(limit, &mut |from, bytes| {
            if let Some(from) = number(members, from) {
                take(from, bytes);
            }
        })
    }

    fn lost(&mut self) -> Option<NodeId> {
        self.layer.lost().and_then(|node| number(self.members, node))
    }

    fn wait(&mut self, timeout: Duration) {
        self.layer.wait(timeout);
    }

    fn virtual_time(&self) -> Option<VirtualTime> {
        self.layer.virtual_time()
    }

    fn pass(&mut self, span: Span) {
        self.layer.pass(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_transport::OverTransport;
    use evb_transport_shm::in_process;

    #[test]
    fn members_know_each_other_by_their_new_numbers() {
        let mut layers: Vec<_> =
            in_process::connect(4, 16).into_iter().map(|node| OverTransport::new(node, 64)).collect();
        let members = [NodeId(3), NodeId(1)];
        assert!(Renumbered::new(&mut layers[0], &members).is_none());
        let [_, one, two, three] = &mut layers[..] else { panic!("four") };
        two.send(NodeId(1), b"stranger").unwrap();
        two.flush();
        let mut first = Renumbered::new(three, &members).unwrap();
        first.send(NodeId(1), b"hello").unwrap();
        assert_eq!(first.send(NodeId(2), b"lost"), Err(Refused::Lost));
        first.flush();
        let mut second = Renumbered::new(one, &members).unwrap();
        assert_eq!((first.local(), second.local()), (NodeId(0), NodeId(1)));
        let mut seen = Vec::new();
        while second.receive(8, &mut |from, bytes| seen.push((from, bytes.to_vec()))) > 0 {}
        assert_eq!(seen, [(NodeId(0), b"hello".to_vec())]);
    }
}
