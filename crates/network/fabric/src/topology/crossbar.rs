//! One switch with all hosts.

use super::above_zero;
use crate::builder::{LinkProperties, NetworkBuilder, TopologySize};
use crate::{EndpointId, Network, NetworkConfig, NetworkError};

pub(super) fn build(config: &NetworkConfig, ports: u16) -> Result<Network, NetworkError> {
    above_zero(&[("topology.ports", ports)])?;
    if !ports.is_multiple_of(u16::from(config.nic.ports)) {
        return Err(NetworkError::NotDivisible { what: "ports", number: u64::from(ports), ports: config.nic.ports });
    }
    let mut builder =
        NetworkBuilder::new(config, &TopologySize { endpoints: u64::from(ports), switches: 1, links: 0 })?;
    let switch = builder.switch("switch0".to_owned());
    for port in 0..ports {
        let endpoint = EndpointId(port);
        builder.host(endpoint, switch, LinkProperties::of_host(config, endpoint))?;
    }
    builder.finish()
}
