//! Any bytes as a trace of fragment sizes. Seeds: `crates/data/sources/tests/corpus/trace-csv`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| evb_sources::fuzz::fuzz_trace_csv(bytes));
