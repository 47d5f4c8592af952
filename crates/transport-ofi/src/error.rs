//! Why there is no endpoint.

use crate::ffi::PATH_VARIABLE;

/// Why an endpoint cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfiError {
    /// The library is not there or is another one.
    #[error(
        "cannot open libfabric as {path}: {reason}; install it (Debian: libfabric1) or name its file in {PATH_VARIABLE}"
    )]
    Library {
        /// The file that was looked for.
        path: String,
        /// What the system says.
        reason: String,
    },
    /// The library does not offer this provider here.
    #[error(
        "libfabric {library} offers no provider {provider:?} for reliable tagged messages{interface}: {reason}; \
         there are: {others}"
    )]
    Provider {
        /// What was asked for.
        provider: String,
        /// The interface that was asked for, as a part of the sentence.
        interface: String,
        /// What the library says.
        reason: String,
        /// Its version.
        library: String,
        /// The providers for reliable messages that are there.
        others: String,
    },
    /// A call failed.
    #[error("{call} failed: {reason}")]
    Call {
        /// The function.
        call: &'static str,
        /// What the library says.
        reason: String,
    },
    /// An option has no meaning.
    #[error("{reason}")]
    Option {
        /// Which and why.
        reason: String,
    },
}
