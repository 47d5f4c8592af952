//! `[shaping]`: order and packing of the fragments that readout units send.

use super::network::jitter;
use crate::{
    choice::*,
    diagnostics::Problem,
    limits::*,
    plan::SlotErrors,
    schema::*,
    view::{Rule, View},
};
use evb_core::{Bandwidth, ByteCount, Span};
use evb_protocol::{Shaping, ShapingStep};

const SKEW: &str = "error of the units' times, 0 by default, only simulated. Each unit draws one constant error, uniformly. By \
                    the clock its slots begin early or late by up to `skew`, which the exchange of times cannot see, as with \
                    paths of unequal lengths; two units differ by up to twice as much. Without a clock no unit can be early: \
                    it hears of its credit or round late, by up to 2 `skew`, so that units differ as much as by the clock";

const JITTER: &str = "random time by which each bucket begins late, from a stream of each unit, only simulated; there is none \
                      without this table";

pub(super) static SHAPING: Choice<Make<Shaping>> = choice(
    "shaping",
    KeyDefault::Text("none"),
    &[
        variant("none", "each fragment is sent at once in a separate packet", &[], |_| Shaping::None),
        variant(
            "grouping",
            "fragments for one builder wait until they fill a packet",
            &[
                key("packet", packet(), KeyDefault::Text("32 KiB"), "bytes that fill a packet"),
                key("timeout", wait(), KeyDefault::Text("1 ms"), "longest wait of an unfilled packet"),
            ],
            |view| Shaping::Grouping { packet: view.quantity("packet"), timeout: view.quantity("timeout") },
        ),
        variant(
            "barrel-shifter",
            "a queue for each builder at every readout unit; one bucket in each time slot, all builders in turn, and \
             empty buckets keep the slots aligned",
            &[
                key("bucket", packet(), KeyDefault::Text("8 KiB"), "bytes of a bucket: fragments, and parts of one"),
                key("step", KeyKind::Word(&STEP), KeyDefault::Text("credit"), "how readout units keep in step"),
                key(
                    "lead",
                    bytes(0, MAX_LEAD),
                    KeyDefault::Text("8 KiB"),
                    "bytes of a bucket that are still in transit when the next one is requested",
                ),
                key("slip", wait(), KeyDefault::Text("100 ms"), "longest wait for a slow unit in its turn"),
                optional(
                    "rate",
                    bandwidth(),
                    "with step = \"clock\": rate at which a bucket goes; a slot lasts as long as its bucket, and the guard",
                ),
                optional(
                    "guard",
                    time(MAX_WAIT),
                    "with step = \"clock\": time at the end of a slot in which nothing is sent, 0 by default; clocks may differ by this much",
                ),
                optional("skew", time(MAX_WAIT), SKEW),
                optional("jitter", KeyKind::Section(jitter::OF_HOST), JITTER),
            ],
            |view| Shaping::BarrelShifter {
                bucket: view.quantity("bucket"),
                step: step(view),
                lead: view.quantity("lead"),
                slip: view.quantity("slip"),
            },
        ),
        variant(
            "rate-division",
            "fragments are cut into small packets, builders in turn",
            &[key("packet", packet(), KeyDefault::Text("512 B"), "bytes of a packet")],
            |view| Shaping::RateDivision { packet: view.quantity("packet") },
        ),
    ],
);

/// The errors of the times of the slots in a checked table.
pub(super) fn slot_errors(view: View<'_>) -> SlotErrors {
    SlotErrors {
        skew: view.maybe_quantity("skew").unwrap_or(Span::ZERO),
        jitter: view
            .has("jitter")
            .then(|| jitter::plan(view.below("jitter")))
            .filter(|jitter| jitter.mean > Span::ZERO),
    }
}

