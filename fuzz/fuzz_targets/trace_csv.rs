//! Any bytes as a trace of fragment sizes. Seeds: `crates/data/sources/tests/corpus/trace-csv`.
#![cfg_attr(fuzzing, no_main)]

evb_fuzz::fuzz_target!(|bytes: &[u8]| evb_sources::fuzz::fuzz_trace_csv(bytes));
