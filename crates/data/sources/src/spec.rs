//! The typed description of a source, as the experiment file resolves to it.

use crate::{ControlSpec, SourceError, board::Framing, eudaq::EudaqProducer, slicer::LiveSlicing, slicing::Slicing};
use evb_core::{ByteCount, EventCounter, FirstCounter, Frequency, Span};
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    path::{Path, PathBuf},
};

/// Width of the number of a slice in bits.
const SLICE_BITS: u8 = 64;

/// The source of the fragments of one readout unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum SourceSpec {
    /// Generated, all of one size.
    Fixed {
        /// Size of every fragment.
        size: ByteCount,
    },
    /// Generated, sizes uniform between two bounds, both included.
    Uniform {
        /// Smallest size.
        min: ByteCount,
        /// Largest size.
        max: ByteCount,
    },
    /// Generated, sizes log-normal.
    LogNormal {
        /// Mean size.
        mean: ByteCount,
        /// Root mean square of the deviation from the mean.
        rms: ByteCount,
    },
    /// Generated, sizes from a CSV file `event,source,bytes`.
    Trace {
        /// The file, with `${NAME}` for environment variables.
        file: PathBuf,
        /// The value in the `source` column; by default the readout unit's own index.
        source: Option<u64>,
    },
    /// Generated, sizes from a per-source model `FED,offset,slope,square,rms` with one relative event size for all.
    SizeModel {
        /// The file, with `${NAME}` for environment variables.
        file: PathBuf,
        /// The value in the `FED` column; by default the row at the readout unit's own index.
        fed: Option<u64>,
        /// Mean of the relative event size; 1 is the nominal event.
        event_size_mean: f64,
        /// Root mean square of the relative event size, log-normal.
        event_size_rms: f64,
    },
    /// Generated hits at random times, cut into slices of the time.
    Hits {
        /// Mean rate of the hits.
        rate: Frequency,
        /// Bytes of a hit, its time included.
        size: ByteCount,
        /// The slices.
        slicing: Slicing,
    },
    /// Recorded hits, cut into slices of the time. Each begins with its time in nanoseconds, 64 bits, little-endian.
    HitFile {
        /// The file, with `${NAME}` for environment variables.
        file: PathBuf,
        /// Bytes of a hit, its time included.
        size: ByteCount,
        /// The slices.
        slicing: Slicing,
    },
    /// Recorded CMS front-end driver fragments, back to back in a file.
    CmsFed {
        /// The file, with `${NAME}` for environment variables.
        file: PathBuf,
        /// The source id that its fragments must have; by default that of the first good one.
        source_id: Option<u16>,
        /// True if a file with damage is refused.
        #[serde(default)]
        refuse_damaged: bool,
    },
    /// Front ends that deliver fragments when they have them.
    Live(Box<LiveSpec>),
}

/// The description of a live source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveSpec {
    /// The way to the front end.
    pub link: FrontEndLink,
    /// The front end's event counter.
    pub counter: EventCounter,
    /// The framing of its fragments; evb's own if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framing: Option<Framing>,
    /// The slices of time that its hits go into. Without them, a frame is a fragment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<LiveSlicing>,
    /// The connection by which it hears run control, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlSpec>,
    /// The source ids of all sources that share the link, in ascending order; empty if it has the link for itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<u64>,
}

