//! The entry of the fuzzer; the committed corpus runs as a plain test.

use crate::Experiment;

/// Parses arbitrary bytes as an experiment file.
///
/// # Panics
/// If a good file does not resolve to a text with the same plans, which is a fault of this crate.
pub fn fuzz_parse(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Experiment::parse(text, "fuzz.toml", &[]) {
        Ok(experiment) => {
            let again = Experiment::parse(&experiment.resolved(), "again.toml", &[]);
            let again = again.expect("a resolved experiment is a good experiment");
            assert_eq!(again.plans(), experiment.plans());
        }
        Err(diagnostics) => assert!(diagnostics.problems().count() > 0),
    }
}
