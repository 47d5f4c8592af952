//! A transport and its settings, as a plan has them.

use crate::find;
use evb_transport::{Settings, TransportInfo};
use serde::{Deserialize, Serialize};

/// One of the transports, with settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "StoredTransport", into = "StoredTransport")]
pub struct TransportChoice {
    info: &'static TransportInfo,
    settings: Settings,
}

/// The form that is written.
#[derive(Serialize, Deserialize)]
struct StoredTransport {
    name: String,
    settings: Settings,
}

impl TransportChoice {
    /// The transport with these settings; those that are not there have their defaults.
    #[must_use]
    pub const fn new(info: &'static TransportInfo, settings: Settings) -> Self {
        Self { info, settings }
    }

    /// The transport's own description.
    #[must_use]
    pub const fn info(&self) -> &'static TransportInfo {
        self.info
    }

    /// The settings of the transport.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl PartialEq for TransportChoice {
    fn eq(&self, other: &Self) -> bool {
        self.info.name == other.info.name && self.settings == other.settings
    }
}

impl Eq for TransportChoice {}

impl From<TransportChoice> for StoredTransport {
    fn from(TransportChoice { info, settings }: TransportChoice) -> Self {
        Self { name: info.name.to_owned(), settings }
    }
}

impl TryFrom<StoredTransport> for TransportChoice {
    type Error = String;

    fn try_from(StoredTransport { name, settings }: StoredTransport) -> Result<Self, String> {
        let info = find(&name).ok_or_else(|| format!("there is no transport {name:?}"))?;
        Ok(Self { info, settings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_come_back_from_text() {
        let settings = Settings::from([("provider".to_owned(), "shm".to_owned())]);
        let choice = TransportChoice::new(find("ofi").expect("a transport"), settings);
        let text = serde_json::to_string(&choice).expect("JSON");
        assert_eq!(text, r#"{"name":"ofi","settings":{"provider":"shm"}}"#);
        assert_eq!(serde_json::from_str::<TransportChoice>(&text).expect("the same"), choice);
        assert!(serde_json::from_str::<TransportChoice>(&text.replace("ofi", "pigeon")).is_err());
    }
}
