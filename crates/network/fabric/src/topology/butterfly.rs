//! The k-ary n-fly (Dally and Towles, Principles and Practices of Interconnection Networks, chapter 4).

use super::above_zero;
use crate::builder::{LinkProperties, NetworkBuilder, TopologySize};
use crate::{Network, NetworkConfig, NetworkError};

pub(super) fn build(config: &NetworkConfig, radix: u16, stages: u16) -> Result<Network, NetworkError> {
    above_zero(&[("topology.radix", radix), ("topology.stages", stages)])?;
    let per_stage = u64::from(radix).saturating_pow(u32::from(stages) - 1);
    let endpoints = per_stage.saturating_mul(u64::from(radix));
    let all = u64::from(stages);
    let size =
        TopologySize { endpoints, switches: per_stage.saturating_mul(all), links: endpoints.saturating_mul(all - 1) };
    let mut builder = NetworkBuilder::new(config, &size)?;
    let switches: Vec<_> = (0..stages).map(|stage| builder.switches(&format!("stage{stage}_"), per_stage)).collect();
    let properties = LinkProperties::new(config, None);
    builder.hosts(&switches[0], Some(&switches[usize::from(stages) - 1]), radix)?;
    for (stage, pair) in switches.windows(2).enumerate() {
        // The switches of a stage are numbered by all digits of an address but one. Stage n chooses digit n, from the
        // front, so that the switch's own digit n, the one that its hosts brought, is replaced by the output's number.
        let weight = usize::from(radix).pow(u32::from(stages) - 2 - stage as u32);
        for (place, &from) in pair[0].iter().enumerate() {
            let digit = place / weight % usize::from(radix);
            for output in 0..usize::from(radix) {
                builder.one_way(from, pair[1][place - digit * weight + output * weight], properties);
            }
        }
    }
    builder.finish()
}
