//! `network.transport`: the connections that carry messages.

use super::queues;
use crate::{choice::*, limits::*, schema::*, view::View};
use evb_connection::{
    Dcqcn, RdmaConfig, RdmaControl, Recovery, TcpConfig, TcpControl, Transport, UltraEthernetConfig,
    UltraEthernetControl,
};
use evb_core::Span;

pub(super) static TRANSPORT: Choice<Make<Transport>> = choice(
    "transport",
    KeyDefault::Text("none"),
    &[
        variant(
            "none",
            "each packet is sent once, as fast as the link takes it; builders request lost fragments again",
            &[],
            |_| Transport::None,
        ),
        variant(
            "tcp",
            "a TCP connection between each pair of nodes that send to each other, open from the start",
            &[
                key("control", KeyKind::Word(&TCP_CONTROL), KeyDefault::Text("cubic"), "the congestion control"),
                key(
                    "initial_window",
                    integer(1, 1000),
                    KeyDefault::Integer(10),
                    "segments of the first window, RFC 6928",
                ),
                key("window", window(), KeyDefault::Text("4 MiB"), "most bytes without an acknowledgement"),
                key(
                    "least_timeout",
                    time(MAX_WAIT),
                    KeyDefault::Text("200 ms"),
                    "shortest time after which a segment is sent again, that of Linux",
                ),
                key(
                    "ack_every",
                    integer(1, 1000),
                    KeyDefault::Integer(2),
                    "segments for each acknowledgement, RFC 5681",
                ),
                key(
                    "ack_delay",
                    time(MAX_WAIT),
                    KeyDefault::Text("40 ms"),
                    "longest wait of an acknowledgement for more segments, that of Linux",
                ),
                key(
                    "tail_probes",
                    KeyKind::Flag,
                    KeyDefault::Flag(true),
                    "after two round trips without an acknowledgement the last segment is sent again, RFC 8985",
                ),
                key(
                    "interface_queue",
                    interface_queue(),
                    KeyDefault::Text("0 B"),
                    "bytes of a connection that may wait in the queue of its interface, in the order in which they came; without any, \
                     connections take turns. Linux has up to 128 KiB where a round trip is shorter than 0.5 ms",
                ),
            ],
            |view| {
                Transport::Tcp(TcpConfig {
                    control: TCP_CONTROL.at(view, "control"),
                    initial_window: view.integer("initial_window"),
                    window: view.quantity("window"),
                    least_timeout: view.quantity("least_timeout"),
                    ack_every: view.integer("ack_every"),
                    ack_delay: view.quantity("ack_delay"),
                    tail_probes: view.flag("tail_probes"),
                    interface_queue: view.quantity("interface_queue"),
                })
            },
        ),
        variant(
            "rdma",
            "a queue pair with reliable service, as of InfiniBand and RoCE, between each pair of nodes that send to each other",
            &[
                key(
                    "recovery",
                    KeyKind::Word(&RECOVERY),
                    KeyDefault::Text("go-back-n"),
                    "what is sent again after a loss",
                ),
                key("window", window(), KeyDefault::Text("4 MiB"), "most bytes without an acknowledgement"),
                key(
                    "timeout",
                    time(MAX_WAIT),
                    KeyDefault::Text("1 ms"),
                    "time without an acknowledgement after which packets are sent again",
                ),
                key("ack_every", integer(1, 1000), KeyDefault::Integer(1), "packets for each acknowledgement"),
                optional("control", KeyKind::Choice(&RDMA_CONTROL), "the congestion control; none without this table"),
            ],
            |view| {
                Transport::Rdma(RdmaConfig {
                    recovery: RECOVERY.at(view, "recovery"),
                    window: view.quantity("window"),
                    timeout: view.quantity("timeout"),
                    ack_every: view.integer("ack_every"),
                    control: if view.has("control") {
                        RDMA_CONTROL.make(view.below("control"))
                    } else {
                        RdmaControl::None
                    },
                })
            },
        ),
        variant(
            "ultra-ethernet",
            "a connection between each pair of nodes that send to each other, whose packets take many paths, and whose messages are \
             delivered as each is whole; best with `network.switch.trimming`, and for `nscc` with `network.switch.marking`",
            &[
                required("round_trip", time(MAX_WAIT), "round trip across the network with empty queues"),
                optional(
                    "control",
                    KeyKind::Choice(&ULTRA_ETHERNET_CONTROL),
                    "the congestion control; `nscc` without this table",
                ),
                optional(
                    "window",
                    window(),
                    "`nscc`: most bytes under way; `rccc`: bytes that a sender sends before it has credit; 1.5 times those of its \
                     link in `round_trip` by default",
                ),
                optional(
                    "paths",
                    integer(1, 1024),
                    "routes over which the packets of a connection take turns, with `routing.type = \"ecmp\"`; 128 there by default",
                ),
                key(
                    "steering",
                    KeyKind::Flag,
                    KeyDefault::Flag(true),
                    "whether a path on which a packet was marked or trimmed is left out for a turn",
                ),
                key(
                    "timeout",
                    time(MAX_WAIT),
                    KeyDefault::Text("1 ms"),
                    "time without an acknowledgement after which a packet is sent again",
                ),
                key("ack_every", integer(1, 1000), KeyDefault::Integer(1), "packets for each acknowledgement"),
            ],
            |view| {
                let control = if view.has("control") {
                    ULTRA_ETHERNET_CONTROL.make(view.below("control"))
                } else {
                    UltraEthernetControl::Nscc { target: Span::ZERO }
                };
                Transport::UltraEthernet(UltraEthernetConfig {
                    control,
                    round_trip: view.quantity("round_trip"),
                    window: view.maybe_quantity("window"),
                    paths: 1,
                    steering: view.flag("steering"),
                    timeout: view.quantity("timeout"),
                    ack_every: view.integer("ack_every"),
                })
            },
        ),
    ],
);

