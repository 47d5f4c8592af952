//! Any bytes as a file of EUDAQ. Seeds: `crates/data/sources/tests/corpus/eudaq`.
#![cfg_attr(fuzzing, no_main)]

evb_fuzz::fuzz_target!(|bytes: &[u8]| evb_sources::fuzz::fuzz_eudaq(bytes));
