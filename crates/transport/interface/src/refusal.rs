//! Why a peer refuses a node, whatever the transport.

use std::fmt;

/// The reason why a peer refuses this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The peer does not speak this protocol, or another version of it.
    Version,
    /// The token is not that of the peer's run.
    Token,
    /// The peer is another node, expects no such node, has it already, or its run has another number of nodes.
    Node,
    /// The peer has not proved that it has the token of the run.
    Proof,
    /// One of both encrypts, and the other does not.
    Encryption,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "it does not speak this version of the protocol",
            Self::Token => "the token is not that of its run",
            Self::Node => "it does not expect this node",
            Self::Proof => "it has not proved that it has the token of the run",
            Self::Encryption => "only one of both has `transport.encrypt`",
        })
    }
}
