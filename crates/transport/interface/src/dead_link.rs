//! Links that died although their peers live.

use evb_core::NodeId;

/// A link that died while its peer lives on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLink {
    /// The link, as it was opened.
    pub link: String,
    /// The peer.
    pub peer: NodeId,
    /// The reason, for people.
    pub reason: String,
}
