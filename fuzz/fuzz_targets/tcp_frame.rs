//! Any bytes as what a peer sends over TCP. Seeds: `crates/transport/tcp/tests/corpus/frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    evb_transport_tcp::fuzz_frames(bytes);
});
