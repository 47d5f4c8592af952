//! Any bytes as a hello, as an answer, and as changes of sealed records. Seeds: `crates/transport/secure/tests/corpus/secure`.
#![cfg_attr(fuzzing, no_main)]

evb_fuzz::fuzz_target!(|bytes: &[u8]| {
    evb_transport_secure::fuzz_strangers(bytes);
    evb_transport_secure::fuzz_opener(bytes);
});
