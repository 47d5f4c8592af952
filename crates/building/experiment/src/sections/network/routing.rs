//! `network.routing`: how a packet finds its way.

use super::preset_keys::{ONE, PRESET, of_preset};
use crate::{choice::*, limits::*, schema::*};
use evb_fabric::{Routing, Spread};

pub(super) static ROUTING: Choice<Make<Routing>> = choice(
    "routing",
    PRESET,
    &[
        variant("fixed", "one way for each pair of ports, always the same", &[SPREAD], |view| Routing::Fixed {
            spread: SPREADS.at(view, "spread"),
        }),
        variant("random", "any of the equal ways for each packet, drawn at random", &[], |_| Routing::Random),
        variant(
            "dispersive",
            "one way for each pair, which changes, at random, when a packet was found blocked",
            &[
                of_preset("patience", delay(), "a packet that has waited this long at a switch is blocked"),
                key(
                    "after",
                    integer(1, MAX_WINDOW - 1),
                    ONE,
                    "packets of a pair that are blocked one after another before it takes another way",
                ),
            ],
            |view| Routing::Dispersive { patience: view.quantity("patience"), after: view.integer("after") },
        ),
        variant("adaptive", "any free link of the equal ways, at every switch", &[], |_| Routing::Adaptive),
        variant(
            "dimension-order",
            "first along the rows, then along the columns; for `grid` and `torus`",
            &[SPREAD],
            |view| Routing::DimensionOrder { spread: SPREADS.at(view, "spread") },
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
            "along a tree as `spanning-tree`, by learning bridges: to a host that a switch has not heard over all branches; \
             `store-and-forward` only",
            &[key(
                "age",
                time(MAX_WAIT),
                KeyDefault::Text("300 s"),
                "a switch forgets a host that sends nothing for so long",
            )],
            |view| Routing::Learning { age: view.quantity("age") },
        ),
        variant("ecmp", "equal ways by a hash over source, destination and message stream", &[], |_| Routing::Ecmp),
    ],
);

const SPREAD: Key = key(
    "spread",
    KeyKind::Word(&SPREADS),
    KeyDefault::Text("destination"),
    "how pairs of ports are spread over equal ways",
);

static SPREADS: Words<Spread> = Words(&[
    word("source", "way n for source n, layer by layer: S-mod-k", Spread::Source),
    word(
        "destination",
        "way n for destination n, layer by layer: D-mod-k, as the forwarding tables of a fat tree",
        Spread::Destination,
    ),
    word("switch", "one way for each pair of switches, as a table of intervals of destinations does", Spread::Switch),
    word("pair", "drawn at random for each pair, once for the whole run", Spread::Pair),
]);
