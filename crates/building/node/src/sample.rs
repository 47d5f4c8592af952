//! Samples: copies of some events for those who monitor a run.
//!
//! A builder makes one when it is time and an event is there, and sends it beside its reports. No node waits for a sample, so
//! monitoring cannot slow a run by more than the copies.

use crate::fragment_ref::fragment_ref;
use bytes::Bytes;
use evb_core::{Mark, Span, Time};
use evb_protocol::Built;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Most payload bytes of a sample. The further bytes of an event are left out; a line of a control connection has a limit.
const MOST_BYTES: usize = 512 << 10;

/// A copy of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Number of the event.
    pub event: u64,
    /// True if every fragment is there and good.
    pub complete: bool,
    /// The fragments, in the order of their sources.
    pub fragments: Vec<SampleFragment>,
}

/// A fragment of a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleFragment {
    /// Name of the source, such as `ru0`.
    pub source: String,
    /// Length of the payload in bytes.
    pub size: u32,
    /// The status: `good`, `missing` and so on.
    pub state: String,
    /// The checksum, CRC-32C.
    pub checksum: String,
    /// The number that the source gave it, if it numbers its fragments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<u64>,
    /// The mark, if it carries one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<u32>,
    /// The payload in hexadecimal digits; its beginning only if the event is very large.
    pub bytes: String,
}

impl Sample {
    /// The copy of a built event.
    pub(crate) fn of(built: &Built<Bytes>) -> Self {
        let mut left = MOST_BYTES;
        let fragments = built.wanted().map(fragment_ref).map(|fragment| {
            let shown = &fragment.bytes[..fragment.bytes.len().min(left)];
            left -= shown.len();
            SampleFragment {
                source: format!("ru{}", fragment.source.0),
                size: u32::try_from(fragment.bytes.len()).unwrap_or(u32::MAX),
                state: fragment.status.name().into(),
                checksum: format!("0x{:08x}", fragment.checksum),
                counter: fragment.counter,
                mark: fragment.mark.map(Mark::value),
                bytes: hex(shown),
            }
        });
        Self { event: built.event.0, complete: built.complete, fragments: fragments.collect() }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _never_fails = write!(text, "{byte:02x}");
    }
    text
}

/// The times at which samples are taken.
#[derive(Debug)]
pub(crate) struct Sampling {
    interval: Option<Span>,
    next: Time,
}

impl Sampling {
    pub(crate) fn new(per_second: u16) -> Self {
        let interval = (per_second > 0).then(|| Span(Span::from_secs(1).0 / u64::from(per_second)));
        Self { interval, next: Time::ZERO }
    }

    /// True if it is time for a sample.
    #[inline]
    pub(crate) fn is_due(&mut self, now: Time) -> bool {
        let Some(interval) = self.interval.filter(|_| now >= self.next) else { return false };
        self.next = now + interval;
        true
    }
}
