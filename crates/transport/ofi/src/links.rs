//! Numbered messages between a node and its peers, for transport and layer alike. Each message arrives once and in
//! order, never more than the receiver has buffers for, and only from peers that have shown the token.

mod control;
mod join;
mod progress;
mod receive;
mod rooms;
mod send;

use crate::{
    OfiError, OfiOptions,
    control::{CONTROL_BYTES, Hello, Terms},
    ffi::{Endpoint, Operation},
    peer::Peer,
    rooms::ROOMS,
    tags::Tags,
};
use evb_core::NodeId;
use evb_transport::{Parker, Yielder};
use std::{collections::VecDeque, time::Instant};

/// Longest message that is received into a shared buffer. With its header it fits into the 48 KiB up to which `ofi_rxm`
/// sends a message without asking the receiver. Messages as long as a segment of TCP (64 KiB on the loopback) make a sender
/// that has few under way wait for delayed acknowledgements: it had a twentieth of the rate of others.
pub(crate) const FRAME_BYTES: usize = (48 << 10) - 512;
/// Inject size from which a provider takes small messages without the receiver's help, up to that size and no further.
const LEAST_INJECT: usize = 1 << 10;
/// Buffers beyond the credits: for strangers and hellos, and for each peer's offers, its question for a room and its
/// progress.
const SPARE_BUFFERS: usize = 32;
const SPARE_BUFFERS_PER_PEER: usize = ROOMS + 5;
/// Part of the provider's receives for small messages; the rest is for rooms.
const SMALL_RECEIVES: (usize, usize) = (3, 4);
/// Fewest credits that are usable: the peer hears of free buffers after half of them.
const LEAST_CREDITS: usize = 2;

/// The purpose of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BufferRole {
    /// Receives from anybody.
    Receive { large: bool },
    /// Sends its own memory.
    Slot { to: u16, large: bool },
    /// Sends a control message.
    Control { to: u16 },
    /// Sends a long message whose body has this length.
    Long { to: u16, bytes: usize },
    /// Is a room for a long message of this peer.
    Room { from: u16 },
    /// Is a room that was offered to a peer which is gone.
    Orphan,
    /// No purpose.
    Free,
}

/// The way of receiving large messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LongReceives {
    /// Into `count` buffers of `bytes` bytes, from any peer.
    Buffers { count: usize, bytes: usize },
    /// Into rooms that were offered to the peer, written by it if the provider can do that and the options allow it.
    Rooms,
}

/// A node's endpoint, its peers and its buffers.
pub(crate) struct Links {
    pub(crate) local: NodeId,
    pub(crate) options: OfiOptions,
    endpoint: Endpoint,
    tags: Tags,
    terms: Terms,
    pub(crate) peers: Vec<Option<Box<Peer>>>,
    roles: Vec<BufferRole>,
    /// Receives that are not posted, by size.
    idle_receives: [Vec<Operation>; 2],
    /// Free slots to send from, small and large; the limit and the number of slots.
    slots: [Vec<Operation>; 2],
    controls: Vec<Operation>,
    /// Peers that may have something for the user.
    pub(crate) active: VecDeque<u16>,
    /// Peers that wait for a status.
    owing: VecDeque<u16>,
    /// Peers that wait for something about rooms.
    noting: VecDeque<u16>,
    /// Hellos of nodes that the user has not named yet.
    early: Vec<Option<Hello>>,
    pub(crate) parker: Parker,
    yielder: Yielder,
    /// True if something arrived or left since the flag was cleared.
    pub(crate) moved: bool,
    /// True if the provider had no room for something.
    blocked: bool,
    polls: u32,
    last_tick: Instant,
    /// True if the goodbyes were sent.
    left: bool,
    pub(crate) rejected: u64,
}

impl Links {
    pub(crate) fn open(
        local: NodeId,
        options: OfiOptions,
        large: LongReceives,
        sleeps: bool,
    ) -> Result<Self, OfiError> {
        assert!(local.0 < options.endpoint.nodes, "{local} is not one of {} nodes", options.endpoint.nodes);
        let writes = large == LongReceives::Rooms && options.writes;
        let endpoint = Endpoint::open(&options.provider, options.source(), sleeps, writes)?;
        let tags = Tags::new(endpoint.limits().tag_format).ok_or_else(|| OfiError::Option {
            reason: format!("the tags of {} have too few bits", endpoint.provider()),
        })?;
        let nodes = usize::from(options.endpoint.nodes);
        let parker = Parker::new().map_err(|error| OfiError::Call { call: "socketpair", reason: error.to_string() })?;
        let mut new = Self {
            local,
            terms: terms(&options, &endpoint, large)?,
            endpoint,
            tags,
            peers: (0..nodes).map(|_| None).collect(),
            roles: Vec::new(),
            idle_receives: Default::default(),
            slots: Default::default(),
            controls: Vec::new(),
            active: VecDeque::new(),
            owing: VecDeque::new(),
            noting: VecDeque::new(),
            early: vec![None; nodes],
            parker,
            yielder: Yielder::default(),
            moved: false,
            blocked: false,
            polls: 0,
            last_tick: Instant::now(),
            left: false,
            rejected: 0,
            options,
        };
        new.add_buffers(large)?;
        Ok(new)
    }

