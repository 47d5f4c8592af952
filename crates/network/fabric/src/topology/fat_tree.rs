//! Three layers of equal switches: the fat tree of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008, section 2.2.1).

use super::above_zero;
use crate::builder::{LinkProperties, NetworkBuilder, TopologySize};
use crate::{Network, NetworkConfig, NetworkError, SwitchId};

pub(super) fn build(config: &NetworkConfig, radix: u16) -> Result<Network, NetworkError> {
    above_zero(&[("topology.radix", radix)])?;
    if !radix.is_multiple_of(2) {
        return Err(NetworkError::OddRadix { radix });
    }
    let (pods, half) = (u64::from(radix), u64::from(radix / 2));
    let size = TopologySize {
        endpoints: pods * half * half,
        switches: pods * half * 2 + half * half,
        links: pods * half * half * 4,
    };
    let mut builder = NetworkBuilder::new(config, &size)?;
    let edges = layer(&mut builder, "edge", pods, half);
    let aggregations = layer(&mut builder, "aggregation", pods, half);
    let cores = builder.switches("core", half * half);
    let (properties, half) = (LinkProperties::new(config, None), usize::from(radix / 2));
    builder.hosts(&edges, None, radix / 2)?;
    for (place, &edge) in edges.iter().enumerate() {
        let pod = place / half;
        for &aggregation in &aggregations[pod * half..(pod + 1) * half] {
            builder.cables(edge, aggregation, 1, properties);
        }
    }
    for (place, &aggregation) in aggregations.iter().enumerate() {
        let row = place % half;
        for &core in &cores[row * half..(row + 1) * half] {
            builder.cables(aggregation, core, 1, properties);
        }
    }
    builder.finish()
}

/// The switches of one layer of all pods, pod by pod.
fn layer(builder: &mut NetworkBuilder<'_>, prefix: &str, pods: u64, half: u64) -> Vec<SwitchId> {
    (0..pods).flat_map(|pod| builder.switches(&format!("{prefix}{pod}_"), half)).collect()
}
