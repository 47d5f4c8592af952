//! Any bytes as what a peer sends over TCP. Seeds: `crates/transport/tcp/tests/corpus/frames`.
#![cfg_attr(fuzzing, no_main)]

evb_fuzz::fuzz_target!(|bytes: &[u8]| {
    evb_transport_tcp::fuzz_frames(bytes);
});
