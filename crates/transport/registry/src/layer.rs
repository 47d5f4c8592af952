//! The message layers of the transports by name.

use crate::{ALL, TransportChoice};
use evb_transport::Layer;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A message layer that can be measured, with the settings of its transport.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "StoredLayer", into = "StoredLayer")]
pub struct LayerChoice {
    layer: &'static Layer,
    transport: TransportChoice,
}

/// The form that is written.
#[derive(Serialize, Deserialize)]
struct StoredLayer {
    layer: String,
    transport: TransportChoice,
}

impl LayerChoice {
    /// The layer of a transport, with its settings: the one of the same name, or its first; `None` if it has none.
    #[must_use]
    pub fn of(transport: &TransportChoice) -> Option<Self> {
        let info = transport.info();
        let layer = info.layers.iter().find(|layer| layer.name == info.name).or(info.layers.first())?;
        Some(Self { layer, transport: transport.clone() })
    }

    /// The names that a layer may have, for people; with notes, also what the names do not say.
    #[must_use]
    pub fn usage(notes: bool) -> String {
        let one = |layer: &Layer| match layer.note {
            note if notes && !note.is_empty() => format!("{} ({note})", layer.usage),
            _ => layer.usage.to_owned(),
        };
        ALL.iter().flat_map(|info| info.layers).map(one).collect::<Vec<_>>().join(", ")
    }

    /// The layer's own description.
    #[must_use]
    pub const fn info(&self) -> &'static Layer {
        self.layer
    }

    /// The transport that it belongs to.
    #[must_use]
    pub const fn transport(&self) -> &TransportChoice {
        &self.transport
    }

    /// True when its nodes are threads of one process.
    #[must_use]
    pub const fn is_one_process(&self) -> bool {
        self.transport.info().is_one_process()
    }

    /// True when its time is that of a simulation: it is the same in each launch and on any machine.
    #[must_use]
    pub const fn is_simulated(&self) -> bool {
        self.layer.simulated_byte.is_some()
    }
}

impl PartialEq for LayerChoice {
    fn eq(&self, other: &Self) -> bool {
        self.layer.name == other.layer.name && self.transport == other.transport
    }
}

impl Eq for LayerChoice {}

impl fmt::Display for LayerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.layer.name)?;
        let Some(parameter) = &self.layer.parameter else { return Ok(()) };
        let value = parameter.setting.text(self.transport.settings());
        let is_shown = parameter.shows_default || value != parameter.setting.value.to_string();
        if is_shown { write!(f, ":{value}") } else { Ok(()) }
    }
}

impl From<LayerChoice> for StoredLayer {
    fn from(LayerChoice { layer, transport }: LayerChoice) -> Self {
        Self { layer: layer.name.to_owned(), transport }
    }
}

impl TryFrom<StoredLayer> for LayerChoice {
    type Error = String;

    fn try_from(StoredLayer { layer, transport }: StoredLayer) -> Result<Self, String> {
        let found = transport.info().layers.iter().find(|known| known.name == layer);
        found.map(|layer| Self { layer, transport }).ok_or_else(|| format!("there is no message layer {layer:?}"))
    }
}

impl FromStr for LayerChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value)));
        let unknown = || format!("{text:?} is not a message layer: use {}", Self::usage(false));
        let is_it = |layer: &&Layer| layer.name == name || layer.aliases.contains(&name);
        let of_transport = ALL.iter().find_map(|info| Some((*info, info.layers.iter().find(is_it)?)));
        let (info, layer) = of_transport.ok_or_else(unknown)?;
        let setting = match (&layer.parameter, value) {
            (None, None) => None,
            (Some(of), None) => Some((of.setting.name.to_owned(), of.setting.value.to_string())),
            (Some(of), Some(value)) if !value.is_empty() => Some((of.setting.name.to_owned(), (of.read)(value)?)),
            (_, Some(_)) => return Err(unknown()),
        };
        let stands_for = layer.stands_for.map(|(setting, value)| (setting.name.to_owned(), value.to_owned()));
        Ok(Self { layer, transport: TransportChoice::new(info, setting.into_iter().chain(stands_for).collect()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for name in [
            "threads",
            "shm",
            "tcp",
            "udp",
            "mpi",
            "ofi:shm",
            "ethernet:eth0",
            "velo-rtl",
            "velo-rtl:96",
            "bond:tcp@10.0.0.1+ethernet:eth0",
        ] {
            assert_eq!(name.parse::<LayerChoice>().unwrap().to_string(), name);
        }
        for (other, name) in [("velo", "shm"), ("velo-rtl:16", "velo-rtl"), ("ofi", "ofi:tcp")] {
            assert_eq!(other.parse::<LayerChoice>(), name.parse());
        }
        assert_eq!("ofi".parse::<LayerChoice>().unwrap().to_string(), "ofi:tcp");
        for wrong in ["", "velo-rtl:", "velo-rtl:17", "ofi:", "tcp:1", "rtl", "bond:", "bond:tcp"] {
            assert!(wrong.parse::<LayerChoice>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn layers_come_back_from_text() {
        for name in ["udp", "ofi:shm", "velo-rtl:96"] {
            let layer: LayerChoice = name.parse().unwrap();
            let text = serde_json::to_string(&layer).unwrap();
            assert_eq!(serde_json::from_str::<LayerChoice>(&text).unwrap(), layer);
            assert!(serde_json::from_str::<LayerChoice>(&text.replacen("layer\":\"", "layer\":\"x", 1)).is_err());
        }
        let transport = "ofi:shm".parse::<LayerChoice>().unwrap().transport().clone();
        assert_eq!(LayerChoice::of(&transport).unwrap().to_string(), "ofi:shm");
    }

    #[test]
    fn a_name_stands_for_a_setting() {
        let named = |name: &str| name.parse::<LayerChoice>().unwrap().transport().clone();
        let setting = |name, setting: &str| named(name).settings().get(setting).cloned();
        for (name, key, value) in
            [("bond-size:tcp+tcp", "stripe", "size"), ("bond-destination:tcp+tcp", "stripe", "destination")]
        {
            assert_eq!(setting(name, key).as_deref(), Some(value), "{name}");
        }
        assert_eq!(setting("bond:tcp+tcp", "stripe"), None);
    }

    #[test]
    fn errors_list_all_names() {
        let names = "threads, shm, tcp, udp, mpi, ofi:PROVIDER such as ofi:tcp or ofi:shm, ethernet:INTERFACE such \
                     as ethernet:eth0, bond:LINK+LINK such as bond:ethernet:eth0+ethernet:eth1, \
                     bond-size:.., bond-destination:.., velo-rtl or velo-rtl:WIRES";
        assert_eq!("rtl".parse::<LayerChoice>(), Err(format!("\"rtl\" is not a message layer: use {names}")));
        assert!(LayerChoice::usage(true).contains("shm (the VELO engine), tcp"));
    }
}
