//! Any bytes as the frames of a described board. Seeds: `crates/data/sources/tests/corpus/board-frame`.
#![cfg_attr(fuzzing, no_main)]

evb_fuzz::fuzz_target!(|bytes: &[u8]| evb_sources::fuzz::fuzz_board_frame(bytes));
