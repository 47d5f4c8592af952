//! Joining: a node asks all others of the network for its peer, and both prove that they have the token.

use super::{Machine, Queued};
use crate::{
    frame::{Header, Mac, ethernet},
    hello::{Hello, Terms},
    keys::{NONCE_BYTES, Nonce, Pair},
    link::{LinkLimits, PeerLink, SessionNames},
};
use evb_core::{NodeId, Span, Time};

/// Time between two questions for a peer: the first one, which doubles, and the longest.
const FIRST_PAUSE: Span = Span::from_millis(5);
const LONGEST_PAUSE: Span = Span::from_millis(100);
/// Fewest frames and bytes that make sense in the terms of a peer.
const LEAST_PAYLOAD: u16 = 64;
const LEAST_WINDOW: u32 = 1;

/// The reason why a peer cannot join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinFailure {
    /// It has refused this node.
    Refused,
}

/// A peer that is expected, or has joined: it may not know yet.
#[derive(Debug)]
pub(crate) struct Joining {
    /// This node's nonce for the peer, and that of the peer when it has proved that it has the token.
    nonce: Nonce,
    theirs: Option<Nonce>,
    mac: Mac,
    next: Time,
    pause: Span,
    is_refused: bool,
}

impl Machine {
    /// Expects a peer, for which this nonce was drawn, and asks for it.
    pub(crate) fn expect(&mut self, now: Time, peer: NodeId, nonce: Nonce) {
        let joining = Joining { nonce, theirs: None, mac: Mac::ALL, next: now, pause: FIRST_PAUSE, is_refused: false };
        self.joining[peer.index()] = Some(Box::new(joining));
        self.timer = Time::ZERO;
    }

    /// Returns true if this node may still expect that peer.
    pub(crate) fn can_expect(&self, peer: NodeId) -> bool {
        peer != self.local && self.joining.get(peer.index()).is_some_and(Option::is_none)
    }

    /// Returns true if the peer has joined: both know that the other has the token.
    pub(crate) fn has_joined(&self, peer: NodeId) -> Result<bool, JoinFailure> {
        let refused = self.joining[peer.index()].as_deref().is_some_and(|joining| joining.is_refused);
        if refused {
            return Err(JoinFailure::Refused);
        }
        Ok(self.links[peer.index()].as_deref().is_some_and(|link| link.is_accepted))
    }

    /// Asks for a peer that has not joined yet, when it is time.
    pub(super) fn ask_again(&mut self, now: Time, index: usize) {
        if self.links[index].as_deref().is_some_and(|link| link.is_accepted) {
            return;
        }
        let Some(joining) = self.joining[index].as_deref_mut() else { return };
        if now >= joining.next {
            joining.next = Time(now.0 + joining.pause.0);
            joining.pause = Span(2 * joining.pause.0).min(LONGEST_PAUSE);
            self.greet(NodeId(index as u16));
        }
        let next = self.joining[index].as_deref().map_or(Time::MAX, |joining| joining.next);
        self.timer = self.timer.min(next);
    }

    /// Sends a hello to a peer: to all interfaces while its address is not known.
    fn greet(&mut self, to: NodeId) {
        let Some(joining) = self.joining[to.index()].as_deref() else { return };
        let theirs = joining.theirs.unwrap_or([0; NONCE_BYTES]);
        let pair = Pair { nodes: [self.local, to], nonces: [joining.nonce, theirs] };
        let hello = Hello::encode(&self.keys, &pair, &self.terms(joining.theirs.is_some(), false));
        let frame = self.hello_frame(to, joining.mac, &hello);
        self.queue.push_back(Queued::Other(frame));
    }

    fn terms(&self, knows: bool, refuses: bool) -> Terms {
        let (nodes, payload) = (self.options.endpoint.nodes, self.payload() as u16);
        Terms { nodes, payload, window: self.window(), knows, refuses, is_layer: self.is_layer }
    }

    pub(super) fn hear_hello(&mut self, now: Time, mac: Mac, header: &Header, payload: &[u8]) {
        let from = header.from;
        let Some(hello) = Hello::decode(payload).filter(|hello| hello.is_signed(&self.keys, from, self.local)) else {
            return self.counts.foreign += 1;
        };
        let does_fit = hello.terms.nodes == self.options.endpoint.nodes && hello.terms.is_layer == self.is_layer;
        let Some(joining) = self.joining.get_mut(from.index()).and_then(Option::as_deref_mut) else {
            // It may be expected in a moment, unless its terms do not fit.
            return if !does_fit {
                self.refuse(mac, from, &hello)
            };
        };
        let is_known = joining.theirs == Some(hello.nonce);
        if !is_known && joining.theirs.is_some() {
            return self.counts.foreign += 1;
        }
        joining.mac = mac;
        if !hello.is_proved(&self.keys, from, self.local, joining.nonce) {
            // The peer does not know this node's nonce yet: a question gets an answer, whose echo is that of the question.
            return self.answer(from, hello.nonce);
        }
        if hello.terms.refuses || !does_fit {
            joining.is_refused = true;
            return if !hello.terms.refuses {
                self.refuse(mac, from, &hello)
            };
        }
        joining.theirs = Some(hello.nonce);
        if !is_known {
            self.open(now, from, mac, &hello);
        }
        if !hello.terms.knows {
            self.greet(from);
        }
        self.show_session(now, from);
    }

    /// Sends a hello that proves the token for the nonce of a question. Only that makes the question's sender known.
    fn answer(&mut self, to: NodeId, nonce: Nonce) {
        let Some(joining) = self.joining[to.index()].as_deref() else { return };
        let pair = Pair { nodes: [self.local, to], nonces: [joining.nonce, nonce] };
        let hello = Hello::encode(&self.keys, &pair, &self.terms(joining.theirs.is_some(), false));
        let frame = self.hello_frame(to, joining.mac, &hello);
        self.queue.push_back(Queued::Other(frame));
    }

    fn refuse(&mut self, mac: Mac, to: NodeId, hello: &Hello) {
        let pair = Pair { nodes: [self.local, to], nonces: [[0; NONCE_BYTES], hello.nonce] };
        let frame = self.hello_frame(to, mac, &Hello::encode(&self.keys, &pair, &self.terms(false, true)));
        self.queue.push_back(Queued::Other(frame));
    }

    /// Opens the link to a peer that has proved that it has the token.
    fn open(&mut self, now: Time, peer: NodeId, mac: Mac, hello: &Hello) {
        let Some(mine) = self.joining[peer.index()].as_deref().map(|joining| joining.nonce) else { return };
        let session = |nodes, nonces| self.keys.session(&Pair { nodes, nonces });
        let names = SessionNames {
            run: self.run,
            local: self.local,
            peer,
            outward: session([self.local, peer], [mine, hello.nonce]),
            inward: session([peer, self.local], [hello.nonce, mine]),
        };
        let bounds = LinkLimits {
            payload: self.payload().min(hello.terms.payload.max(LEAST_PAYLOAD).into()),
            granted: hello.terms.window.max(LEAST_WINDOW),
            window: self.window(),
            max_body: self.options.endpoint.max_body,
            is_layer: self.is_layer,
            pace: self.pace(),
        };
        let ethernet = ethernet(mac, self.port.mac, self.options.priority);
        self.links[peer.index()] = Some(Box::new(PeerLink::new(now, names, ethernet, &bounds)));
    }

    /// Sends a frame of the session, which shows the peer that this node knows it.
    fn show_session(&mut self, now: Time, peer: NodeId) {
        if let Some(link) = self.links[peer.index()].as_deref_mut() {
            link.show();
        }
        self.note(now, peer.index());
    }
}
