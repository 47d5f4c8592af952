//! `[trigger]`: what makes the event manager trigger, and when that ends.

use super::{
    coincidence,
    source::{self, Feed},
};
use crate::{
    choice::*,
    diagnostics::Problem,
    limits::*,
    plan::TriggerPlan,
    schema::*,
    tree::{Node, Value, put_default},
    view::{Rule, View},
};
use evb_core::Frequency;
use evb_protocol::Trigger;

pub(super) static TRIGGER: Choice<Make<Trigger>> = Choice {
    tag: "type",
    what: "trigger",
    default: KeyDefault::Derived("`data` if any source is recorded or live, else `free-running`"),
    common: &[
        optional("events", integer(1, i64::MAX), "events after which the trigger stops"),
        optional("duration", KeyKind::Time { min: MIN_WAIT, max: MAX_DURATION }, "time after which it stops"),
        key(
            "block",
            KeyKind::IntegerOr { min: 1, max: MAX_BLOCK, word: "auto" },
            KeyDefault::Text("auto"),
            "events in a block: a readout unit sends its fragments of this many consecutive events to one builder in one \
             bundle. `auto` takes up to 64 events, 128 KiB in a bundle and 1 MiB in a block: at a rate as many as the load \
             needs, free running as many as leave 8 blocks of the `events` for each builder; 1 with \
             data, phases, a first stage, shaping, injected faults, or sizes that are not in the file",
        ),
        key(
            "accept_loss",
            integer(0, 100),
            KeyDefault::Integer(0),
            "percent of the triggers or messages at a rate that may be lost in a good run",
        ),
    ],
    variants: &[
        variant(FREE_RUNNING, "as fast as builders ask for events", &[], |_| Trigger::FreeRunning),
        variant(
            RATE,
            "at a rate",
            &[
                required("rate", KeyKind::Rate { min: Frequency(1), max: MAX_RATE }, "mean trigger rate"),
                key("spacing", KeyKind::Word(&SPACING), KeyDefault::Text("regular"), "intervals between triggers"),
            ],
            |_| Trigger::Driven,
        ),
        variant(DATA, "when the sources have fragments: recorded to their end, or live", &[], |_| Trigger::Data),
        variant(
            TIME,
            "when live sources have fragments whose times are together, by the clocks of their framings",
            coincidence::TRIGGER_KEYS,
            |_| Trigger::Data,
        ),
    ],
};

const FREE_RUNNING: &str = "free-running";
pub(super) const RATE: &str = "rate";
pub(super) const DATA: &str = "data";
pub(super) const TIME: &str = "time";

/// The spacing of triggers, and true for that of a Poisson process.
static SPACING: Words<bool> =
    Words(&[word("regular", "equal intervals", false), word("poisson", "exponential intervals, as from a beam", true)]);

pub(super) const RULES: &[Rule] = &[end_of_run];

/// The trigger follows from the sources.
pub(super) fn fill(root: &mut Node) {
    let trigger = if source::has_data(root) { DATA } else { FREE_RUNNING };
    put_default(root, &["trigger", "type"], Value::Text(trigger.to_owned()));
}

pub(super) fn plan(view: View<'_>) -> TriggerPlan {
    TriggerPlan {
        rate: view.maybe_quantity("trigger.rate"),
        poisson: view.has("trigger.spacing") && SPACING.at(view, "trigger.spacing"),
        duration: view.maybe_quantity("trigger.duration"),
        accept_loss: view.integer("trigger.accept_loss"),
    }
}

pub(super) fn waits_for_data(view: View<'_>) -> bool {
    TRIGGER.make(view.below("trigger")) == Trigger::Data
}

fn end_of_run(view: View<'_>) -> Option<Problem> {
    if view.has("trigger.events") || view.has("trigger.duration") || waits_for_data(view) {
        return None;
    }
    let help = "say when to stop: add events = 100_000 or duration = \"10 s\" to [trigger]";
    Some(Problem::new("the run has no end", help).at(view.origin("trigger"), "neither `events` nor `duration`"))
}

/// Trigger and sources must fit each other.
pub(super) fn fits_sources(view: View<'_>) -> Option<Problem> {
    let used = source::used(view);
    let Some(data) = used.iter().find(|source| source::feed(**source) != Feed::Generated) else {
        let help =
            "write type = \"free-running\" or type = \"rate\" in [trigger], or give a unit recorded or live data";
        let problem = Problem::new("the trigger waits for data, but every source is generated", help);
        return waits_for_data(view).then(|| problem.at(view.origin("trigger.type"), "no source has data"));
    };
    if waits_for_data(view) {
        return None;
    }
    let (kind, name) = (view.text("trigger.type"), data.text("type"));
    if let Some(live) = used.iter().find(|source| source::feed(**source) == Feed::Live) {
        let message = format!("live front ends cannot be triggered by the trigger {kind:?}");
        let help = "they decide when there is an event: leave `type` out of [trigger], or write type = \"data\"";
        return Some(
            Problem::new(message, help)
                .at(view.origin("trigger.type"), "this trigger")
                .at(live.origin("type"), "live source"),
        );
    }
    (!view.has("trigger.events")).then(|| {
        let message = format!("the trigger {kind:?} does not know how many events the {name:?} source has");
        let help =
            "add events = ... to [trigger], at most what the file holds, or write type = \"data\" to build all of it";
        Problem::new(message, help)
            .at(view.origin("trigger.type").or_else(|| view.origin("trigger")), "this trigger")
            .at(data.origin("type"), "recorded source")
    })
}
