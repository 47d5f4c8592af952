//! Any bytes as the stream and as a datagram of a live front end. Seeds: `crates/data/sources/tests/corpus/frame`.
#![cfg_attr(fuzzing, no_main)]

evb_fuzz::fuzz_target!(|bytes: &[u8]| evb_sources::fuzz::fuzz_frame(bytes));
