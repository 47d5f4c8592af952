//! Counts over time, the steady window in them, and rates with their intervals: what simulations and real runs measure
//! in the same way.
//!
//! A [`Series`] keeps what was counted by some equally spaced moments. [`Steady::find`] looks for the part of it in which
//! the rate no longer changes, by published rules; [`Offer::judge`] says whether in this part as much was carried as came.

mod batches;
mod offer;
mod series;
mod truncation;
mod window;

pub use offer::Offer;
pub use series::{DONE, ENDED, MARKS, OFFERED, RATES, STARTED, Series};
pub use window::Steady;
