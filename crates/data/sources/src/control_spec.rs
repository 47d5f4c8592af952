//! The typed description of a front end that hears run control, as the experiment file resolves to it.

use evb_core::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A front end that hears run control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControlSpec {
    /// The way to it.
    pub link: ControlLink,
    /// Longest wait for its connection and the answer to its settings, and for every other answer.
    pub timeout: Span,
    /// Its settings, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Setting>,
}

/// The way to a front end that hears run control. Addresses are `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlLink {
    /// The front end listens at this address.
    Connect(String),
    /// The front end connects to this address.
    Listen(String),
}

impl ControlLink {
    /// The address, for messages.
    pub fn place(&self) -> &str {
        match self {
            Self::Connect(address) | Self::Listen(address) => address,
        }
    }
}

/// A setting of a front end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// True or false.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A number, never infinite.
    Number(f64),
    /// A text.
    Text(String),
}
