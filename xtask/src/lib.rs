//! What the project's checks (`cargo xtask`) and measurements (`cargo lab`) both need: the repository, processes with a time
//! limit, network namespaces, requests to a service, and stored results.

pub mod api;
pub mod cache;
pub mod namespaces;
pub mod processes;
pub mod workspace;

use std::process::ExitCode;

/// Ends a program: prints the error of its task, if it has one.
#[must_use]
pub fn exit(program: &str, result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{program}: {message}");
            ExitCode::FAILURE
        }
    }
}
