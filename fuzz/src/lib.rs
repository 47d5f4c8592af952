//! The entry point of the fuzz targets.

#[cfg(fuzzing)]
pub use libfuzzer_sys::fuzz_target;

/// Makes a program that passes the files on its command line to a fuzz target, without a fuzzer.
#[cfg(not(fuzzing))]
#[macro_export]
macro_rules! fuzz_target {
    (|$bytes:ident: &[u8]| $body:expr) => {
        fn main() -> std::io::Result<()> {
            for path in std::env::args_os().skip(1) {
                let contents = std::fs::read(path)?;
                let $bytes: &[u8] = &contents;
                $body;
            }
            Ok(())
        }
    };
}
