//! Errors in the files of a subnet manager.

use std::fmt;

/// A mistake in one of the files, or between them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SubnetError {
    /// The file.
    pub file: SubnetFile,
    /// The line, counted from 1; `None` if it is about the whole file.
    pub line: Option<usize>,
    /// The mistake.
    pub problem: SubnetProblem,
}

/// A file of a subnet manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubnetFile {
    /// Nodes and cables.
    Topology,
    /// Forwarding tables.
    Tables,
}

/// A mistake in a file of a subnet manager.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubnetProblem {
    /// A line in no known format.
    #[error("unknown line {text}")]
    UnknownLine {
        /// Its beginning.
        text: String,
    },
    /// A link with an unknown width or speed.
    #[error("unknown width and speed {text} of a link")]
    UnknownSpeed {
        /// What is written.
        text: String,
    },
    /// A node is described twice.
    #[error("{node} is described twice")]
    NodeTwice {
        /// The node.
        node: String,
    },
    /// A port has two cables.
    #[error("port {port} of {node} has two cables")]
    PortTwice {
        /// The node.
        node: String,
        /// The number of the port.
        port: u8,
    },
    /// A cable ends at an unknown node.
    #[error("a cable ends at {peer}, which is not in the file")]
    NoPeer {
        /// The node.
        peer: String,
    },
    /// The two ends of a cable contradict each other.
    #[error("a cable ends at port {port} of {peer}, whose own line does not say so")]
    OtherPeer {
        /// The node.
        peer: String,
        /// The number of the port.
        port: u8,
    },
    /// A cable from a host to something that is not a switch.
    #[error("the cable of {node} does not end at a switch")]
    NoSwitch {
        /// The host.
        node: String,
    },
    /// Too many things for this model.
    #[error("more than {most} {what}")]
    TooMany {
        /// Name of the counted things, in the plural.
        what: &'static str,
        /// The limit.
        most: usize,
    },
    /// A wanted host that there is not, or several of that name.
    #[error("{} the name or id {name}", match number { 0 => "no channel adapter has".to_owned(), many => format!("{many} channel adapters have") })]
    NotOne {
        /// The wanted name.
        name: String,
        /// Channel adapters that have it.
        number: usize,
    },
    /// A host that is wanted twice.
    #[error("{node} is listed twice among the hosts")]
    ListedTwice {
        /// The host.
        node: String,
    },
    /// A host with another number of cables than its interface has ports.
    #[error("ports with a cable at {node}: {cabled}; at the interface of a host: {ports}")]
    OtherPorts {
        /// The host.
        node: String,
        /// Its cables.
        cabled: usize,
        /// Ports of an interface.
        ports: u8,
    },
    /// A switch has two tables.
    #[error("the switch with GUID {guid:#018x} has two tables")]
    TableTwice {
        /// The GUID.
        guid: u64,
    },
    /// A table has two lines for a LID.
    #[error("the table has two ports for LID {lid:#06x}")]
    LidTwice {
        /// The LID.
        lid: u16,
    },
    /// A table of an unknown switch.
    #[error("no switch has the GUID {guid:#018x}")]
    UnknownSwitch {
        /// The GUID.
        guid: u64,
    },
    /// A switch without a table.
    #[error("{switch} has no table")]
    NoTable {
        /// The switch.
        switch: String,
    },
    /// A route ends at a switch that does not know the LID.
    #[error("the table of {switch} has no port for {to}, where a route leads")]
    NoEntry {
        /// The switch.
        switch: String,
        /// Destination.
        to: SubnetHost,
    },
    /// A port without a cable, or with one to something that is left out.
    #[error("{switch} sends packets for {to} to port {port}, which has no cable to a switch or host")]
    NoCable {
        /// The switch.
        switch: String,
        /// The number of the port.
        port: u8,
        /// Destination.
        to: SubnetHost,
    },
    /// A route ends at a host that it is not for.
    #[error("{switch} sends packets for {to} to another host, at port {port}")]
    OtherHost {
        /// The switch.
        switch: String,
        /// The number of the port.
        port: u8,
        /// Destination.
        to: SubnetHost,
    },
    /// A route leads in a circle.
    #[error("packets for {to} go round in a circle: {}", switches.join(" > "))]
    Circle {
        /// Destination.
        to: SubnetHost,
        /// The switches of the circle, the first of them again at the end.
        switches: Vec<String>,
    },
}

/// A port of a host, as a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubnetHost {
    /// The first LID of the port.
    pub lid: u16,
    /// Description of its channel adapter.
    pub name: String,
}

impl fmt::Display for SubnetHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LID {:#06x} ({})", self.lid, self.name)
    }
}

impl fmt::Display for SubnetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.problem),
            None => self.problem.fmt(f),
        }
    }
}

impl SubnetError {
    /// Advice to the user.
    pub fn hint(&self) -> &'static str {
        use SubnetProblem::*;
        match (&self.problem, self.file) {
            (UnknownLine { .. }, SubnetFile::Topology) => {
                "use the output of `ibnetdiscover`, without `--list` and `--ports`"
            }
            (UnknownLine { .. }, SubnetFile::Tables) => {
                "use the output of `dump_fts` or `ibroute`, or `opensm-lfts.dump`"
            }
            (UnknownSpeed { .. }, _) => {
                "a link has a width and a speed such as 4xHDR, from 1x to 12x and from SDR to XDR"
            }
            (NodeTwice { .. } | PortTwice { .. } | TableTwice { .. } | LidTwice { .. }, _) => {
                "keep one of the two: the output of one command has it once"
            }
            (NoPeer { .. } | OtherPeer { .. }, _) => {
                "use the whole output of one `ibnetdiscover`, which has each cable at both ends"
            }
            (ListedTwice { .. }, _) => "name each channel adapter once, by its description or by its id",
            (NoSwitch { .. }, _) => "leave the host out by `topology.hosts`",
            (TooMany { .. }, _) => "leave hosts out by `topology.hosts`",
            (NotOne { .. }, _) => {
                "write the description of a `Ca`, such as \"node0 mlx5_0\", or its id, such as \"H-0002c90000000200\""
            }
            (OtherPorts { .. }, _) => {
                "set `nic.ports` to the cables of a host; list the channel adapters in `topology.hosts` if a host has several"
            }
            (UnknownSwitch { .. } | NoTable { .. }, _) => "write both files of the same fabric, one after the other",
            (NoEntry { .. } | NoCable { .. } | OtherHost { .. } | Circle { .. }, _) => {
                "write both files again when the subnet manager is done, or use another routing, such as fixed"
            }
        }
    }
}
