//! The switches that cut through, where a list says which.

use crate::{Flow, Network, NetworkConfig, NetworkError, Routing, Switch};

/// Checks that nothing else in a network demands that all switches do the same.
pub(crate) fn check(config: &NetworkConfig) -> Result<(), NetworkError> {
    if config.switch.cut_through.is_none() {
        return Ok(());
    }
    let excluded = match (config.flow, config.routing) {
        (Flow::Wormhole { .. }, _) => "flow.type = \"wormhole\"",
        (_, Routing::Learning { .. }) => "routing.type = \"learning\"",
        _ if config.switch.trimming => "switch.trimming",
        _ => return Ok(()),
    };
    Err(NetworkError::CutThroughExcludes { key: excluded })
}

impl Network {
    /// Notes for each switch whether it cuts through: those that the list names, or without a list as the flow says.
    pub(crate) fn note_cut_through(&mut self) -> Result<(), NetworkError> {
        let of_flow = !matches!(self.config.flow, Flow::StoreAndForward { .. });
        let names = self.config.switch.cut_through.as_deref();
        if let Some(name) =
            names.unwrap_or_default().iter().find(|name| !self.switches.iter().any(|one| is_named(one, name)))
        {
            return Err(NetworkError::NoSuchSwitch { name: name.clone(), first: self.switches[0].name.clone() });
        }
        for switch in &mut self.switches {
            switch.cuts_through = names.map_or(of_flow, |names| names.iter().any(|name| is_named(switch, name)));
        }
        Ok(())
    }

    /// True if switches do not all forward packets as the flow says.
    pub fn is_mixed(&self) -> bool {
        let of_flow = !matches!(self.config.flow, Flow::StoreAndForward { .. });
        self.switches.iter().any(|switch| switch.cuts_through != of_flow)
    }
}

/// True if a name is that of a switch, or ends with `*` and the name of the switch begins like it.
fn is_named(switch: &Switch, name: &str) -> bool {
    name == switch.name || name.strip_suffix('*').is_some_and(|begin| switch.name.starts_with(begin))
}
