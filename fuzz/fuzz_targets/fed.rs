//! Any bytes as recorded front-end driver fragments. Seeds: `crates/data/sources/tests/corpus/fed`.
#![cfg_attr(fuzzing, no_main)]

evb_fuzz::fuzz_target!(|bytes: &[u8]| evb_sources::fuzz::fuzz_fed(bytes));
