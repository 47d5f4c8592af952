//! `network.switch.lanes`: the shares of virtual lanes in each link.

use crate::{limits::*, schema::*, tree::Node, view::View};
use evb_fabric::{LaneWeight, LaneWeights};

/// Most entries of a table, as in InfiniBand.
const MAX_ENTRIES: usize = 64;
/// The highest weight, and the highest limit.
const MAX_WEIGHT: i64 = 255;
/// Most service levels, as in InfiniBand.
const MAX_LEVELS: usize = 16;

pub(super) const LANES: &[Key] = &[
    optional("high", TABLE, "the lanes of high priority, such as `[{ lane = 2, weight = 4 }]`; none without this key"),
    optional(
        "low",
        TABLE,
        "the other lanes, which take turns when none of high priority has a packet, and when `limit` says so; none without this key",
    ),
    key(
        "limit",
        integer(0, MAX_WEIGHT),
        KeyDefault::Integer(0),
        "bytes of high priority, in units of 4096, after which a packet of low priority may go: with 0 each packet, with 255 never; \
         the default is that of OpenSM, `qos_high_limit`",
    ),
    optional(
        "service_levels",
        KeyKind::Integers { min: 0, max: MAX_CHANNELS - 1, most: MAX_LEVELS },
        "the lane of each service level, which is the priority of packets: 0 of background traffic with the lower one, then that of the \
         data, and `virtual_channels` less one of control messages; the last one also of higher levels; lane n of level n without this key",
    ),
];

const TABLE: KeyKind = KeyKind::List { item: &KeyKind::Section(ENTRY), most: MAX_ENTRIES };

const ENTRY: &[Key] = &[
    required("lane", integer(0, MAX_CHANNELS - 1), "number of the virtual channel"),
    required(
        "weight",
        integer(0, MAX_WEIGHT),
        "bytes that it sends in its turn, in units of 64; a packet counts with each unit that it begins, and goes whole",
    ),
];

/// Makes the weights at this place, if they are there.
pub(super) fn plan(view: View<'_>, at: &str) -> Option<LaneWeights> {
    let lanes = view.has(at).then(|| view.below(at))?;
    let table = |name| lanes.list(name).iter().map(|node| entry(View(node))).collect();
    let levels = lanes.list("service_levels").iter().filter_map(Node::integer);
    Some(LaneWeights {
        high: table("high"),
        low: table("low"),
        limit: lanes.integer("limit"),
        service_levels: levels.filter_map(|lane| lane.try_into().ok()).collect(),
    })
}

fn entry(view: View<'_>) -> LaneWeight {
    LaneWeight { lane: view.integer("lane"), weight: view.integer("weight") }
}
