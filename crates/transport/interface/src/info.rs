//! A transport as experiment files, run control and the benchmarks know it before it is opened.

use evb_core::Span;
use std::{collections::BTreeMap, fmt, str::FromStr};

/// The settings of a transport by name, as text; those that are not there have their defaults.
pub type Settings = BTreeMap<String, String>;

/// Prepares this number of nodes. The function takes messages about long steps.
pub type Prepare = fn(nodes: u16, &Settings, notice: &mut dyn FnMut(&str)) -> Result<(), OpenError>;

/// Name, settings and properties of a transport.
#[derive(Debug)]
pub struct TransportInfo {
    /// Name in experiment files and records.
    pub name: &'static str,
    /// A sentence fragment that says what it is, for the reference page.
    pub doc: &'static str,
    /// Settings in an experiment file, beside the name.
    pub settings: &'static [Setting],
    /// Places that its nodes can have.
    pub nodes: Nodes,
    /// True if it joins processes of one machine only.
    pub is_local: bool,
    /// True if a node gives up peers that are silent for [`peer_timeout`](crate::EndpointOptions::peer_timeout).
    pub gives_up_peers: bool,
    /// Most memory that a node takes for messages; `queue` is the length of the queues between threads.
    pub memory: fn(queue: usize) -> MemoryOfNode,
    /// Does long work before nodes start, such as a compilation. The function takes a message when it begins.
    pub prepare: Prepare,
    /// Message layers, for the benchmarks.
    pub layers: &'static [Layer],
}

impl TransportInfo {
    /// A transport without settings and layers, whose queues are not counted.
    #[must_use]
    pub const fn new(name: &'static str, doc: &'static str, nodes: Nodes) -> Self {
        Self {
            name,
            doc,
            settings: &[],
            nodes,
            is_local: false,
            gives_up_peers: false,
            memory: |_| MemoryOfNode { own: 0, for_each_peer: 0 },
            prepare: |_, _, _| Ok(()),
            layers: &[],
        }
    }

    /// True when its nodes are threads of one process.
    #[must_use]
    pub const fn is_one_process(&self) -> bool {
        !matches!(self.nodes, Nodes::Processes)
    }

    /// The reason why its nodes can be threads only, if there is one.
    #[must_use]
    pub const fn only_threads(&self) -> Option<&'static str> {
        match self.nodes {
            Nodes::Threads(why) => Some(why),
            Nodes::Processes | Nodes::ThreadsOr(_) => None,
        }
    }

    /// The name of the transport over which its nodes talk when each is a process; itself, if there is no other.
    #[must_use]
    pub const fn between_processes(&self) -> &'static str {
        match self.nodes {
            Nodes::ThreadsOr(other) => other,
            Nodes::Processes | Nodes::Threads(_) => self.name,
        }
    }
}

/// The places of the nodes of a transport.
#[derive(Clone, Copy, Debug)]
pub enum Nodes {
    /// Every node is a process.
    Processes,
    /// All nodes are threads of one process; when each is a process, they talk over the transport of this name.
    ThreadsOr(&'static str),
    /// All nodes are threads of one process, for this reason.
    Threads(&'static str),
}

/// Bytes that a node holds at most for its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOfNode {
    /// Bytes that do not depend on the number of peers.
    pub own: usize,
    /// Bytes for each peer.
    pub for_each_peer: usize,
}

/// One setting of a transport: a key beside its name in an experiment file.
#[derive(Debug)]
pub struct Setting {
    /// Name of the key.
    pub name: &'static str,
    /// The values that it takes.
    pub value: SettingValue,
    /// A sentence fragment that says what it means, for the reference page.
    pub doc: &'static str,
}

/// The values that a setting takes, and its default.
#[derive(Clone, Copy, Debug)]
pub enum SettingValue {
    /// Any text.
    Text {
        /// Default of the setting.
        default: &'static str,
    },
    /// A whole number from `min` to `max`.
    Integer {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
        /// Default of the setting.
        default: i64,
    },
}

impl fmt::Display for SettingValue {
    /// The default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { default } => f.write_str(default),
            Self::Integer { default, .. } => default.fmt(f),
        }
    }
}

impl Setting {
    /// The setting's text in these settings, or its default.
    #[must_use]
    pub fn text(&self, settings: &Settings) -> String {
        settings.get(self.name).cloned().unwrap_or_else(|| self.value.to_string())
    }

    /// The setting's value in these settings, or its default.
    ///
    /// # Errors
    /// If the text is not a value of the setting.
    pub fn read<T: FromStr>(&self, settings: &Settings) -> Result<T, OpenError> {
        let text = self.text(settings);
        text.parse()
            .map_err(|_| OpenError::new(format!("the setting `{}` of the transport cannot be {text:?}", self.name)))
    }
}

/// A message layer that the benchmarks can measure.
#[derive(Debug)]
pub struct Layer {
    /// Name on the command line and in records.
    pub name: &'static str,
    /// Other names on the command line.
    pub aliases: &'static [&'static str],
    /// Form on the command line, for people.
    pub usage: &'static str,
    /// A note beside the name, for people; may be empty.
    pub note: &'static str,
    /// The setting that may follow its name and a colon.
    pub parameter: Option<Parameter>,
    /// The setting that its name implies, and its value.
    pub stands_for: Option<(&'static Setting, &'static str)>,
    /// A launcher starts its processes and numbers them.
    pub has_launcher: bool,
    /// Most nodes that it joins, if there is a limit.
    pub most_nodes: Option<u16>,
    /// The time of a byte, for a layer whose time is that of a simulation: it is the same in each launch, whatever the
    /// machine does.
    pub simulated_byte: Option<Span>,
}

impl Layer {
    /// A layer with this name, without aliases, note, parameter, an implied setting, launcher and limit of nodes.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            aliases: &[],
            usage: name,
            note: "",
            parameter: None,
            stands_for: None,
            has_launcher: false,
            most_nodes: None,
            simulated_byte: None,
        }
    }
}

/// The setting of the transport that may follow the name of a layer.
#[derive(Debug)]
pub struct Parameter {
    /// The setting.
    pub setting: &'static Setting,
    /// The setting that a text means, which is not empty; or what is wrong with it.
    pub read: fn(&str) -> Result<String, String>,
    /// Results name the default, too.
    pub shows_default: bool,
}

/// The reason why there is no endpoint, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OpenError {
    /// The fault, with place and value.
    pub message: String,
    /// A hint what to do about it.
    pub hint: Option<String>,
}

impl OpenError {
    /// An error without a hint.
    pub fn new(message: impl ToString) -> Self {
        Self { message: message.to_string(), hint: None }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(self, hint: impl ToString) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }
}
