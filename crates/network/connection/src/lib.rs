//! Reliable connections with congestion control, as machines without I/O: TCP with Reno, CUBIC or DCTCP; RDMA with
//! go-back-N or selective repeat, alone or with DCQCN; and Ultra Ethernet over many paths, with NSCC or RCCC.
//!
//! A [`Sender`] turns a stream of bytes into [`Segment`]s, and a [`Receiver`] answers them with [`Reply`]s. The driver
//! carries both over a network that may lose, mark and reorder them, and tells each machine when its deadline is over.
//! Connections are open from the start: event builders keep theirs for a whole run.

mod config;
mod control;
mod credit;
mod outstanding;
mod paths;
mod receiver;
mod reduction;
mod round_trip;
mod sender;
mod wire;

pub use config::{
    Dcqcn, RdmaConfig, RdmaControl, Recovery, Regulated, TcpConfig, TcpControl, Transport, UltraEthernetConfig,
    UltraEthernetControl,
};
pub use control::{Acked, CongestionControl};
pub use credit::CreditPacer;
pub use receiver::{Received, Receiver};
pub use sender::{Next, Sender, SenderCounts};
pub use wire::{Reply, ReplyKind, Segment};
