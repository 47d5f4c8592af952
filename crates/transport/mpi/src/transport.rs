//! The transport: messages in frames, several in one if they are small, and large bodies beside them.

use crate::{
    MpiOptions,
    ffi::Receiving,
    kind::FrameKind,
    link::{Arrived, RankLink},
    waiting::Bell,
};
use evb_core::NodeId;
use evb_transport::{ChunkPool, Connect, HEAD_BYTES, JoinError, Message, Received, SendError, Transport, Waker};
use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

/// Bytes of a message in a frame without its body: the length of the body, and the head.
const ENTRY_BYTES: usize = 4 + HEAD_BYTES;
/// Most messages from one peer before the next has its turn.
const TURN: usize = 64;

/// The endpoint of one node, for whole messages.
pub struct Endpoint {
    link: RankLink,
    max_body: usize,
    /// The unfinished frame to each peer; empty if there is none.
    begun: Vec<Vec<u8>>,
    /// The peers with an unfinished frame.
    unsent: Vec<usize>,
    /// Items from each peer, in order.
    inboxes: Vec<VecDeque<Item>>,
    /// Memory of arrived bodies.
    chunks: ChunkPool,
    /// The peers with something in their inbox; the first one has the next turn.
    turns: VecDeque<usize>,
    /// A message was returned because of a full queue.
    starved: bool,
    bell: Arc<Bell>,
}

/// An item from a peer.
enum Item {
    Message {
        message: Message,
        /// True if the item is the last one of its frame.
        ends_frame: bool,
    },
    Large {
        head: [u8; HEAD_BYTES],
        body: Receiving,
        ends_frame: bool,
    },
    Goodbye,
}

impl Item {
    fn is_there(&mut self) -> bool {
        match self {
            Self::Large { body, .. } => body.poll(),
            Self::Message { .. } | Self::Goodbye => true,
        }
    }
}

/// Returns true if a body of this length does not fit into a frame.
fn is_large(link: &RankLink, length: usize) -> bool {
    ENTRY_BYTES + length > link.frame_bytes()
}

impl Endpoint {
    pub(crate) fn new(link: RankLink, options: &MpiOptions) -> Self {
        let nodes = link.places().len();
        Self {
            link,
            max_body: options.max_body,
            begun: vec![Vec::new(); nodes],
            unsent: Vec::new(),
            inboxes: (0..nodes).map(|_| VecDeque::new()).collect(),
            chunks: ChunkPool::default(),
            turns: VecDeque::new(),
            starved: false,
            bell: Arc::default(),
        }
    }

    fn has_room(&self, to: usize, length: usize) -> bool {
        let (large, begun) = (is_large(&self.link, length), &self.begun[to]);
        let needed = ENTRY_BYTES + if large { 0 } else { length };
        let fits = !begun.is_empty() && begun.len() + needed <= self.link.frame_bytes();
        (fits || begun.is_empty() || self.link.has_credit(to)) && (!large || self.link.has_body_credit(to))
    }

    /// Puts a message into the unfinished frame, or into a new one.
    fn put(&mut self, to: usize, message: Message) {
        let (length, large) = (message.body.len(), is_large(&self.link, message.body.len()));
        let needed = ENTRY_BYTES + if large { 0 } else { length };
        let frame = &mut self.begun[to];
        if frame.is_empty() {
            self.unsent.push(to);
        } else if frame.len() + needed > self.link.frame_bytes() {
            self.link.send(to, FrameKind::Data, frame);
        }
        if frame.capacity() == 0 {
            *frame = self.link.empty_frame();
        }
        frame.extend_from_slice(&(length as u32).to_le_bytes());
        frame.extend_from_slice(&message.head);
        if large {
            self.link.send_body(to, message.body);
        } else {
            frame.extend_from_slice(&message.body);
        }
    }

    /// Sends the unfinished frames as far as there is credit.
    fn send_begun(&mut self) {
        let (link, begun) = (&mut self.link, &mut self.begun);
        self.unsent.retain(|&to| {
            if link.is_here(to) && !link.has_credit(to) {
                return true;
            }
            if link.is_here(to) {
                link.send(to, FrameKind::Data, &mut begun[to]);
            }
            begun[to].clear();
            false
        });
    }

    /// Moves arrived frames into the inboxes, until there are `wanted` more items. The windows of the peers bound the
    /// inboxes.
    fn pump(&mut self, wanted: usize) {
        let mut count = 0;
        while count < wanted
            && let Some(Arrived { from, kind }) = self.link.peek()
        {
            let before = self.inboxes[from].len();
            if before == 0 {
                self.turns.push_back(from);
            }
            match kind {
                FrameKind::Goodbye => self.inboxes[from].push_back(Item::Goodbye),
                _ => self.unpack(from),
            }
            count += self.inboxes[from].len() - before;
            self.link.release();
        }
    }