static TCP_CONTROL: Words<TcpControl> = Words(&[
    word("reno", "slow start, and one segment more in each round trip, RFC 5681", TcpControl::Reno),
    word("cubic", "the window grows with the cube of the time since the last loss, RFC 9438", TcpControl::Cubic),
    word(
        "linux-cubic",
        "`cubic` as Linux has it: slow start ends when delays or trains of acknowledgements grow long (HyStart), and a recovery sends \
         in proportion to what arrives, RFC 6937",
        TcpControl::LinuxCubic,
    ),
    word(
        "dctcp",
        "the window shrinks by the part of marked packets, RFC 8257; with `network.switch.marking`",
        TcpControl::Dctcp,
    ),
]);

static RECOVERY: Words<Recovery> = Words(&[
    word("go-back-n", "the lost packet and all behind it", Recovery::GoBackN),
    word("selective", "lost packets alone", Recovery::Selective),
]);

static RDMA_CONTROL: Choice<Make<RdmaControl>> = choice(
    "congestion control",
    KeyDefault::Text("none"),
    &[
        variant("none", "a sender sends as fast as the link and the window let it", &[], |_| RdmaControl::None),
        variant(
            "dcqcn",
            "a sender lowers its rate when packets are marked: Zhu et al., SIGCOMM 2015, whose parameters are the defaults; with \
             `network.switch.marking`",
            &[
                key(
                    "notice_interval",
                    time(MAX_WAIT),
                    KeyDefault::Text("50 us"),
                    "shortest time between two notices of a receiver",
                ),
                key(
                    "gain",
                    number(0.0, 1.0),
                    KeyDefault::Number(1.0 / 256.0),
                    "weight of a notice in the estimate of congestion",
                ),
                key(
                    "alpha_timer",
                    time(MAX_WAIT),
                    KeyDefault::Text("55 us"),
                    "time without a notice after which the estimate falls",
                ),
                key("increase_timer", time(MAX_WAIT), KeyDefault::Text("55 us"), "time after which the rate grows"),
                key("increase_bytes", window(), KeyDefault::Text("10 MB"), "bytes after which the rate grows"),
                key(
                    "recovery_steps",
                    integer(1, 1000),
                    KeyDefault::Integer(5),
                    "steps back to the rate before a notice",
                ),
                key("additive", bandwidth(), KeyDefault::Text("40 Mbit/s"), "growth of the rate per step after that"),
                key(
                    "hyper",
                    bandwidth(),
                    KeyDefault::Text("400 Mbit/s"),
                    "the same once time and bytes have had their steps",
                ),
                key("least_rate", bandwidth(), KeyDefault::Text("10 Mbit/s"), "lowest rate"),
            ],
            |view| RdmaControl::Dcqcn(dcqcn(view)),
        ),
    ],
);

static ULTRA_ETHERNET_CONTROL: Choice<Make<UltraEthernetControl>> = choice(
    "congestion control",
    KeyDefault::Text("nscc"),
    &[
        variant(
            "nscc",
            "the sender's window follows delays and marks",
            &[optional(
                "target",
                time(MAX_WAIT),
                "delay in queues up to which a window grows fast; three quarters of `round_trip` by default with trimming, all \
                 of it without",
            )],
            |view| UltraEthernetControl::Nscc { target: view.maybe_quantity("target").unwrap_or_default() },
        ),
        variant("rccc", "the receiver grants what its link can take", &[], |_| UltraEthernetControl::Rccc),
    ],
);

/// Makes the transport of a network.
pub(super) fn plan(network: View<'_>) -> Transport {
    let written = if network.has("transport") { TRANSPORT.make(network.below("transport")) } else { Transport::None };
    match written {
        Transport::UltraEthernet(config) => Transport::UltraEthernet(by_network(network, config)),
        other => other,
    }
}

/// Fills in what depends on the rest of the network.
fn by_network(network: View<'_>, mut config: UltraEthernetConfig) -> UltraEthernetConfig {
    let transport = network.below("transport");
    let has_paths = network.text("routing.type") == "ecmp";
    config.paths = transport.maybe_integer("paths").unwrap_or(if has_paths { USUAL_PATHS } else { 1 });
    if let UltraEthernetControl::Nscc { target } = &mut config.control
        && *target == Span::ZERO
    {
        // Trimming tells of full queues at once, so that short ones are enough.
        let round_trip = config.round_trip;
        *target = if queues::trims(network) { Span(round_trip.0 / 4 * 3) } else { round_trip };
    }
    config
}

/// Paths of a connection, as in csg-htsim and in Hoefler et al., arXiv:2508.08906.
const USUAL_PATHS: u16 = 128;

fn dcqcn(view: View<'_>) -> Dcqcn {
    Dcqcn {
        notice_interval: view.quantity("notice_interval"),
        gain: view.number("gain"),
        alpha_timer: view.quantity("alpha_timer"),
        increase_timer: view.quantity("increase_timer"),
        increase_bytes: view.quantity("increase_bytes"),
        recovery_steps: view.integer("recovery_steps"),
        additive: view.quantity("additive"),
        hyper: view.quantity("hyper"),
        least_rate: view.quantity("least_rate"),
    }
}

const fn window() -> KeyKind {
    bytes(1, MAX_SWITCH_BUFFER)
}

const fn interface_queue() -> KeyKind {
    bytes(0, MAX_SWITCH_BUFFER)
}
