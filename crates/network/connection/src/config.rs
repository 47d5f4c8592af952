//! The settings of the connections of a network.

use evb_core::{Bandwidth, ByteCount, Span};
use serde::{Deserialize, Serialize};

/// How the hosts of a network carry messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Transport {
    /// Each packet is sent once, as fast as the link takes it.
    #[default]
    None,
    /// A TCP connection between each pair of nodes that send to each other.
    Tcp(TcpConfig),
    /// A queue pair with reliable service (InfiniBand, RoCE) between each pair of nodes that send to each other.
    Rdma(RdmaConfig),
    /// A connection of Ultra Ethernet, whose packets take many paths, between each pair of nodes that send to each other.
    UltraEthernet(UltraEthernetConfig),
}

/// The settings of TCP connections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpConfig {
    /// The congestion control.
    pub control: TcpControl,
    /// Segments of the window at the start, and after the connection was idle (RFC 6928: 10).
    pub initial_window: u16,
    /// Most bytes without an acknowledgement: the receiver's window.
    pub window: ByteCount,
    /// Shortest time after which a segment is sent again (RFC 6298: 1 s; Linux: 200 ms).
    pub least_timeout: Span,
    /// Segments that one acknowledgement covers at most (RFC 5681: 2).
    pub ack_every: u16,
    /// Longest wait of an acknowledgement for further segments (RFC 1122: below 500 ms; Linux: 40 ms).
    pub ack_delay: Span,
    /// The sender probes for lost tails after two round trips (RFC 8985, 7).
    pub tail_probes: bool,
    /// Bytes of a connection that may wait in the queue of the interface. They count as sent: the window has them, and so has
    /// the round trip.
    pub interface_queue: ByteCount,
}

/// The congestion control of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TcpControl {
    /// Slow start, additive increase and multiplicative decrease (RFC 5681).
    Reno,
    /// Growth with the cube of the time since the last loss (RFC 9438), without HyStart.
    Cubic,
    /// `Cubic` as Linux has it: with HyStart, which ends slow start before a loss, and recoveries that send in proportion to what
    /// arrives (RFC 6937).
    LinuxCubic,
    /// Decrease by the part of marked bytes (RFC 8257).
    Dctcp,
}

/// The settings of queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RdmaConfig {
    /// What is sent again after a loss.
    pub recovery: Recovery,
    /// Most bytes without an acknowledgement.
    pub window: ByteCount,
    /// Time without an acknowledgement after which packets are sent again.
    pub timeout: Span,
    /// Packets that one acknowledgement covers at most.
    pub ack_every: u16,
    /// The congestion control.
    pub control: RdmaControl,
}

/// What is sent again after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// The missing packet and all behind it: a receiver keeps nothing ahead of its turn (InfiniBand Architecture
    /// Specification 1.4, section 9.7).
    GoBackN,
    /// Missing packets alone (Mittal et al., Revisiting Network Support for RDMA, SIGCOMM 2018).
    Selective,
}

/// The congestion control of queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum RdmaControl {
    /// None: the link and the window alone bound what is sent.
    None,
    /// DCQCN.
    Dcqcn(Dcqcn),
}

/// The parameters of DCQCN (Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015). The default
/// values are those of its section 5 and figure 14.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dcqcn {
    /// Shortest time between two notices of a receiver.
    pub notice_interval: Span,
    /// Weight of the last notice in the estimate of congestion, g.
    pub gain: f64,
    /// Time without a notice after which the estimate falls.
    pub alpha_timer: Span,
    /// Time after which the rate grows.
    pub increase_timer: Span,
    /// Bytes after which the rate grows.
    pub increase_bytes: ByteCount,
    /// Steps of fast recovery, F.
    pub recovery_steps: u16,
    /// Additive increase of the target rate.
    pub additive: Bandwidth,
    /// Increase of the target rate per step of hyper increase.
    pub hyper: Bandwidth,
    /// Lowest rate.
    pub least_rate: Bandwidth,
}

impl Default for Dcqcn {
    fn default() -> Self {
        Self {
            notice_interval: Span::from_micros(50),
            gain: 1.0 / 256.0,
            alpha_timer: Span::from_micros(55),
            increase_timer: Span::from_micros(55),
            increase_bytes: ByteCount(10_000_000),
            recovery_steps: 5,
            additive: Bandwidth(40_000_000),
            hyper: Bandwidth(400_000_000),
            least_rate: Bandwidth(10_000_000),
        }
    }
}

/// The settings of connections of Ultra Ethernet (Ultra Ethernet Specification 1.0, 2025; Hoefler et al., Ultra Ethernet's
/// Design Principles and Architectural Innovations, arXiv:2508.08906): reliable, and a message is delivered when it is whole,
/// whatever came before it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UltraEthernetConfig {
    /// The congestion control.
    pub control: UltraEthernetControl,
    /// The round trip of a packet and its acknowledgement across the network, with empty queues.
    pub round_trip: Span,
    /// Most bytes under way (`nscc`), or those that a sender sends before it has credit (`rccc`); `None` for 1.5 times those
    /// of the link in a round trip.
    pub window: Option<ByteCount>,
    /// Routes over which the packets of a connection take turns.
    pub paths: u16,
    /// A path on which a packet met congestion is left out for a turn.
    pub steering: bool,
    /// Time without an acknowledgement after which a packet is sent again.
    pub timeout: Span,
    /// Packets that one acknowledgement covers at most.
    pub ack_every: u16,
}

/// The congestion control of Ultra Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum UltraEthernetControl {
    /// Network-signalled congestion control: the sender's window follows delays and marks.
    Nscc {
        /// Delay in queues up to which the window grows fast.
        target: Span,
    },
    /// Receiver-credit congestion control: receivers grant what their links can take.
    Rccc,
}

/// What a congestion control changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regulated {
    /// The congestion window.
    Window,
    /// The rate at which packets go.
    Rate,
}

impl UltraEthernetConfig {
    /// The window of a connection over a link of this rate.
    pub fn window_over(&self, link: Bandwidth) -> u64 {
        self.window.map_or_else(|| usual_window(link, self.round_trip) as u64, |window| window.0)
    }
}

/// The window over a link of this rate without one of its own, in bytes: 1.5 times those of a round trip.
pub(crate) fn usual_window(link: Bandwidth, round_trip: Span) -> f64 {
    let in_flight = link.as_bytes_per_second() * round_trip.as_secs_f64();
    1.5 * in_flight
}

impl Transport {
    /// Bytes of a connection that may wait in the queue of the interface. Without any, the interface asks connections in turn.
    pub const fn interface_queue(&self) -> ByteCount {
        match self {
            Self::Tcp(tcp) => tcp.interface_queue,
            Self::None | Self::Rdma(_) | Self::UltraEthernet(_) => ByteCount(0),
        }
    }

    /// What the congestion control of a sender changes; `None` if the link, a fixed window or the credit of receivers is all that
    /// bounds it.
    pub const fn regulates(&self) -> Option<Regulated> {
        match self {
            Self::Tcp(_) => Some(Regulated::Window),
            Self::Rdma(RdmaConfig { control: RdmaControl::Dcqcn(_), .. }) => Some(Regulated::Rate),
            Self::UltraEthernet(UltraEthernetConfig { control: UltraEthernetControl::Nscc { .. }, .. }) => {
                Some(Regulated::Window)
            }
            Self::None | Self::Rdma(_) | Self::UltraEthernet(_) => None,
        }
    }

    /// True if messages travel over connections.
    pub const fn connects(&self) -> bool {
        !matches!(self, Self::None)
    }
}
