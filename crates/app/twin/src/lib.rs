//! The twin of an event builder: a simulation of the machine that runs it.
//!
//! 1. [`Fit`] finds what the work of nodes costs on a machine. It runs small event builders for real ([`fit_points`]), counts
//!    their work by simulating them, and solves for the costs.
//! 2. [`compare`] holds runs of a file against its simulation with these costs, and says whether they agree;
//!    [`compare_at_load`] does so at a part of their full rate.
//!
//! The machine that is simulated is that of `evb_experiment::CpuPlan`: workers that give their nodes turns, cores that
//! workers share, and work that costs time by the piece and by the byte.

mod comparison;
mod costs;
mod error;
mod fit;
mod least_squares;
mod load;
mod machine;
mod points;

pub use comparison::{Runs, compare, simulate};
pub use error::TwinError;
pub use fit::{Fit, Residual};
pub use load::{at_load, compare_at_load};
pub use machine::{Machine, interruptions};
pub use points::{FitPoint, fit_points, reference};
