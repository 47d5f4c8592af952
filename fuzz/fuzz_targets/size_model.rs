//! Any bytes as a model of fragment sizes. Seeds: `crates/data/sources/tests/corpus/size-model`.
#![cfg_attr(fuzzing, no_main)]

evb_fuzz::fuzz_target!(|bytes: &[u8]| evb_sources::fuzz::fuzz_size_model(bytes));
