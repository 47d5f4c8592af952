//! The message layers by name.

use evb_core::Span;
use evb_transport_rtl::{LINKS, NODES, RtlOptions};
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
    /// The VELO hardware, simulated, with so many wires in each direction of a link.
    VeloRtl(u32),
}

/// Messages and events of a farm that are to fit the time of a measurement on simulated hardware, and the time of a byte: 16
/// wires carry 64 bits in 6 cycles.
const MESSAGES: u64 = 10;
const EVENTS: u64 = 4;
const BYTE_TIME: Span = Span(10_000);

impl LayerKind {
    /// What a name may be, for people.
    pub const NAMES: &str = "threads, shm, tcp, udp, mpi, ofi:PROVIDER such as ofi:tcp or ofi:shm, \
                              velo-rtl or velo-rtl:WIRES";

    /// Whether its nodes are threads of one process.
    #[must_use]
    pub const fn is_one_process(&self) -> bool {
        matches!(self, Self::Threads | Self::VeloRtl(_))
    }

    /// Whether its time is that of a simulation: it is the same in each launch, whatever the machine does.
    #[must_use]
    pub const fn is_simulated(&self) -> bool {
        matches!(self, Self::VeloRtl(_))
    }

    /// Most nodes that it joins, if there is a limit.
    #[must_use]
    pub const fn most_nodes(&self) -> Option<u16> {
        match self {
            Self::VeloRtl(_) => Some(*NODES.end() as u16),
            _ => None,
        }
    }

    /// The time before a measurement and the time of one, when nobody says how long. Simulated hardware takes a microsecond or
    /// some for each of its cycles of 10 ns, so a millisecond of it is a tenth of a second or more. Long messages, of which a
    /// byte takes 10 ns, and farms that compute need some of their cycles.
    #[must_use]
    pub const fn times(&self, size: usize, compute: Span) -> (Span, Span) {
        match self {
            Self::VeloRtl(_) => {
                let duration = Span::from_micros(500).0 + MESSAGES * BYTE_TIME.0 * size as u64 + EVENTS * compute.0;
                (Span::from_micros(50), Span(duration))
            }
            _ => (Span::from_millis(20), Span::from_millis(100)),
        }
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
            Self::VeloRtl(link) if *link == RtlOptions::default().link => f.write_str("velo-rtl"),
            Self::VeloRtl(link) => write!(f, "velo-rtl:{link}"),
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
            "velo-rtl" => Self::VeloRtl(RtlOptions::default().link),
            _ => match text.split_once(':') {
                Some(("ofi", provider)) if !provider.is_empty() => Self::Ofi(provider.into()),
                Some(("velo-rtl", wires)) => Self::VeloRtl(link(wires)?),
                _ => return Err(format!("{text:?} is no message layer: use {}", Self::NAMES)),
            },
        })
    }
}

fn link(wires: &str) -> Result<u32, String> {
    let found = wires.parse().ok().filter(|link| LINKS.contains(link));
    found.ok_or_else(|| format!("no link of the hardware has {wires:?} wires: use one of {LINKS:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for name in ["threads", "shm", "tcp", "udp", "mpi", "ofi:shm", "velo-rtl", "velo-rtl:96"] {
            assert_eq!(name.parse::<LayerKind>().unwrap().to_string(), name);
        }
        assert_eq!("velo".parse(), Ok(LayerKind::Shm));
        assert_eq!("velo-rtl:16".parse(), Ok(LayerKind::VeloRtl(16)));
        for wrong in ["", "velo-rtl:", "velo-rtl:17", "ofi:", "rtl"] {
            assert!(wrong.parse::<LayerKind>().is_err(), "{wrong}");
        }
    }
}
