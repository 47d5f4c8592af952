//! The mapper of a source-routed network, as machines without I/O.
//!
//! Switches of such a network know nothing: a packet carries its route, one turn for each switch, and a switch sends it
//! out of the port at that distance from the one where it came in. So hosts must know the network, and find it out
//! themselves. Each port of a host runs a [`Mapper`]. One of them is elected, the leader: it scouts the network with
//! packets that come back, breadth first, makes a [`Map`] of what answers, and sends it to all hosts. Then it looks at
//! every cable and every host at regular intervals, and scouts again when one does not answer.
//!
//! This is what `mx_mapper` of Myrinet Express does in section II of *Improving the Performance of an Event Builder
//! with Adaptive Routing* (CMS, 2007): scouting at regular intervals, election by the addresses of the interfaces,
//! mapping breadth first, distribution of the map. The paper says no more; the probes are those of Mainwaring, Chun,
//! Schleimer and Wilkerson, *System Area Network Mapping* (SPAA 1997).
//!
//! Later switches of Myrinet answer with their own number. The mapper does not ask for it: the paper's switches
//! know nothing, and the probes that distinguish them are what a new map costs in time.
//!
//! # Example
//! Two hosts at a switch whose ports are next to each other: the first finds the second.
//!
//! ```
//! use evb_core::{Span, Time};
//! use evb_mapper::{Address, Far, Mapper, Settings, Turn};
//!
//! let settings = Settings {
//!     ports: 2,
//!     interval: Span::from_millis(10),
//!     patience: Span::from_millis(100),
//!     timeout: Span::from_millis(1),
//!     tries: 2,
//!     window: 4,
//! };
//! let mut hosts = [1, 2].map(|address| Mapper::new(settings, Address(address)));
//! let mut now = Time::ZERO;
//! let map = loop {
//!     hosts.iter_mut().for_each(|host| host.handle_timeout(now));
//!     for from in [0_usize, 1] {
//!         while let Some(out) = hosts[from].poll_transmit() {
//!             // Port 0 leads to the first host and port 1 to the second.
//!             if let [turn] = out.route[..]
//!                 && let Some(to) = from.checked_add_signed(turn.into()).filter(|&to| to < 2)
//!             {
//!                 hosts[to].handle_message(now, out.message);
//!             }
//!         }
//!     }
//!     if let Some(map) = hosts[1].poll_map() {
//!         break map;
//!     }
//!     now = now + Span::from_millis(1);
//! };
//! assert_eq!(map.leader, Address(1));
//! assert_eq!(map.switches[0].ports[&1], Far::Host(Address(2)));
//! ```

#![no_std]

extern crate alloc;

mod machine;
mod map;
mod message;
mod probing;
mod survey;

pub use machine::{Mapper, Settings};
pub use map::{Far, Map, MappedSwitch};
pub use message::{Address, Message, Route, Transmit, Turn, back};
