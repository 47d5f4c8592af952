//! What people and programs get from records: texts, CSV and plots.

mod plots;
mod samples;
mod texts;
