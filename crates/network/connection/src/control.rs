//! Congestion control: how much a connection may have under way, and how fast it may send.

mod cubic;
mod dcqcn;
mod dctcp;
mod hystart;
mod nscc;
mod reno;

use crate::config::{RdmaControl, TcpControl, Transport, UltraEthernetControl};
use evb_core::{Bandwidth, Span, Time};
use std::fmt;

/// What an acknowledgement says to a congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// The present time.
    pub now: Time,
    /// Bytes that have arrived and were not known to.
    pub bytes: u64,
    /// These bytes met congestion.
    pub is_marked: bool,
    /// All bytes before this place have arrived.
    pub expected: u64,
    /// The place behind the last byte that was sent.
    pub next: u64,
    /// The smoothed round-trip time.
    pub round_trip: Span,
    /// The round-trip time of the segment that was acknowledged.
    pub sample: Span,
    /// Bytes under way after this.
    pub under_way: u64,
    /// Lost segments are being sent again.
    pub is_recovering: bool,
    /// The window may grow: bytes arrived in their turn (RFC 5681), the window bounded what was sent (RFC 7661), and no lost
    /// segments are being sent again.
    pub may_grow: bool,
}

/// The congestion control of one connection. Its sender calls it in the order in which things happen.
pub trait CongestionControl: fmt::Debug + Send {
    /// Most bytes that may be under way.
    fn window(&self) -> u64;

    /// The rate at which packets go, with their headers; `None` if the window alone bounds them.
    fn rate(&self) -> Option<Bandwidth> {
        None
    }

    /// Bytes went out, counted with their headers.
    fn sent(&mut self, _now: Time, _bytes: u64) {}

    /// New bytes were acknowledged.
    fn acknowledged(&mut self, acked: &Acked);

    /// A loss was found by later segments that arrived, while `under_way` bytes were under way.
    fn lost(&mut self, now: Time, under_way: u64);

    /// A switch cut a segment of this many bytes to its header; `under_way` bytes are under way beside it.
    fn trimmed(&mut self, _now: Time, _bytes: u64, _under_way: u64) {}

    /// A loss was found by a timeout, while `outstanding` bytes had no acknowledgement.
    fn timed_out(&mut self, now: Time, outstanding: u64);

    /// True if a recovery sends in proportion to what arrives (RFC 6937); otherwise the window alone bounds it.
    fn reduces_rate(&self) -> bool {
        false
    }

    /// The connection sends again after it was idle for longer than a timeout.
    fn was_idle(&mut self) {}

    /// The receiver told of congestion.
    fn notified(&mut self, _now: Time) {}

    /// The next time at which the rate changes by itself.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// The deadline is over.
    fn handle_deadline(&mut self, _now: Time) {}
}

/// The congestion control of a connection with segments of `segment` bytes, over a link of this rate.
pub(crate) fn of(transport: &Transport, segment: u64, link: Bandwidth) -> Box<dyn CongestionControl> {
    match transport {
        Transport::None => Box::new(Unlimited(u64::MAX)),
        Transport::Tcp(tcp) => {
            let window = reno::Window::new(segment, u64::from(tcp.initial_window) * segment);
            match tcp.control {
                TcpControl::Reno => Box::new(reno::Reno(window)),
                TcpControl::Cubic => Box::new(cubic::Cubic::new(window, None)),
                TcpControl::LinuxCubic => Box::new(cubic::Cubic::new(window, Some(hystart::HyStart::default()))),
                TcpControl::Dctcp => Box::new(dctcp::Dctcp::new(window)),
            }
        }
        Transport::Rdma(rdma) => match rdma.control {
            RdmaControl::None => Box::new(Unlimited(rdma.window.0)),
            RdmaControl::Dcqcn(config) => Box::new(dcqcn::RatePoint::new(config, link, rdma.window.0)),
        },
        Transport::UltraEthernet(config) => match config.control {
            UltraEthernetControl::Nscc { target } => {
                let most = config.window.map(|window| window.0);
                Box::new(nscc::Nscc::new(segment, link, config.round_trip, target, most))
            }
            // Its credit bounds what it sends.
            UltraEthernetControl::Rccc => Box::new(Unlimited(u64::MAX)),
        },
    }
}

/// A fixed window.
#[derive(Debug)]
struct Unlimited(u64);

impl CongestionControl for Unlimited {
    fn window(&self) -> u64 {
        self.0
    }

    fn acknowledged(&mut self, _: &Acked) {}

    fn lost(&mut self, _: Time, _: u64) {}

    fn timed_out(&mut self, _: Time, _: u64) {}
}