/// The step of a checked table. The length of a slot by the clock follows from the bucket.
fn step(view: View<'_>) -> ShapingStep {
    let step = STEP.at(view, "step");
    if !matches!(step, ShapingStep::Clock { .. }) {
        return step;
    }
    let rate: Bandwidth = view.quantity("rate");
    let guard = view.maybe_quantity("guard").unwrap_or(Span::ZERO);
    let slot = Span(rate.time_for(view.quantity::<ByteCount>("bucket").0).0 + guard.0);
    ShapingStep::Clock { slot, guard }
}

static STEP: Words<ShapingStep> = Words(&[
    word(
        "credit",
        "a bucket goes when its builder has given a credit for it, to one unit after the other",
        ShapingStep::Credit,
    ),
    word(
        "barrier",
        "rounds: each readout unit sends a bucket to another builder, and the next round begins when all have come",
        ShapingStep::Barrier,
    ),
    word(
        "clock",
        "slots of the time, by clocks that the event manager's clock sets over the network",
        ShapingStep::Clock { slot: Span::ZERO, guard: Span::ZERO },
    ),
    word(
        "link",
        "a bucket, filled up to its full size, goes when the one before it has left the network interface; only simulated",
        ShapingStep::Link,
    ),
]);

const fn packet() -> KeyKind {
    bytes(MIN_PACKET.0, MAX_PACKET)
}

pub(super) const RULES: &[Rule] = &[packet_timeout, by_clock, skew_by_link, by_packet];

/// Slots by the clock have a length; all others follow from what has come.
fn by_clock(view: View<'_>) -> Option<Problem> {
    if !view.has("shaping.step") {
        return None;
    }
    let is_by_clock = matches!(STEP.at(view, "shaping.step"), ShapingStep::Clock { .. });
    if is_by_clock && !view.has("shaping.rate") {
        let help =
            "add rate = ..., a little below what a link of a builder carries, such as \"11.5 MB/s\" on 100 Mbit/s";
        let problem = Problem::new("slots by the clock need `shaping.rate` for their length", help);
        return Some(problem.at(view.origin("shaping.step"), "by the clock"));
    }
    let key = ["shaping.rate", "shaping.guard"].into_iter().find(|key| !is_by_clock && view.has(key))?;
    let help = format!("write step = \"clock\", or remove `{key}`");
    Some(Problem::new(format!("only slots by the clock have `{key}`"), help).at(view.origin(key), "has no effect"))
}

/// Units that wait for nothing but their own link hear of nothing late, and have no clock.
fn skew_by_link(view: View<'_>) -> Option<Problem> {
    let is_by_link = view.has("shaping.step") && STEP.at(view, "shaping.step") == ShapingStep::Link;
    (is_by_link && view.has("shaping.skew")).then(|| {
        let help = "remove `shaping.skew`, or give the times of buckets a `shaping.jitter`";
        let message = "slots by the link have no `shaping.skew`: units have no clock there, and hear of no slot";
        Problem::new(message, help).at(view.origin("shaping.skew"), "has no effect")
    })
}

/// A connection takes messages, not single packets.
fn by_packet(view: View<'_>) -> Option<Problem> {
    let is_by_packet = view.text("shaping.type") == "rate-division";
    let connects = view.maybe_text("network.transport.type").is_some_and(|transport| transport != "none");
    (is_by_packet && connects).then(|| {
        let help = "use another shaping, or remove `network.transport`";
        let message = "rate division sends single packets to builders in turn, and a connection takes whole messages";
        Problem::new(message, help)
            .at(view.origin("shaping.type"), "by packets")
            .at(view.origin("network.transport.type"), "with connections")
    })
}

fn packet_timeout(view: View<'_>) -> Option<Problem> {
    let (packet, patience): (Span, Span) = (view.maybe_quantity("shaping.timeout")?, view.quantity("builder.patience"));
    (packet >= patience).then(|| {
        let message = format!("`shaping.timeout` of {packet} is not below `builder.patience` of {patience}");
        let help = "builders would ask for fragments that only wait for their packet to fill: lower `shaping.timeout`, or \
                    raise `builder.patience`";
        Problem::new(message, help)
            .at(view.origin("shaping.timeout"), "too long")
            .at(view.origin("builder.patience"), "builder")
    })
}
