//! A fabric as its subnet manager knows it.

use crate::builder::{LinkProperties, NetworkBuilder, TopologySize};
use crate::{EndpointId, Network, NetworkConfig, NetworkError, SubnetCable, SubnetHostCable, SubnetSwitch, SwitchId};

pub(super) fn build(
    config: &NetworkConfig,
    switches: &[SubnetSwitch],
    hosts: &[SubnetHostCable],
    cables: &[SubnetCable],
) -> Result<Network, NetworkError> {
    if switches.is_empty() || hosts.is_empty() {
        return Err(NetworkError::Zero { what: "the number of switches or hosts of the fabric" });
    }
    let (endpoints, ports) = (hosts.len() as u64, config.nic.ports);
    if !endpoints.is_multiple_of(u64::from(ports)) {
        return Err(NetworkError::NotDivisible { what: "host ports", number: endpoints, ports });
    }
    let size = TopologySize { endpoints, switches: switches.len() as u64, links: 2 * cables.len() as u64 };
    let mut builder = NetworkBuilder::new(config, &size)?;
    let ids: Vec<_> = switches.iter().map(|switch| builder.switch(switch.name.clone())).collect();
    // The ports at the two ends of each cable, in the order of the cables.
    let mut ports = Vec::with_capacity(hosts.len() + cables.len());
    for (place, cable) in hosts.iter().enumerate() {
        let endpoint = EndpointId(place as u16);
        let properties =
            LinkProperties::of_host(config, endpoint).rated(config.own_rate(endpoint).or(Some(cable.rate)));
        builder.host(endpoint, find(&ids, cable.switch)?, properties)?;
        ports.push([0, cable.port]);
    }
    for cable in cables {
        let [one, other] = cable.switches;
        let properties = LinkProperties::new(config, Some(cable.rate));
        builder.cables(find(&ids, one)?, find(&ids, other)?, 1, properties);
        ports.push(cable.ports);
    }
    builder.order_ports(&ports);
    builder.finish()
}

fn find(ids: &[SwitchId], switch: u16) -> Result<SwitchId, NetworkError> {
    let unknown = || NetworkError::UnknownEnd { name: format!("switch {switch}") };
    ids.get(usize::from(switch)).copied().ok_or_else(unknown)
}
