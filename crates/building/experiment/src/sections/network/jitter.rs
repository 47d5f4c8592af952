//! `jitter`: random times of network interfaces and hosts.

use crate::{choice::*, schema::*, view::View};
use evb_fabric::{Jitter, JitterPer, JitterSpread};

/// The jitter of a network interface.
pub(super) const OF_NIC: &[Key] =
    &[MEAN, RMS, key("per", KeyKind::Word(&PER), KeyDefault::Text("message"), "how often a time is drawn")];

/// The jitter of a host, or of the buckets of a barrel shifter.
pub(in crate::sections) const OF_HOST: &[Key] = &[MEAN, RMS];

const MEAN: Key = required("mean", delay(), "mean of the times");
const RMS: Key = optional(
    "rms",
    delay(),
    "root mean square deviation of the times, which are then log-normal; without it they are exponential, with a deviation \
     like their mean",
);

static PER: Words<JitterPer> = Words(&[
    word("message", "once for each message, before its last packet", JitterPer::Message),
    word("packet", "for each packet", JitterPer::Packet),
]);

/// The jitter in this table.
pub(in crate::sections) fn plan(view: View<'_>) -> Jitter {
    let spread = match view.maybe_quantity("rms") {
        Some(rms) => JitterSpread::LogNormal { rms },
        None => JitterSpread::Exponential,
    };
    let per = if view.has("per") { PER.at(view, "per") } else { JitterPer::Message };
    Jitter { mean: view.quantity("mean"), spread, per }
}
