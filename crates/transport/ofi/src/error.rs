//! Errors of opening an endpoint.

use crate::ffi::PATH_VARIABLE;

/// The reason why an endpoint cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfiError {
    /// The library does not exist or is another one.
    #[error(
        "cannot open libfabric as {path}: {reason}; install it (Debian: libfabric1) or name its file in {PATH_VARIABLE}"
    )]
    Library {
        /// The file name of the library.
        path: String,
        /// The error of the system.
        reason: String,
    },
    /// The library does not offer this provider here.
    #[error(
        "libfabric {library} offers no provider {provider:?} for reliable tagged messages{interface}: {reason}; \
         there are: {others}"
    )]
    Provider {
        /// The requested provider.
        provider: String,
        /// The requested interface, as a part of the sentence.
        interface: String,
        /// The error of the library.
        reason: String,
        /// The version of the library.
        library: String,
        /// The available providers of reliable messages.
        others: String,
    },
    /// A call failed.
    #[error("{call} failed: {reason}")]
    Call {
        /// The function.
        call: &'static str,
        /// The error of the library.
        reason: String,
    },
    /// An option has no meaning.
    #[error("{reason}")]
    Option {
        /// The option and the reason.
        reason: String,
    },
}
