//! Wormhole: how long a worm stands on the links that it has taken.
//!
//! Byte k of a worm starts on its link i at X(i, k). Bytes follow each other, byte after byte; a switch passes a byte on
//! once it is there; and a byte is sent only when the byte `slack` places before it has left the buffer ahead and the
//! sender knows it. With equal byte times t, slack B, reaction r and G(i) = X(i, 0), the time of the grant, this
//! recurrence has the solution
//!
//! X(i, k) = max over m >= 0 with m B <= k of G(i + m) + m (t + r) + (k - m B) t,
//!
//! as long as B t is at least the round trip 2 t + link delay + switch delay + r, which the network's own checks demand.
//! So when a worm leaves a link depends only on the grants of the next few links, and is known once the last of these has
//! come; the destination takes bytes as they come.

use crate::packet::{Hop, Packet};
use evb_core::{Span, Time};

/// Parameters of wormhole flow: the slack buffers, and the time until the sender knows that there is room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wormhole {
    /// Bytes of a worm that a switch takes after it has stopped.
    pub(super) slack: u64,
    pub(super) reaction: Span,
}

impl Wormhole {
    /// Time at which a worm leaves the first of these links, which are all from there to its head; `None` as long as
    /// it is not known. `at_end` says that nothing can hold the worm up any more.
    #[inline]
    pub(super) fn left_at(self, worm: &Packet, links: &[Hop], at_end: bool) -> Option<Time> {
        let length = u64::from(worm.wire);
        // The byte that waits for the next grant to come is beyond the end of the worm, or not.
        let is_known = at_end || links.len() as u64 * self.slack >= length;
        is_known.then(|| self.tail_start(links, length, worm.pace) + worm.pace)
    }

    /// Time at which the last byte of a worm starts on the first of these links: the solution above for k = length - 1.
    fn tail_start(self, hops: &[Hop], length: u64, pace: Span) -> Time {
        let last = length - 1;
        let term = |(m, hop): (u64, &Hop)| hop.start + (pace + self.reaction) * m + pace * (last - m * self.slack);
        let within = (0..).zip(hops).take_while(|&(m, _)| m * self.slack <= last);
        within.map(term).max().expect("a worm has taken at least this link")
    }
}
