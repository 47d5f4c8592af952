//! Any bytes as an experiment file. Seeds: `crates/building/experiment/tests/corpus/experiment`.
#![cfg_attr(fuzzing, no_main)]

evb_fuzz::fuzz_target!(|bytes: &[u8]| evb_experiment::fuzz_parse(bytes));
