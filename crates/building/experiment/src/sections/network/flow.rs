//! `network.flow`: the flow control: the fate of a packet that cannot move.

use super::preset_keys::{ONE, PRESET, of_preset};
use crate::{choice::*, limits::*, schema::*, view::View};
use evb_fabric::{ChannelRule, Flow, Watchdog, WatchdogAction, WhenFull};

pub(super) static FLOW: Choice<Make<Flow>> = choice(
    "flow control",
    PRESET,
    &[
        variant(
            "wormhole",
            "STOP/GO or byte credits: a stalled packet occupies all the links behind its head",
            &[of_preset("slack", bytes(1, MAX_SWITCH_BUFFER), "bytes that an input buffers of one packet"), REACTION],
            |view| Flow::Wormhole { slack: view.quantity("slack"), reaction: view.quantity("reaction") },
        ),
        variant(
            "cut-through",
            "virtual cut-through with credits: a packet moves on only when the next buffer has room for all of it",
            &[
                of_preset(
                    "buffer",
                    bytes(1, MAX_SWITCH_BUFFER),
                    "bytes of each input buffer, for each virtual channel",
                ),
                REACTION,
                key("virtual_channels", integer(1, MAX_CHANNELS), ONE, "virtual channels of each link"),
                key(
                    "channel",
                    KeyKind::Word(&CHANNEL),
                    KeyDefault::Text("topology"),
                    "the virtual channel that a packet takes on a link",
                ),
            ],
            |view| Flow::CutThrough {
                buffer: view.quantity("buffer"),
                reaction: view.quantity("reaction"),
                virtual_channels: view.integer("virtual_channels"),
                channel: CHANNEL.at(view, "channel"),
            },
        ),
        variant(
            "store-and-forward",
            "a switch receives a whole packet, then puts it into the queue of its output",
            &[
                of_preset(
                    "queue",
                    bytes(1, MAX_SWITCH_BUFFER),
                    "bytes of each output queue (`drop`), or of the packets of one input that a switch holds before it \
                     asks the sender to pause",
                ),
                of_preset("full", KeyKind::Word(&FULL), "reaction to a full queue"),
                REACTION,
                key(
                    "priorities",
                    integer(1, MAX_PRIORITIES),
                    ONE,
                    "priorities, each with its own queues; control messages have the highest",
                ),
                optional(
                    "headroom",
                    bytes(0, MAX_SWITCH_BUFFER),
                    "bytes that an input, of each priority with `priority-pause`, has room for after it has asked for a pause; what \
                     finds none is lost; without this key what its cable, the response time and two packets can bring, which \
                     `evb check` shows",
                ),
                optional(
                    "watchdog",
                    KeyKind::Section(WATCHDOG),
                    "what each output of a switch does when it is paused for too long, a pause storm; for pauses; it waits without this table",
                ),
            ],
            |view| Flow::StoreAndForward {
                queue: view.quantity("queue"),
                full: FULL.at(view, "full"),
                reaction: view.quantity("reaction"),
                priorities: view.integer("priorities"),
                headroom: view.maybe_quantity("headroom"),
                watchdog: view.has("watchdog").then(|| watchdog(view.below("watchdog"))),
            },
        ),
    ],
);

/// The defaults are those of SONiC: sonic-utilities, pfcwd/main.py, `DEFAULT_DETECTION_TIME` and the lines below it.
const WATCHDOG: &[Key] = &[
    key(
        "detection",
        time(MAX_WAIT),
        KeyDefault::Text("200 ms"),
        "length of a pause, of one priority with `priority-pause`, after which it acts",
    ),
    key("restoration", time(MAX_WAIT), KeyDefault::Text("200 ms"), "time without a pause after which all is as before"),
    key("action", KeyKind::Word(&ACTION), KeyDefault::Text("drop"), "what it does"),
];

static ACTION: Words<WatchdogAction> = Words(&[
    word(
        "drop",
        "what waits for the output is lost, and what comes for it, or over the other direction of its cable",
        WatchdogAction::Drop,
    ),
    word("forward", "the output does not obey pauses", WatchdogAction::Forward),
]);

fn watchdog(view: View<'_>) -> Watchdog {
    let (detection, restoration) = (view.quantity("detection"), view.quantity("restoration"));
    Watchdog { detection, restoration, action: ACTION.at(view, "action") }
}

static CHANNEL: Words<ChannelRule> = Words(&[
    word(
        "topology",
        "`dateline` in a torus, `hop` in a dragonfly, a dragonfly-plus, a hyperx or an explicit network, `destination` in the others",
        ChannelRule::Topology,
    ),
    word(
        "dateline",
        "for `torus`: the first in each dimension, the next one from the link on that closes a ring; two keep it free of \
         deadlock with `dimension-order`",
        ChannelRule::Dateline,
    ),
    word(
        "hop",
        "the first on the first link between switches, the next one on each further link: one for each of these links keeps \
         any topology free of deadlock",
        ChannelRule::Hop,
    ),
    word(
        "destination",
        "that of the destination: its port's number modulo the number of channels, so that packets wait for fewer others",
        ChannelRule::Destination,
    ),
    word("priority", "that of the priority; control messages have the highest", ChannelRule::Priority),
]);

static FULL: Words<WhenFull> = Words(&[
    word("drop", "packets that do not fit are lost, and counted", WhenFull::Drop),
    word("pause", "the sender of the link pauses, IEEE 802.3x", WhenFull::Pause),
    word("priority-pause", "the sender pauses what has the same priority, IEEE 802.1Qbb", WhenFull::PriorityPause),
]);

const REACTION: Key = of_preset("reaction", delay(), "time from a buffer filling or emptying to the sender knowing it");