/// The way to a live front end. Addresses are `host:port`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrontEndLink {
    /// Front ends connect to this address by TCP.
    Tcp(String),
    /// Front ends send UDP datagrams to this address.
    Udp(String),
    /// The front end listens at this address for a connection by TCP.
    TcpClient(String),
    /// The front end is at a serial line of this machine.
    Serial {
        /// Its device, such as `/dev/ttyUSB0`.
        device: PathBuf,
        /// Bits per second.
        baud: u32,
    },
    /// What a front end has sent lies in a file. Its path may have `${NAME}` for environment variables. The end of the
    /// file is the end of the data.
    File(PathBuf),
    /// What front ends have sent by UDP lies in a capture file, PCAP or PCAPNG.
    Capture {
        /// The file, as for [`File`](Self::File).
        file: PathBuf,
        /// The port that the datagrams were sent to; any by default.
        port: Option<u16>,
        /// Datagrams come at the intervals at which they were captured, and not as fast as they are taken.
        paced: bool,
    },
    /// What EUDAQ has recorded lies in a file, of which the source takes the events of one producer.
    Eudaq {
        /// The file, as for [`File`](Self::File).
        file: PathBuf,
        /// The producer.
        producer: Box<EudaqProducer>,
    },
}

impl FrontEndLink {
    /// The address or file, for messages.
    pub fn place(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Tcp(address) | Self::Udp(address) | Self::TcpClient(address) => address.into(),
            Self::Serial { device: file, .. }
            | Self::File(file)
            | Self::Capture { file, .. }
            | Self::Eudaq { file, .. } => file.to_string_lossy(),
        }
    }

    /// The file, if it is one.
    pub const fn file(&self) -> Option<&PathBuf> {
        match self {
            Self::File(file) | Self::Capture { file, .. } | Self::Eudaq { file, .. } => Some(file),
            Self::Tcp(_) | Self::Udp(_) | Self::TcpClient(_) | Self::Serial { .. } => None,
        }
    }
}

/// The extent of a source of fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// Any event can be requested, without end.
    Endless,
    /// There are fragments for the events 1 to `events`.
    Finite {
        /// The last event.
        events: u64,
    },
    /// Fragments arrive by themselves.
    Live,
}

impl SourceSpec {
    /// Sees that the file of a source is there, where it has one.
    ///
    /// # Errors
    /// [`SourceError::Variable`] or [`SourceError::Braces`] when its path cannot be expanded, [`SourceError::Open`] when it
    /// cannot be read.
    pub fn check_file(&self, data_directory: &Path) -> Result<(), SourceError> {
        let file = match self {
            Self::Live(live) => match live.link.file() {
                Some(file) => file,
                None => return Ok(()),
            },
            Self::Trace { file, .. }
            | Self::SizeModel { file, .. }
            | Self::CmsFed { file, .. }
            | Self::HitFile { file, .. } => file,
            Self::Fixed { .. } | Self::Uniform { .. } | Self::LogNormal { .. } | Self::Hits { .. } => return Ok(()),
        };
        let path = crate::path::resolve(file, data_directory)?;
        File::open(&path).map(drop).map_err(|error| SourceError::Open { path, error })
    }

    /// The description of a live source.
    pub const fn live(&self) -> Option<&LiveSpec> {
        match self {
            Self::Live(live) => Some(live),
            _ => None,
        }
    }

    /// Returns true if the source numbers its fragments itself.
    pub const fn is_numbered(&self) -> bool {
        matches!(self, Self::CmsFed { .. } | Self::Live(_))
    }

    /// Returns true if the source ends or is live: such a source decides on the number of events.
    pub const fn is_data(&self) -> bool {
        matches!(self, Self::CmsFed { .. } | Self::Trace { .. } | Self::HitFile { .. } | Self::Live(_))
    }

    /// The source with these slices, if it has a stream of hits. Slices of no length are none. The numbers of slices are
    /// the same in all sources.
    #[must_use]
    pub fn sliced(mut self, by: Slicing) -> Self {
        match &mut self {
            Self::Hits { slicing, .. } | Self::HitFile { slicing, .. } => *slicing = by,
            Self::Live(live) if by.length == Span::ZERO => live.slices = None,
            Self::Live(live) => {
                if let Some(slices) = &mut live.slices {
                    slices.slicing = by;
                    live.counter = EventCounter { bits: SLICE_BITS, first: FirstCounter::Known(1) };
                }
            }
            _ => {}
        }
        self
    }
}
