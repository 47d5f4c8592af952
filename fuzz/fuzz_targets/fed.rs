//! Any bytes as recorded front-end driver fragments. Seeds: `crates/data/sources/tests/corpus/fed`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| evb_sources::fuzz::fuzz_fed(bytes));
