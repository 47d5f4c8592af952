//! Any bytes as the head and body of a message between nodes. Seeds: `crates/machines/protocol/tests/corpus/wire`.
#![cfg_attr(fuzzing, no_main)]

#[path = "../../crates/machines/protocol/tests/wire_check/mod.rs"]
mod wire_check;

evb_fuzz::fuzz_target!(|bytes: &[u8]| wire_check::check(bytes));
