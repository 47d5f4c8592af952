//! Any bytes as an event file. Seeds: `crates/data/events/tests/corpus/event-file`.
#![cfg_attr(fuzzing, no_main)]

evb_fuzz::fuzz_target!(|bytes: &[u8]| evb_events::fuzz_read(bytes));