    fn add_buffers(&mut self, large: LongReceives) -> Result<(), OfiError> {
        let peers = self.peers.len() - 1;
        let receives = peers * (usize::from(self.terms.credits) + SPARE_BUFFERS_PER_PEER) + SPARE_BUFFERS;
        let small = self.frame_bytes().max(CONTROL_BYTES);
        self.idle_receives[0] = self.add(receives, small, BufferRole::Receive { large: false })?;
        self.controls = self.add(2 * peers + 2, CONTROL_BYTES, BufferRole::Free)?;
        if let LongReceives::Buffers { count, bytes } = large {
            self.idle_receives[1] = self.add(count, bytes, BufferRole::Receive { large: true })?;
            self.slots[1] = self.add(count, bytes, BufferRole::Free)?;
        }
        self.post_receives();
        Ok(())
    }

    fn add(&mut self, count: usize, bytes: usize, role: BufferRole) -> Result<Vec<Operation>, OfiError> {
        let operations = self.endpoint.add_slab(count, bytes)?;
        operations.iter().for_each(|&operation| self.set_role(operation, role));
        Ok(operations)
    }

    fn set_role(&mut self, operation: Operation, role: BufferRole) {
        if self.roles.len() <= operation.index() {
            self.roles.resize(operation.index() + 1, BufferRole::Free);
        }
        self.roles[operation.index()] = role;
    }

    /// Longest message that uses a small buffer.
    #[inline]
    pub(crate) fn frame_bytes(&self) -> usize {
        self.terms.frame_bytes as usize
    }

    /// The provider's full name.
    pub(crate) fn provider(&self) -> String {
        self.endpoint.provider()
    }

    /// Longest message that is better injected than sent from a slot, in bytes.
    pub(crate) fn inject_bytes(&self) -> usize {
        self.endpoint.limits().inject_bytes
    }

    #[inline]
    pub(crate) fn peer(&mut self, index: usize) -> Option<&mut Peer> {
        self.peers.get_mut(index)?.as_deref_mut()
    }

    /// Marks a peer that may have something for the user.
    #[inline]
    pub(crate) fn activate(&mut self, index: usize) {
        if let Some(peer) = self.peers[index].as_deref_mut()
            && !peer.active
        {
            peer.active = true;
            self.active.push_back(index as u16);
        }
    }
}

/// Parameters that all nodes compute alike. There are as many credits as requested, or as there can be receives: a
/// provider keeps a message without a receive at the cost of a copy, and `shm` of libfabric 1.17 never finds it again.
fn terms(options: &OfiOptions, endpoint: &Endpoint, large: LongReceives) -> Result<Terms, OfiError> {
    let inject = endpoint.limits().inject_bytes;
    let frame = if inject >= LEAST_INJECT { FRAME_BYTES.min(inject) } else { FRAME_BYTES };
    let frame = frame.min(endpoint.limits().max_bytes);
    let receives = endpoint.limits().receives * SMALL_RECEIVES.0 / SMALL_RECEIVES.1;
    let for_each = receives.saturating_sub(SPARE_BUFFERS) / usize::from(options.endpoint.nodes - 1).max(1);
    let credits = for_each.saturating_sub(SPARE_BUFFERS_PER_PEER);
    let credits = credits.min(options.credits.into());
    if credits < LEAST_CREDITS {
        let (nodes, provider) = (options.endpoint.nodes, endpoint.provider());
        let reason = format!("{credits} credits for {nodes} nodes over {provider} are less than {LEAST_CREDITS}");
        return Err(OfiError::Option { reason });
    }
    let max_bytes = match large {
        LongReceives::Rooms => options.endpoint.max_body as u64,
        LongReceives::Buffers { bytes, .. } => Terms::LAYER | bytes as u64,
    };
    let (credits, frame_bytes, writes) = (credits as u16, frame as u32, endpoint.limits().writes);
    Ok(Terms { nodes: options.endpoint.nodes, credits, frame_bytes, max_bytes, writes })
}
