//! Output from records: texts, CSV and plots.

mod benchmarks;
mod comparisons;
mod fabrics;
mod papers;
mod parity;
mod plots;
mod samples;
mod texts;
mod twins;
mod verdicts;
mod widths;
