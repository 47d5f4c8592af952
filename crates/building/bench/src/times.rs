//! Default times of measurement of the layers.

use evb_core::Span;
use evb_transport_registry::LayerChoice;

/// Messages and events of a farm that are to fit the time of a measurement on a simulated layer.
const MESSAGES: u64 = 10;
const EVENTS: u64 = 4;

/// The time before a measurement and the time of one. Simulated hardware takes a microsecond or some for each of its
/// cycles of 10 ns, so a millisecond of it is a tenth of a second or more. Long messages, and farms that compute, need
/// some of their cycles.
pub(crate) fn times(layer: &LayerChoice, size: usize, compute: Span) -> (Span, Span) {
    let Some(byte) = layer.info().simulated_byte else { return (Span::from_millis(20), Span::from_millis(100)) };
    let duration = Span::from_micros(500).0 + MESSAGES * byte.0 * size as u64 + EVENTS * compute.0;
    (Span::from_micros(50), Span(duration))
}
