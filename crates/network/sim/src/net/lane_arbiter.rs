//! Virtual lanes by weights: the lane that gets a link next ([`LaneWeights`] has the source).
//!
//! A lane has its turn until its weight is used up, or it has no packet that can go; a new turn has the whole weight. The tables of a link
//! are those of the switch, or interface, that sends over it. In a lane the arbitration of the switch selects the input.

use super::{Net, UNKNOWN, links::Waiting};
use crate::packet::{LaneId, Packet};
use evb_core::Time;
use evb_fabric::{LaneWeight, LaneWeights, LinkId, Network};
use smallvec::SmallVec;

/// The tables of high and of low priority.
const HIGH: usize = 0;
const LOW: usize = 1;

/// The arbiter of the lanes of all links.
pub(super) struct LaneArbiter {
    tables: [Vec<LaneWeight>; 2],
    /// Bytes of high priority after which one packet of low priority may go; `None` without a limit.
    limit: Option<i64>,
    links: Vec<LinkTurns>,
    /// For each link and lane the input that was served last.
    served: Vec<LaneId>,
    lanes: usize,
}

/// The turns of the lanes of a link.
#[derive(Clone, Copy)]
struct LinkTurns {
    /// That of each table.
    turns: [Turn; 2],
    /// Bytes of high priority that may go before a packet of low priority.
    high_left: i64,
}

/// The turn of a lane in a table.
#[derive(Clone, Copy)]
struct Turn {
    /// The place of its entry.
    place: usize,
    /// Units of its weight that are left.
    left: i64,
}

impl Turn {
    fn new(place: usize, table: &[LaneWeight]) -> Self {
        Self { place, left: table.get(place).map_or(0, |entry| entry.weight.into()) }
    }
}

impl LaneArbiter {
    /// The arbiter of a network whose lanes have weights.
    pub(super) fn of(network: &Network, lanes: u32) -> Option<Self> {
        let LaneWeights { high, low, limit, .. } = network.config.switch.lanes.as_ref()?;
        let tables = [high.clone(), low.clone()];
        let limit = match *limit {
            LaneWeights::NO_LIMIT => None,
            // Any packet is more than a byte.
            units => Some((i64::from(units) * LaneWeights::LIMIT_UNIT.0 as i64).max(1)),
        };
        let turns = [HIGH, LOW].map(|table| Turn::new(0, &tables[table]));
        let (links, lanes) = (network.links.len(), lanes as usize);
        Some(Self {
            tables,
            limit,
            links: vec![LinkTurns { turns, high_left: limit.unwrap_or_default() }; links],
            served: vec![LaneId::NONE; links * lanes],
            lanes,
        })
    }

    /// The lane whose packet gets a link, of those that have one for it, as bits.
    fn next(&self, link: LinkId, ready: u8) -> Option<u8> {
        self.entry(link, ready).map(|(table, place)| self.tables[table][place].lane)
    }

    /// The table and the place of the entry by which one of these lanes gets a link.
    fn entry(&self, link: LinkId, ready: u8) -> Option<(usize, usize)> {
        let LinkTurns { turns, high_left } = self.links[link.0 as usize];
        let [high, low] = [HIGH, LOW].map(|table| self.place(table, turns[table], ready));
        match (high, low) {
            (Some(high), low) if self.limit.is_none() || high_left > 0 || low.is_none() => Some((HIGH, high)),
            (_, low) => low.map(|low| (LOW, low)),
        }
    }

    /// The place in a table of the lane that has its turn now, or of the next one that can have it.
    fn place(&self, table: usize, turn: Turn, ready: u8) -> Option<usize> {
        let entries = &self.tables[table];
        let is_ready =
            |place: &usize| entries.get(*place).is_some_and(|entry| entry.weight > 0 && ready & (1 << entry.lane) != 0);
        let present = Some(turn.place).filter(|_| turn.left > 0);
        let others = (1..=entries.len()).map(|step| (turn.place + step) % entries.len());
        present.into_iter().chain(others).find(is_ready)
    }

    /// A packet gets a link in a lane.
    #[inline(never)]
    pub(super) fn note(&mut self, link: LinkId, lane: u8, packet: &Packet) {
        let served = self.served_in(link, lane);
        self.served[served] = packet.lane;
        let Some((table, place)) = self.entry(link, 1 << lane) else { return };
        let limit = self.limit.unwrap_or_default();
        let LinkTurns { turns, high_left } = &mut self.links[link.0 as usize];
        let turn = &mut turns[table];
        if turn.place != place || turn.left <= 0 {
            *turn = Turn::new(place, &self.tables[table]);
        }
        turn.left -= i64::from(packet.wire.div_ceil(LaneWeights::UNIT.0 as u32));
        if table == LOW || *high_left <= 0 {
            *high_left = limit;
        }
        if table == HIGH {
            *high_left -= i64::from(packet.wire);
        }
    }

    /// The place of the input that was served last in a lane of a link.
    fn served_in(&self, link: LinkId, lane: u8) -> usize {
        link.0 as usize * self.lanes + usize::from(lane)
    }
}

impl Net {
    /// As [`choose`](Self::choose): first the lane, among those with a packet for which there is room, then the input.
    #[inline(never)]
    pub(super) fn choose_by_lane(&mut self, link: LinkId) -> Result<usize, Time> {
        let now = self.queue.now();
        let mut fitting = SmallVec::<[(usize, u8); 8]>::new();
        for place in 0..self.links[link].waiting.len() {
            let id = self.links[link].waiting[place].id;
            if self.room_at(link, id) <= now {
                fitting.push((place, self.links.next_channel(link, &self.packets[id])));
            }
        }
        let ready = fitting.iter().fold(0, |ready, &(_, lane)| ready | 1 << lane);
        let next = self.lane_arbiter.as_ref().and_then(|lanes| Some((lanes, lanes.next(link, ready)?)));
        let Some((lanes, next)) = next else { return Err(self.room_later(link)) };
        let last = lanes.served[lanes.served_in(link, next)];
        // Service levels of one lane are equal.
        let waiting = &self.links[link].waiting;
        let equal = |place: usize| (place, Waiting { priority: 0, ..waiting[place] });
        let in_lane = fitting.iter().filter(|&&(_, lane)| lane == next);
        let rivals: SmallVec<[(usize, Waiting); 8]> = in_lane.map(|&(place, _)| equal(place)).collect();
        self.arbiter.choose_among(&rivals, last, &mut self.random).ok_or(UNKNOWN)
    }
}
