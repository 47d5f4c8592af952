//! Reliable connections with congestion control, as machines without I/O: TCP with Reno, CUBIC or DCTCP, and RDMA with
//! go-back-N or selective repeat, alone or with DCQCN.
//!
//! A [`Sender`] turns a stream of bytes into [`Segment`]s, and a [`Receiver`] answers them with [`Reply`]s. The driver
//! carries both over a network that may lose, mark and reorder them, and tells each machine when its deadline is over.
//! Connections are open from the start: event builders keep theirs for a whole run.

mod config;
mod control;
mod outstanding;
mod receiver;
mod round_trip;
mod sender;
mod wire;

pub use config::{Dcqcn, RdmaConfig, RdmaControl, Recovery, TcpConfig, TcpControl, Transport};
pub use control::{Acked, CongestionControl};
pub use receiver::{Received, Receiver};
pub use sender::{Next, Sender, SenderCounts};
pub use wire::{Reply, ReplyKind, Segment};
