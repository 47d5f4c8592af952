//! The message layers by name.

use std::{fmt, str::FromStr};

/// A message layer that can be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayerKind {
    /// Threads of one process, messages by reference.
    Threads,
    /// Processes of one machine through shared memory: the VELO engine.
    Shm,
    /// TCP between processes.
    Tcp,
    /// TCP, but broadcasts by UDP multicast, which may lose messages.
    Udp,
    /// MPI, whichever is installed.
    Mpi,
    /// A provider of libfabric.
    Ofi(String),
}

impl LayerKind {
    /// What a name may be, for people.
    pub const NAMES: &str = "threads, shm, tcp, udp, mpi, ofi:PROVIDER such as ofi:tcp or ofi:shm";

    /// Whether its nodes are threads of one process.
    #[must_use]
    pub const fn is_one_process(&self) -> bool {
        matches!(self, Self::Threads)
    }
}

impl fmt::Display for LayerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads => f.write_str("threads"),
            Self::Shm => f.write_str("shm"),
            Self::Tcp => f.write_str("tcp"),
            Self::Udp => f.write_str("udp"),
            Self::Mpi => f.write_str("mpi"),
            Self::Ofi(provider) => write!(f, "ofi:{provider}"),
        }
    }
}

impl FromStr for LayerKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "threads" => Self::Threads,
            // VELO is the engine, shared memory is where it works.
            "shm" | "velo" => Self::Shm,
            "tcp" => Self::Tcp,
            "udp" => Self::Udp,
            "mpi" => Self::Mpi,
            "ofi" => Self::Ofi("tcp".into()),
            _ => match text.split_once(':') {
                Some(("ofi", provider)) if !provider.is_empty() => Self::Ofi(provider.into()),
                _ => return Err(format!("{text:?} is no message layer: use {}", Self::NAMES)),
            },
        })
    }
}
