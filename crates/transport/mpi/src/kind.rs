//! The kind of a frame. It is part of the tag, so that MPI sends the bytes of the message only.

/// Number of tags that a node needs for its frames: 7 bits of credits above 3 bits for the kind.
pub(crate) const TAGS_PER_SENDER: usize = 1 << (KIND_BITS + CREDIT_BITS);
const KIND_BITS: u32 = 3;
const CREDIT_BITS: u32 = 7;
/// Most credits in a tag.
#[cfg(test)]
pub(crate) const MOST_CREDITS: u32 = (1 << CREDIT_BITS) - 1;
/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Credits only.
    Credit,
    /// Messages in the format of the user.
    Data,
    /// The announcement of a body, in the format of the user.
    Large,
    /// A number of broadcasts that were taken.
    Broadcast,
    /// The last frame of a node.
    Goodbye,
}

impl FrameKind {
    const ALL: [Self; 5] = [Self::Credit, Self::Data, Self::Large, Self::Broadcast, Self::Goodbye];

    /// The tag of a frame of this kind with `credits`, from the node with this index on its rank.
    #[inline]
    pub(crate) fn tag(self, credits: u32, sender: usize) -> i32 {
        (((sender as u32) << CREDIT_BITS | credits) << KIND_BITS) as i32 | self as i32
    }

    /// Kind, credits and sender of a tag.
    #[inline]
    pub(crate) fn of_tag(tag: i32) -> (Option<Self>, u32, usize) {
        let (kind, rest) = (tag as usize % (1 << KIND_BITS), tag as u32 >> KIND_BITS);
        (Self::ALL.get(kind).copied(), rest % (1 << CREDIT_BITS), (rest >> CREDIT_BITS) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::WINDOW;

    #[test]
    fn tags_carry_kind_credits_and_sender() {
        for sender in [0, 1, 31] {
            for credits in [0, 1, WINDOW] {
                for kind in FrameKind::ALL {
                    let tag = kind.tag(credits, sender);
                    assert_eq!(FrameKind::of_tag(tag), (Some(kind), credits, sender));
                    assert!((0..((sender + 1) * TAGS_PER_SENDER) as i32).contains(&tag));
                }
            }
        }
        assert_eq!(FrameKind::of_tag(7).0, None);
    }
}
