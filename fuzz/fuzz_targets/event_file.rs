//! Any bytes as an event file. Seeds: `crates/data/events/tests/corpus/event-file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| evb_events::fuzz_read(bytes));