    /// Takes the messages out of the arrived frame.
    fn unpack(&mut self, from: usize) {
        let inbox = &mut self.inboxes[from];
        let mut rest = self.link.payload();
        while let Some((length, after)) = rest.split_first_chunk()
            && let Some((&head, after)) = after.split_first_chunk()
        {
            let length = u32::from_le_bytes(*length) as usize;
            if is_large(&self.link, length) {
                let body = self.link.receive_body(from, self.chunks.buffer(length));
                inbox.push_back(Item::Large { head, body, ends_frame: after.is_empty() });
                rest = after;
            } else {
                let Some((body, after)) = after.split_at_checked(length) else { break };
                let message = Message { head, body: self.chunks.copy(body) };
                inbox.push_back(Item::Message { message, ends_frame: after.is_empty() });
                rest = after;
            }
        }
    }

    /// Delivers at most `limit` items of one peer; returns their number.
    fn take(&mut self, from: usize, limit: usize, sink: &mut Vec<Received>) -> usize {
        let node = NodeId(from as u16);
        let mut count = 0;
        while count < limit && self.inboxes[from].front_mut().is_some_and(Item::is_there) {
            let Some(item) = self.inboxes[from].pop_front() else { break };
            let (message, ends_frame, large) = match item {
                Item::Message { message, ends_frame } => (message, ends_frame, 0),
                Item::Large { head, body, ends_frame } => {
                    let (room, length) = body.into_room().unwrap_or_default();
                    (Message { head, body: self.chunks.lend(room, length) }, ends_frame, length)
                }
                Item::Goodbye => {
                    sink.push(Received::Lost { peer: node, reason: "the peer left".into() });
                    count += 1;
                    continue;
                }
            };
            self.link.took(from, u32::from(ends_frame), large);
            sink.push(Received::Message { from: node, message });
            count += 1;
        }
        count
    }

    /// Returns true if `receive` has something, or sends make progress.
    fn is_ready(&mut self) -> bool {
        self.pump(1);
        if self.link.is_sending() {
            self.link.progress();
        }
        let waits_to_send = self.starved || !self.unsent.is_empty() || self.link.is_sending();
        (waits_to_send && self.link.moved)
            || self.turns.iter().any(|&from| self.inboxes[from].front_mut().is_some_and(Item::is_there))
    }
}

impl Transport for Endpoint {
    fn local(&self) -> NodeId {
        self.link.local
    }

    fn send(&mut self, to: NodeId, message: Message) -> Result<(), SendError> {
        let (to, length, limit) = (to.index(), message.body.len(), self.max_body);
        if length > limit {
            return Err(SendError::TooLarge { length, limit });
        }
        if self.link.is_here(to) && !self.has_room(to, length) {
            self.pump(usize::MAX);
        }
        if !self.link.is_here(to) {
            return Err(SendError::Lost);
        }
        if !self.has_room(to, length) {
            (self.starved, self.link.moved) = (true, false);
            return Err(SendError::Full(message));
        }
        self.put(to, message);
        Ok(())
    }

    fn flush(&mut self) -> bool {
        self.send_begun();
        if !self.unsent.is_empty() {
            self.pump(usize::MAX);
            self.send_begun();
        }
        self.link.moved = false;
        self.link.progress() && self.unsent.is_empty()
    }

    fn receive(&mut self, limit: usize, sink: &mut Vec<Received>) -> usize {
        self.pump(limit);
        let (mut count, mut idle) = (0, 0);
        while count < limit && idle < self.turns.len() {
            let Some(from) = self.turns.pop_front() else { break };
            let taken = self.take(from, TURN.min(limit - count), sink);
            if !self.inboxes[from].is_empty() {
                self.turns.push_back(from);
            }
            idle = if taken == 0 { idle + 1 } else { 0 };
            count += taken;
        }
        count
    }

    fn wait(&mut self, timeout: Duration) {
        let bell = Arc::clone(&self.bell);
        bell.wait(timeout, || self.is_ready());
        self.starved = false;
    }

    fn waker(&self) -> Waker {
        Bell::waker(&self.bell)
    }
}

impl Connect for Endpoint {
    /// The address: `mpi:` and the rank.
    fn address(&self) -> String {
        address(&self.link, self.link.local.index())
    }

    /// Compares the addresses of the peers with the placement. The peers are connected from the start.
    fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), JoinError> {
        let wrong = |(node, text): &&(NodeId, String)| {
            node.index() >= self.link.places().len() || *text != address(&self.link, node.index())
        };
        match peers.iter().find(wrong) {
            Some((node, text)) => {
                Err(JoinError::new(format!("{node} is at {text:?}, and was not placed there when MPI was started")))
            }
            None => Ok(()),
        }
    }
}

fn address(link: &RankLink, node: usize) -> String {
    format!("mpi:{}", link.places().rank(node))
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("local", &self.link.local).finish_non_exhaustive()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.send_begun();
        for item in self.inboxes.drain(..).flatten() {
            if let Item::Large { body, .. } = item {
                body.cancel();
            }
        }
    }
}
