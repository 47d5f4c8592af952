//! Any bytes as an experiment file. Seeds: `crates/building/experiment/tests/corpus/experiment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| evb_experiment::fuzz_parse(bytes));
