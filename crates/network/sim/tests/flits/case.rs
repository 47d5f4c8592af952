//! A case to compare: a network and packets, with a text form.

use evb_core::Time;
use evb_fabric::{EndpointId, Network, NetworkConfig};
use evb_sim::testing::Probe;
use serde::{Deserialize, Serialize};

/// A network and the packets sent over it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Case {
    /// The seed of the engine; it chooses the routes of `pair` spread.
    pub(crate) seed: u32,
    /// For each packet: picoseconds, from, to, bytes.
    pub(crate) probes: Vec<(u64, u16, u16, u32)>,
    pub(crate) network: NetworkConfig,
}

impl Case {
    pub(crate) fn parse(text: &str) -> Self {
        toml::from_str(text).expect("it is a case")
    }

    /// The text from which [`Case::parse`] makes the case again.
    pub(crate) fn text(&self) -> String {
        toml::to_string(self).expect("a case has a text form")
    }

    pub(crate) fn build(&self) -> Network {
        Network::build(&self.network).unwrap_or_else(|error| panic!("{error}\n{}", self.text()))
    }

    pub(crate) fn probes(&self) -> Vec<Probe> {
        let probe = |&(at, from, to, wire)| Probe { at: Time(at), from: EndpointId(from), to: EndpointId(to), wire };
        self.probes.iter().map(probe).collect()
    }
}
