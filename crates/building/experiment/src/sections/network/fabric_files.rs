//! The files of a subnet manager that `network.topology` and `network.routing` name. They become a part of the plan.

use crate::{diagnostics::Problem, limits::MAX_FABRIC_FILE, view::View};
use evb_fabric::{Network, Routing, SubnetError, SubnetFile, SubnetFiles, Topology};
use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

/// The network of the last point of a sweep. The next one often has the same, or the same files.
#[derive(Default)]
pub(crate) struct KnownNetwork {
    pub(super) network: Option<Network>,
    fabric: Option<(Wanted, Topology)>,
}

/// What a fabric follows from.
#[derive(PartialEq)]
struct Wanted {
    topology: PathBuf,
    tables: Option<PathBuf>,
    hosts: Vec<String>,
    ports: u8,
}

impl KnownNetwork {
    /// The topology that the files describe; `None` if the network is not described by files.
    pub(super) fn fabric(&mut self, view: View<'_>, routing: Routing) -> Result<Option<Topology>, Problem> {
        if view.text("network.topology.type") != super::topology::INFINIBAND {
            return Ok(None);
        }
        let wanted = Wanted {
            topology: path(view, TOPOLOGY)?,
            tables: (routing == Routing::Table).then(|| path(view, TABLES)).transpose()?,
            hosts: super::topology::hosts(view.below("network.topology")),
            ports: view.integer("network.nic.ports"),
        };
        if self.fabric.as_ref().is_none_or(|(known, _)| *known != wanted) {
            let topology = wanted.read(view)?;
            self.fabric = Some((wanted, topology));
        }
        Ok(self.fabric.as_ref().map(|(_, topology)| topology.clone()))
    }
}

/// The keys of the files.
const TOPOLOGY: &str = "network.topology.file";
const TABLES: &str = "network.routing.file";

impl Wanted {
    fn read(&self, view: View<'_>) -> Result<Topology, Problem> {
        let text = |path: &Path, key| text(path).map_err(|problem| problem.at(view.origin(key), "this file"));
        let topology = text(&self.topology, TOPOLOGY)?;
        let tables = self.tables.as_deref().map(|path| text(path, TABLES)).transpose()?;
        let files =
            SubnetFiles { topology: &topology, tables: tables.as_deref(), hosts: &self.hosts, ports: self.ports };
        files.read().map_err(|error| self.problem(view, &error))
    }

    /// The problem of an error, at the key of the file with the mistake.
    fn problem(&self, view: View<'_>, error: &SubnetError) -> Problem {
        let (path, key) = match error.file {
            SubnetFile::Topology => (Some(&self.topology), TOPOLOGY),
            SubnetFile::Tables => (self.tables.as_ref(), TABLES),
        };
        let name = path.map(|path| path.display().to_string()).unwrap_or_default();
        Problem::new(format!("{name}: {error}"), error.hint()).at(view.origin(key), "this file")
    }
}

/// The path of a file; a relative one starts from `data.directory`.
fn path(view: View<'_>, key: &str) -> Result<PathBuf, Problem> {
    let directory = view.maybe_text("data.directory").unwrap_or("");
    evb_sources::data_path(Path::new(view.text(key)), Path::new(directory)).map_err(|error| {
        Problem::new(error.to_string(), "set the variable, or write the path itself").at(view.origin(key), "this file")
    })
}

/// The text of a file. Descriptions of nodes may have bytes that are not UTF-8.
fn text(path: &Path) -> Result<String, Problem> {
    let shown = path.display();
    let help = "give the path of a file that `ibnetdiscover` or the subnet manager wrote";
    let unreadable = |error: std::io::Error| Problem::new(format!("cannot read {shown}: {error}"), help);
    // A pipe would wait for ever.
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err(Problem::new(format!("cannot read {shown}: it is no file"), help));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_FABRIC_FILE.0 + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FABRIC_FILE.0 {
        return Err(Problem::new(format!("{shown} is larger than {MAX_FABRIC_FILE}"), help));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
