//! What people and programs get from records: texts, CSV and plots.

mod papers;
mod plots;
mod samples;
mod texts;
