//! A network that the user lists.

use super::above_zero;
use crate::builder::{LinkProperties, NetworkBuilder, TopologySize};
use crate::{EndpointId, ExplicitLink, Network, NetworkConfig, NetworkError, SwitchId};
use std::collections::HashMap;

pub(super) fn build(config: &NetworkConfig, names: &[String], links: &[ExplicitLink]) -> Result<Network, NetworkError> {
    if names.is_empty() {
        return Err(NetworkError::Zero { what: "the number of topology.switches" });
    }
    let endpoints = count_endpoints(config, links)?;
    let cables: u64 = links.iter().map(|link| u64::from(link.count)).sum();
    let size = TopologySize { endpoints, switches: names.len() as u64, links: cables.saturating_mul(2) };
    let mut builder = NetworkBuilder::new(config, &size)?;
    let switches = add_switches(&mut builder, names)?;
    for link in links {
        add_link(config, &mut builder, &switches, link)?;
    }
    builder.finish()
}

/// The number of ports of hosts: the highest port number decides.
fn count_endpoints(config: &NetworkConfig, links: &[ExplicitLink]) -> Result<u64, NetworkError> {
    let ends = links.iter().flat_map(|link| &link.ends);
    let endpoints = ends.filter_map(|end| endpoint_number(end)).max().map_or(0, |most| most.saturating_add(1));
    if endpoints == 0 {
        return Err(NetworkError::Zero { what: "the number of host ports in topology.links" });
    }
    if !endpoints.is_multiple_of(u64::from(config.nic.ports)) {
        return Err(NetworkError::NotDivisible { what: "host ports", number: endpoints, ports: config.nic.ports });
    }
    Ok(endpoints)
}

fn add_switches<'n>(
    builder: &mut NetworkBuilder<'_>,
    names: &'n [String],
) -> Result<HashMap<&'n str, SwitchId>, NetworkError> {
    let mut switches = HashMap::new();
    for name in names {
        if !is_switch_name(name) {
            return Err(NetworkError::SwitchName { name: name.clone() });
        }
        if switches.insert(name.as_str(), builder.switch(name.clone())).is_some() {
            return Err(NetworkError::SwitchTwice { name: name.clone() });
        }
    }
    Ok(switches)
}

/// True if a switch can have this name.
pub(crate) fn is_switch_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['>', '.']) && endpoint_number(name).is_none()
}

fn add_link(
    config: &NetworkConfig,
    builder: &mut NetworkBuilder<'_>,
    switches: &HashMap<&str, SwitchId>,
    link: &ExplicitLink,
) -> Result<(), NetworkError> {
    above_zero(&[("the count of a link", link.count)])?;
    let own = |default: LinkProperties| default.rated(link.rate).delayed(link.delay).marked(link.marking);
    let [from, to] = &link.ends;
    match (find(switches, from)?, find(switches, to)?) {
        (ListedEnd::Switch(one), ListedEnd::Switch(other)) if one != other => {
            builder.cables(one, other, link.count, own(LinkProperties::new(config, None)))
        }
        (ListedEnd::Host(host), ListedEnd::Switch(switch)) | (ListedEnd::Switch(switch), ListedEnd::Host(host)) => {
            for _ in 0..link.count {
                builder.host(host, switch, own(LinkProperties::of_host(config, host)))?;
            }
        }
        _ => return Err(NetworkError::BadLink { from: from.clone(), to: to.clone() }),
    }
    Ok(())
}

enum ListedEnd {
    Switch(SwitchId),
    Host(EndpointId),
}

fn find(switches: &HashMap<&str, SwitchId>, name: &str) -> Result<ListedEnd, NetworkError> {
    let host = || endpoint_number(name).map(|number| ListedEnd::Host(EndpointId(number as u16)));
    let switch = switches.get(name).map(|&switch| ListedEnd::Switch(switch));
    switch.or_else(host).ok_or_else(|| NetworkError::UnknownEnd { name: name.to_owned() })
}

/// The number of a name like `h12`; a number beyond all limits becomes the largest one.
fn endpoint_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix('h')?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = digits == "0" || !digits.starts_with('0');
    (plain && canonical).then(|| digits.parse().unwrap_or(u64::MAX))
}
