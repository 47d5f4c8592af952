//! The origin of fragments in a simulation: sizes by request, or super-fragments as they arrive.

use evb_core::{EventId, Recording, SourceId};
use evb_protocol::{Fragment, FragmentStatus};
use evb_sources::{Feed, SizeModel};
use evb_unit::{FragmentSource, SimulatedBundle, SimulatedPayload};
use std::convert::Infallible;

/// The input of a readout unit.
pub(crate) enum Input {
    /// Fragments of any event, without bytes.
    Sizes(SizeModel),
    /// Super-fragments of the first stage.
    Inlet,
}

impl FragmentSource<SimulatedPayload> for Input {
    type Error = Infallible;

    fn feed(&self) -> Feed {
        match self {
            Self::Sizes(sizes) => FragmentSource::feed(sizes),
            Self::Inlet => Feed::Live,
        }
    }

    fn recording(&self) -> Option<Recording> {
        match self {
            Self::Sizes(sizes) => FragmentSource::recording(sizes),
            Self::Inlet => None,
        }
    }

    #[inline]
    fn read(
        &mut self,
        source: SourceId,
        event: EventId,
        position: u64,
    ) -> Result<Fragment<SimulatedPayload>, Infallible> {
        match self {
            Self::Sizes(sizes) => sizes.read(source, event, position),
            Self::Inlet => unreachable!("fragments that arrive by themselves are not requested"),
        }
    }

    type Bundle = SimulatedBundle;

    fn begin_bundle(&mut self, fragments: usize, _bytes: usize) -> SimulatedBundle {
        SimulatedBundle::with_capacity(fragments)
    }

    #[inline]
    fn read_into(
        &mut self,
        source: SourceId,
        event: EventId,
        bundle: &mut SimulatedBundle,
    ) -> Result<FragmentStatus, Infallible> {
        match self {
            Self::Sizes(sizes) => sizes.read_into(source, event, bundle),
            Self::Inlet => unreachable!("fragments that arrive by themselves are not requested"),
        }
    }
}
