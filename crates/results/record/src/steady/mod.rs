//! Counts over time, the steady window in them, and rates with their intervals, for simulations and real runs alike.
//!
//! A [`Series`] keeps counts at equally spaced moments. [`Steady::find`] finds the part in which the rate no longer
//! changes, by published rules. [`Offer::judge`] compares the carried rate with the offered rate, in this part and over the whole
//! time.
//!
//! A series keeps at most 256 moments, and drops every second one when there are more. So memory is bounded, and a
//! packet costs one more comparison. Latencies and links are not split by time: they are those of the whole.

mod backlog;
mod batches;
mod bursts;
mod offer;
mod series;
mod truncation;
mod window;

pub use offer::Offer;
pub use series::{DONE, ENDED, MARKS, OFFERED, RATES, STARTED, Series};
pub use window::Steady;
