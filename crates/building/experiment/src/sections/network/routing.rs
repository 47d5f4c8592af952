//! `network.routing`: the routes of packets.

use super::preset_keys::{ONE, PRESET, of_preset};
use crate::{choice::*, limits::*, schema::*};
use evb_fabric::{FlowletChoice, Rails, Routing, Spread, Ties};

/// Most routes that a pair probes at once.
const MAX_PROBES: i64 = 1024;

pub(super) static ROUTING: Choice<Make<Routing>> = choice(
    "routing",
    PRESET,
    &[
        variant("fixed", "one fixed route for each pair of ports", &[SPREAD], |view| Routing::Fixed {
            spread: SPREADS.at(view, "spread"),
        }),
        variant("random", "a random one of the equal routes for each packet", &[], |_| Routing::Random),
        variant(
            "dispersive",
            "one route for each pair, which changes at random when a packet is blocked",
            &[
                of_preset("patience", delay(), "wait at a switch after which a packet is blocked"),
                key(
                    "after",
                    integer(1, MAX_WINDOW - 1),
                    ONE,
                    "consecutive blocked packets of a pair before it changes its route",
                ),
                key(
                    "rails",
                    KeyKind::Word(&RAILS),
                    KeyDefault::Text("separate"),
                    "ports of a host to which the routes from one port lead, when hosts have several",
                ),
                key(
                    "probes",
                    integer(0, MAX_PROBES),
                    KeyDefault::Integer(0),
                    "routes that the pair probes then: it takes the first one on which no link is in use, and keeps \
                     its route if there is none; with 0 it takes any other route",
                ),
            ],
            |view| Routing::Dispersive {
                patience: view.quantity("patience"),
                after: view.integer("after"),
                rails: RAILS.at(view, "rails"),
                probes: view.integer("probes"),
            },
        ),
        variant("adaptive", "any free link of the equal routes, at every switch", &[], |_| Routing::Adaptive),
        variant(
            "valiant",
            "over another group, drawn at random for each packet between two groups, in a `hyperx` over another switch; for `dragonfly`, `dragonfly-plus` and `hyperx`",
            &[],
            |_| Routing::Valiant,
        ),
        variant(
            "ugal",
            "the minimal route, or one as of `valiant` if the queue of its first link times its hops is shorter (UGAL-L); for \
             `dragonfly`, `dragonfly-plus` and `hyperx`",
            &[],
            |_| Routing::Ugal,
        ),
        variant(
            "dimension-order",
            "first along the rows, then along the columns, then through the layers; for `grid`, `torus` and `hyperx`, where each is one hop",
            &[
                SPREAD,
                key(
                    "ties",
                    KeyKind::Word(&TIES),
                    KeyDefault::Text("alternate"),
                    "direction where both ways round a ring are equal",
                ),
            ],
            |view| Routing::DimensionOrder { spread: SPREADS.at(view, "spread"), ties: TIES.at(view, "ties") },
        ),
        variant("adaptive-dimension-order", "as `dimension-order`, over any free one of parallel links", &[], |_| {
            Routing::AdaptiveDimensionOrder
        }),
        variant(
            "spanning-tree",
            "only along a tree of links, as learning bridges do; parallel links count as one trunk",
            &[],
            |_| Routing::SpanningTree,
        ),
        variant(
            "learning",
            "along a tree as `spanning-tree`, by learning bridges: over all branches to a host from which a switch has received nothing; \
             `store-and-forward` only",
            &[key("age", time(MAX_WAIT), KeyDefault::Text("300 s"), "silence after which a switch forgets a host")],
            |view| Routing::Learning { age: view.quantity("age") },
        ),
        variant("ecmp", "one of the equal routes by a hash over source, destination and message stream", &[], |_| {
            Routing::Ecmp
        }),
        variant(
            "flowlets",
            "one of the equal links at every switch for the packets of a flow, from one port to another; chosen again after a silence",
            &[
                key(
                    "gap",
                    time(MAX_WAIT),
                    KeyDefault::Text("500 us"),
                    "silence of a flow at a switch after which it may take another link; no packet overtakes another if it is longer than \
                     the difference between the delays of the paths, waiting included",
                ),
                key(
                    "choice",
                    KeyKind::Word(&FLOWLET_CHOICES),
                    KeyDefault::Text("shortest-queue"),
                    "the link that a flow takes then",
                ),
            ],
            |view| Routing::Flowlets { gap: view.quantity("gap"), choice: FLOWLET_CHOICES.at(view, "choice") },
        ),
        variant(
            "table",
            "by the linear forwarding tables of the switches; for `infiniband`",
            &[required(
                "file",
                KeyKind::Path,
                "output of `dump_fts` or `ibroute`, or OpenSM's `opensm-lfts.dump`; a relative path starts from `data.directory`",
            )],
            |_| Routing::Table,
        ),
    ],
);

const SPREAD: Key = key(
    "spread",
    KeyKind::Word(&SPREADS),
    KeyDefault::Text("destination"),
    "distribution of pairs of ports over equal routes",
);

static FLOWLET_CHOICES: Words<FlowletChoice> = Words(&[
    word(
        "shortest-queue",
        "that with the fewest bytes before it, and in the buffers behind it as its sender knows; of equal ones any",
        FlowletChoice::ShortestQueue,
    ),
    word("random", "any, drawn at random: LetFlow", FlowletChoice::Random),
]);

static RAILS: Words<Rails> = Words(&[
    word("separate", "to the port with the same number", Rails::Separate),
    word("joined", "to any port: a pair that changes its route may change the port, too", Rails::Joined),
]);

static SPREADS: Words<Spread> = Words(&[
    word("source", "route n for source n, layer by layer: S-mod-k", Spread::Source),
    word(
        "destination",
        "route n for destination n, layer by layer: D-mod-k, as the forwarding tables of a fat tree",
        Spread::Destination,
    ),
    word("switch", "one route for each pair of switches, as a table of intervals of destinations does", Spread::Switch),
    word("pair", "drawn at random for each pair, once for the whole run", Spread::Pair),
]);

static TIES: Words<Ties> = Words(&[
    word("alternate", "upwards from switches in even places, downwards from the others", Ties::Alternate),
    word("upward", "upwards", Ties::Upward),
]);
