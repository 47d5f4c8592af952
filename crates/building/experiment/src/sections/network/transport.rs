//! `network.transport`: the connections that carry messages.

use crate::{choice::*, limits::*, schema::*, view::View};
use evb_connection::{Dcqcn, RdmaConfig, RdmaControl, Recovery, TcpConfig, TcpControl, Transport};

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
    ],
);

static TCP_CONTROL: Words<TcpControl> = Words(&[
    word("reno", "slow start, and one segment more in each round trip, RFC 5681", TcpControl::Reno),
    word("cubic", "the default of Linux, RFC 9438, without HyStart", TcpControl::Cubic),
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

/// Makes the transport of a network.
pub(super) fn plan(network: View<'_>) -> Transport {
    if network.has("transport") { TRANSPORT.make(network.below("transport")) } else { Transport::None }
}

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
