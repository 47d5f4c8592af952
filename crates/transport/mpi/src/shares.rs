//! The fair share of the window for each of several senders.
//!
//! MPI keeps eager messages that the receiver has not asked for, without a bound, and all senders share its short
//! queues, which the first to run fills. So a sender needs a credit for each frame, and the receiver keeps some credits
//! back while several send.

use crate::link::WINDOW;

/// Fewest frames under way from one node to another while many send.
const LEAST_SHARE: u32 = 4;
/// Limits on the credits that peers get back. A round is as many frames as there are posted receives. The peers that
/// sent in the last round, and one more that may begin, share the window.
pub(crate) struct Shares {
    pub(crate) round: u64,
    /// Peers that sent in this round.
    pub(crate) heard: u32,
    /// Frames that each peer may have under way.
    share: u32,
}

impl Shares {
    pub(crate) fn new() -> Self {
        Self { round: 1, heard: 0, share: WINDOW / 2 }
    }

    pub(crate) fn next_round(&mut self) {
        self.share = (WINDOW / (self.heard + 1)).clamp(LEAST_SHARE, WINDOW / 2);
        (self.round, self.heard) = (self.round + 1, 0);
    }

    /// Number of taken frames of a peer that may return as credits.
    #[inline]
    pub(crate) fn payable(&self, taken: u32) -> u32 {
        taken.saturating_sub(WINDOW - self.share)
    }

    /// Returns true if credits should return at once, without waiting for a frame to the peer.
    #[inline]
    pub(crate) fn is_due(&self, taken: u32) -> bool {
        self.payable(taken) >= self.share / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::MOST_CREDITS;

    #[test]
    fn a_share_never_stops_a_peer() {
        for heard in [0, 1, 3, 64, 1000] {
            let mut shares = Shares::new();
            shares.heard = heard;
            shares.next_round();
            // When all that was sent has been taken, some of it comes back.
            assert!(shares.is_due(WINDOW) && shares.payable(WINDOW) >= LEAST_SHARE);
            assert!(shares.payable(WINDOW) <= MOST_CREDITS);
            assert_eq!(shares.heard, 0);
        }
    }
}
