//! Any bytes as a hello, as an answer, and as changes of sealed records. Seeds: `crates/transport/secure/tests/corpus/secure`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    evb_transport_secure::fuzz_strangers(bytes);
    evb_transport_secure::fuzz_opener(bytes);
});
