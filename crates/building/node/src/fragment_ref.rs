//! Fragments of built events as event files and samples have them.

use bytes::Bytes;
use evb_core::{Counter, SourceId};
use evb_events::FragmentRef;
use evb_protocol::{Fragment, FragmentStatus};

/// The payload of a missing fragment.
static NOTHING: Bytes = Bytes::new();

/// A fragment of an event as event files have it; one that is not there is missing.
pub(crate) fn fragment_ref((source, fragment): (SourceId, Option<&Fragment<Bytes>>)) -> FragmentRef<'_> {
    match fragment {
        Some(fragment) => FragmentRef {
            source: fragment.source,
            status: fragment.status,
            checksum: fragment.checksum,
            counter: fragment.counter.map(Counter::value),
            mark: fragment.mark,
            apart: None,
            bytes: &fragment.payload,
        },
        None => FragmentRef::new(source, FragmentStatus::Missing, 0, &NOTHING),
    }
}
