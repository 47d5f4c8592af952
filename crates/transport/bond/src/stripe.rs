//! Rules by which messages are spread over the links.

use std::str::FromStr;

/// What a bond spreads over its links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stripe {
    /// Every message goes whole, over the link that is expected to deliver it first.
    #[default]
    Message,
    /// Short messages to a peer go over one link; a long one is cut into segments, which go over all.
    Size,
    /// All messages to a peer go over one link, and those to the next peer over the next link.
    Destination,
}

impl Stripe {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Message, Self::Size, Self::Destination];

    /// The name in experiment files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Size => "size",
            Self::Destination => "destination",
        }
    }
}

impl FromStr for Stripe {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|stripe| stripe.name() == text).ok_or(())
    }
}
