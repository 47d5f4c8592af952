//! A run over the ranks of an MPI job: `mpirun` or `srun` has started all processes, and the rank selects the node.
//!
//! Rank 0 is run control as well as node 0. It sends its address to the others by MPI. From then on they are nodes like
//! those that join by hand, and talk over MPI or another transport of the plan.

use crate::error::{NodeError, RunError};
use crate::join::join;
use crate::join_options::JoinOptions;
use crate::limits;
use crate::processes::{ProcessOptions, Start, rank_name};
use crate::session::Session;
use evb_core::NodeId;
use evb_experiment::Plan;
use evb_transport::Token;
use evb_transport_mpi::{Mpi, Threads};
use serde::{Deserialize, Serialize};
use std::{
    cell::RefCell,
    env,
    net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

pub use evb_transport_mpi::launched;

/// Longest wait for the nodes: all ranks are there when MPI has started.
const PATIENCE: Duration = Duration::from_secs(60);
/// Environment variables with the number of ranks on this machine: those of OpenMPI, and of MPICH and its relatives.
const LOCAL_RANKS: [&str; 2] = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];

/// The ranks of a job.
pub struct Ranks {
    mpi: Mpi,
    /// All ranks are on this machine.
    is_local: bool,
}

/// The use of MPI by a thread, which passes it on when it ends.
struct Turn(Mpi);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.pass_on();
    }
}

/// The message of rank 0 to the others.
#[derive(Serialize, Deserialize)]
struct Call {
    host: String,
    port: u16,
    token: String,
}

impl Ranks {
    /// Starts MPI, once in a process.
    ///
    /// # Errors
    /// MPI is not on this machine or does not fit the launcher.
    pub fn start() -> Result<Self, NodeError> {
        let mpi = Mpi::init(Threads::One).map_err(NodeError::new)?;
        let here = LOCAL_RANKS.iter().find_map(|name| env::var(name).ok()?.parse::<usize>().ok());
        Ok(Self { is_local: here == Some(mpi.size()), mpi })
    }

    /// True on rank 0, which gets the record and prints for the user.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.mpi.rank() == 0
    }

    /// Checks that there are as many ranks as the plan has nodes. All ranks get the same answer.
    ///
    /// # Errors
    /// The numbers differ. The hint has the number of ranks to start.
    pub fn check(&self, plan: &Plan) -> Result<(), NodeError> {
        let (nodes, ranks) = (plan.building.nodes(), self.mpi.size());
        if ranks == usize::from(nodes) {
            return Ok(());
        }
        let hint = format!(
            "start {nodes}: one for the event manager, {} for the readout units and {} for the builder units",
            plan.building.readout_units, plan.building.builder_units
        );
        Err(NodeError::new(format!("{ranks} ranks for {nodes} nodes")).hint(hint))
    }

    /// Leads a session over all ranks; `work` moves it through its runs. Rank 0 calls this, and all others call
    /// [`follow`](Self::follow).
    ///
    /// # Errors
    /// Run control cannot listen.
    pub fn lead<R>(&self, token: Token, work: impl FnOnce(&mut Session<'_>) -> R) -> Result<R, RunError> {
        let node = RefCell::new(None);
        let announce = |address: SocketAddr| -> Result<(), NodeError> {
            let call = Call { host: self.host(), port: address.port(), token: token.to_hex() };
            let _as_sent = self.mpi.share(&serde_json::to_vec(&call).map_err(NodeError::new)?);
            let (options, turn) = (self.join_options(&call)?, Turn(self.mpi.clone()));
            // Run control and node 0 are threads of one process. From here on MPI is the node's.
            self.mpi.pass_on();
            node.replace(Some(limits::spawn(move || {
                let _until_the_node_ends = turn;
                join(&options)
            })?));
            Ok(())
        };
        let any = if self.is_local { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
        let options =
            ProcessOptions { listen: (any, 0).into(), token, start: Start::Announce(&announce), patience: PATIENCE };
        let result = Session::processes(options).map(|mut session| work(&mut session));
        if let Some(node) = node.into_inner() {
            // What it has to say, run control has heard.
            let _ended: Result<_, _> = JoinHandle::join(node);
        }
        result
    }

    /// Runs a node of the session that rank 0 leads, until its end.
    ///
    /// # Errors
    /// The errors of [`join`].
    pub fn follow(&self) -> Result<(), RunError> {
        let call: Call = serde_json::from_slice(&self.mpi.share(&[])).map_err(NodeError::new)?;
        Ok(join(&self.join_options(&call)?)?)
    }

    /// Ends MPI. All ranks must call this.
    pub fn finish(self) {
        self.mpi.finish();
    }

    fn join_options(&self, call: &Call) -> Result<JoinOptions, NodeError> {
        Ok(JoinOptions {
            role: rank_name(NodeId(self.mpi.rank() as u16)),
            control: resolve(&call.host, call.port)?,
            listen: resolve(&self.host(), 0)?,
            listen_control: None,
            token: call.token.parse().map_err(NodeError::new)?,
            patience: PATIENCE,
            quiet: true,
            control_may_come: false,
            data_directory: None,
            storage_directory: None,
            stop: Arc::default(),
        })
    }

    /// The address of this machine for the other ranks.
    fn host(&self) -> String {
        match self.is_local {
            true => IpAddr::from(Ipv4Addr::LOCALHOST).to_string(),
            false => crate::machine::host(),
        }
    }
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, NodeError> {
    let unknown = |why: String| {
        NodeError::new(format!("the machine {host} cannot be found: {why}"))
            .hint("the machines of a job must know each other by their host names")
    };
    let mut found = (host, port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
    found.next().ok_or_else(|| unknown("it has no address".into()))
}
