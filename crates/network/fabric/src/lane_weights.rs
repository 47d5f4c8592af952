//! Virtual lanes by weights: the tables by which InfiniBand shares a link between the virtual channels of packets.

use crate::{ChannelRule, Flow, NetworkConfig, NetworkError};
use evb_core::ByteCount;
use serde::{Deserialize, Serialize};

/// The arbitration of each link between virtual lanes, which are the virtual channels by priority (InfiniBand Architecture
/// Specification, volume 1, section 7.6.9). The lanes of a table take turns, each for as long as its weight lasts. The table of high
/// priority goes first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneWeights {
    /// The table of high priority; may be empty.
    pub high: Vec<LaneWeight>,
    /// The table of low priority.
    pub low: Vec<LaneWeight>,
    /// Bytes of high priority, in units of [`LIMIT_UNIT`](Self::LIMIT_UNIT), after which a packet of low priority may go. With 0 one packet
    /// of high priority goes before it, with [`NO_LIMIT`](Self::NO_LIMIT) all.
    pub limit: u8,
    /// The lane of each service level; the last one also of those beyond. If empty, each has the lane with its number.
    pub service_levels: Vec<u8>,
}

/// An entry of a table: what a lane sends in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneWeight {
    /// The lane.
    pub lane: u8,
    /// Bytes in units of [`LaneWeights::UNIT`]; the packet in which they end is sent whole. With 0 the entry is skipped.
    pub weight: u8,
}

impl LaneWeights {
    /// The unit of weights; a packet counts with the units that it begins.
    pub const UNIT: ByteCount = ByteCount(64);
    /// The unit of the limit of high priority.
    pub const LIMIT_UNIT: ByteCount = ByteCount(4096);
    /// The limit that is none.
    pub const NO_LIMIT: u8 = 255;

    /// The lane of packets of a service level, which is their priority.
    pub fn lane(&self, service_level: u8) -> u8 {
        let listed = self.service_levels.get(usize::from(service_level)).or(self.service_levels.last());
        listed.copied().unwrap_or(service_level)
    }

    /// True if a lane is ever served.
    fn serves(&self, lane: u8) -> bool {
        self.high.iter().chain(&self.low).any(|entry| entry.lane == lane && entry.weight > 0)
    }
}

/// Checks that there are such lanes, and that each lane of a service level is served.
pub(crate) fn check(config: &NetworkConfig) -> Result<(), NetworkError> {
    let Some(weights) = &config.switch.lanes else { return Ok(()) };
    let Flow::CutThrough { virtual_channels: lanes, channel: ChannelRule::Priority, .. } = config.flow else {
        return Err(NetworkError::LanesNeedPriorities);
    };
    let entries = weights.high.iter().chain(&weights.low).map(|entry| entry.lane);
    if let Some(lane) = entries.chain(weights.service_levels.iter().copied()).find(|&lane| lane >= lanes) {
        return Err(NetworkError::NoSuchLane { lane, lanes });
    }
    match (0..lanes).map(|level| weights.lane(level)).find(|&lane| !weights.serves(lane)) {
        Some(lane) => Err(NetworkError::LaneWithoutWeight { lane }),
        None => Ok(()),
    }
}
