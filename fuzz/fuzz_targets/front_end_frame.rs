//! Any bytes as the stream and as a datagram of a live front end. Seeds: `crates/data/sources/tests/corpus/frame`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| evb_sources::fuzz::fuzz_frame(bytes));
