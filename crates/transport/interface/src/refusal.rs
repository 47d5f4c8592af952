//! Why a peer refuses a node, whatever the transport.

/// The reason why a peer refuses this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The peer does not speak this protocol, or another version of it.
    #[error("it does not speak this version of the protocol")]
    Version,
    /// The token is not that of the peer's run.
    #[error("the token is not that of its run")]
    Token,
    /// The peer is another node, expects no such node, has it already, or its run has another number of nodes.
    #[error("it does not expect this node")]
    Node,
    /// The peer has other limits, or one is a transport and the other a layer.
    #[error("it has other limits, or one of both is a transport and the other a layer")]
    Limits,
    /// The peer has not proved that it has the token of the run.
    #[error("it has not proved that it has the token of the run")]
    Proof,
    /// One of both encrypts, and the other does not.
    #[error("only one of both has `transport.encrypt`")]
    Encryption,
}

impl Refusal {
    /// Reasons that a peer states in one number, from 1 on.
    const STATED: [Self; 4] = [Self::Version, Self::Token, Self::Node, Self::Limits];

    /// The number that states this reason to the refused node: `Node`, if it has none.
    #[must_use]
    pub fn code(self) -> u16 {
        let index = Self::STATED.iter().position(|&stated| stated == self);
        1 + index.unwrap_or(Self::Node as usize) as u16
    }

    /// The reason that this number states, if there is one.
    #[must_use]
    pub fn from_code(code: u16) -> Option<Self> {
        Self::STATED.get(usize::from(code).checked_sub(1)?).copied()
    }
}
