//! MPI in this process: start, end, and collective operations.

use crate::{
    Endpoint, Layer, MpiError, MpiOptions, Threads,
    ffi::{Comm, MOST_BYTES, Shim},
    kind::TAGS_PER_SENDER,
    link::RankLink,
};
use evb_core::NodeId;
use std::{
    env,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

/// The MPI of this process, while a handle or an endpoint is there.
static STARTED: Mutex<Weak<Session>> = Mutex::new(Weak::new());

/// Exit status of a job in which a process leaves without [`Mpi::finish`].
const FAILED: i32 = 1;

/// Number of processes that `mpirun` or `srun` has started together with this one; `None` without a launcher. Only the
/// environment is read, so that a program without a launcher needs no MPI.
#[must_use]
pub fn launched() -> Option<usize> {
    let number = |name: &str| env::var(name).ok()?.parse().ok();
    let slurm = || {
        let by_pmi = ["PMI_RANK", "PMIX_RANK"].iter().any(|name| env::var_os(name).is_some());
        by_pmi.then(|| number("SLURM_NTASKS")).flatten()
    };
    number("OMPI_COMM_WORLD_SIZE").or_else(|| number("PMI_SIZE")).or_else(slurm)
}

/// The MPI of this process, which is one of [`size`](Mpi::size) that were started together.
///
/// A process that does not call [`finish`](Mpi::finish) ends the whole job when its last handle and endpoint are gone:
/// the others would wait for it forever. So an error that is returned from `main` and a panic both end the job.
#[derive(Clone, Debug)]
pub struct Mpi {
    session: Arc<Session>,
}

#[derive(Debug)]
struct Session {
    shim: &'static Shim,
    finished: AtomicBool,
}

impl Mpi {
    /// Starts MPI, once per process. A process without a launcher is its own job.
    ///
    /// # Errors
    /// [`MpiError`] names what is missing and the remedy.
    pub fn init(threads: Threads) -> Result<Self, MpiError> {
        let shim = Shim::start(threads)?;
        if let Some(launched) = launched().filter(|&launched| launched != shim.size) {
            shim.end();
            return Err(MpiError::OtherLauncher { launched, size: shim.size, version: shim.version.clone() });
        }
        let session = Arc::new(Session { shim, finished: AtomicBool::new(false) });
        *STARTED.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&session);
        Ok(Self { session })
    }

    /// Another handle of the MPI that this process has started and not ended.
    #[must_use]
    pub fn started() -> Option<Self> {
        let session = STARTED.lock().unwrap_or_else(PoisonError::into_inner).upgrade()?;
        Some(Self { session })
    }

    /// The number of this process in the job, from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.session.shim.rank
    }

    /// Processes in the job.
    #[must_use]
    pub fn size(&self) -> usize {
        self.session.shim.size
    }

    /// Name and version of the MPI.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.session.shim.version
    }

    /// Sends the bytes of rank 0 to all ranks. All ranks call this together; it blocks until rank 0 has called it. The
    /// arguments of other ranks are ignored.
    ///
    /// # Panics
    /// If there are 2 GiB or more.
    #[must_use]
    pub fn share(&self, bytes: &[u8]) -> Vec<u8> {
        assert!(bytes.len() <= MOST_BYTES, "{} bytes are more than MPI counts", bytes.len());
        let mut length = (bytes.len() as u64).to_le_bytes();
        self.session.shim.share(&mut length);
        let mut all = bytes.to_vec();
        all.resize(u64::from_le_bytes(length) as usize, 0);
        self.session.shim.share(&mut all);
        all
    }

    /// The endpoints of the nodes on this rank, in ascending order: node `i` is on rank `placement[i]`. All ranks call
    /// this together with the same arguments, also those without a node. The nodes are connected afterwards. Each call
    /// uses up communicators of MPI until the end of the process: one, and one for each node on a rank. An MPI has
    /// about 2000.
    ///
    /// # Errors
    /// [`MpiError::Placement`] if a rank does not exist, on all ranks alike.
    ///
    /// # Panics
    /// If `options.max_body` is 2 GiB or more.
    pub fn endpoints(&self, placement: &[usize], options: &MpiOptions) -> Result<Vec<Endpoint>, MpiError> {
        let links = self.links(placement, options)?;
        Ok(links.into_iter().map(|link| Endpoint::new(link, options)).collect())
    }

    /// The endpoints of the message layer, as [`endpoints`](Mpi::endpoints) for the transport.
    ///
    /// # Errors
    /// Those of `endpoints`.
    ///
    /// # Panics
    /// Those of `endpoints`.
    pub fn layers(&self, placement: &[usize], options: &MpiOptions) -> Result<Vec<Layer>, MpiError> {
        let links = self.links(placement, options)?;
        Ok(links.into_iter().map(|link| Layer::new(link, options)).collect())
    }

    fn links(&self, placement: &[usize], options: &MpiOptions) -> Result<Vec<RankLink>, MpiError> {
        assert!(options.max_body < MOST_BYTES, "bodies of {} bytes are more than MPI counts", options.max_body);
        let shim = self.session.shim;
        let places = Places::new(placement, shim.size, shim.most_tag)?;
        shim.settle();
        let comms = Comms::new(shim, &places);
        let here = (0..placement.len()).filter(|&node| placement[node] == shim.rank);
        Ok(here.map(|node| RankLink::new(self.clone(), shim, &comms, NodeId(node as u16), &places)).collect())
    }

    /// Lets MPI make progress. Calls of endpoints do that, too. A process that makes none for a long time should call
    /// this now and then, or its flushed messages may stay here.
    pub fn progress(&self) {
        self.session.shim.progress();
        self.session.shim.settle();
    }

    /// Lets another thread of this process use MPI, if only one may at a time: the first that does. This one may use it
    /// again when that thread has passed the turn on.
    pub fn pass_on(&self) {
        self.session.shim.pass_on();
    }

    /// Ends the use of MPI in order, as soon as the last handle and endpoint of this process are gone. The end waits
    /// for the other ranks, which must finish, too.
    pub fn finish(self) {
        self.session.finished.store(true, Ordering::Release);
    }

    /// Ends all processes of the job at once.
    pub fn abort(&self, status: i32) -> ! {
        self.session.shim.abort(status);
        std::process::exit(status)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let usable = self.shim.is_callable();
        let in_order = self.finished.load(Ordering::Acquire) && !std::thread::panicking() && usable;
        match (in_order, self.shim.size) {
            (true, _) => self.shim.end(),
            // It is not waited for: it ends as any other process.
            (false, 1) => {}
            (false, _) if usable => self.shim.abort(FAILED),
            // A process that ends without the end of MPI lets the launcher end the job.
            (false, _) => std::process::exit(FAILED),
        }
    }
}

/// The communicators of connected nodes.
#[derive(Clone, Debug)]
pub(crate) struct Comms {
    /// Communicators of frames, one for each node of a rank.
    pub(crate) frames: Arc<[Comm]>,
    pub(crate) bodies: Comm,
}

impl Comms {
    fn new(shim: &Shim, places: &Places) -> Self {
        Self { frames: (0..places.most).map(|_| shim.duplicate()).collect(), bodies: shim.duplicate() }
    }
}

/// An id that no node has.
const NO_NODE: u16 = u16::MAX;

/// The placement of nodes on ranks.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// Rank of each node, and its index among the nodes of that rank.
    nodes: Arc<[(usize, usize)]>,
    /// The node at each place: `most` places for each rank, [`NO_NODE`] where no node is.
    places: Arc<[u16]>,
    /// Most nodes on one rank.
    most: usize,
}

impl Places {
    fn new(placement: &[usize], ranks: usize, most_tag: i32) -> Result<Self, MpiError> {
        if placement.len() > usize::from(NO_NODE) {
            return Err(MpiError::Placement(format!("{} nodes are above the range of node ids", placement.len())));
        }
        let (mut nodes, mut counts) = (Vec::new(), vec![0; ranks]);
        for (node, &rank) in placement.iter().enumerate() {
            let Some(count) = counts.get_mut(rank) else {
                return Err(MpiError::Placement(format!(
                    "node {node} is placed on rank {rank}, and there are {ranks} ranks\nhint: start more by mpirun -n"
                )));
            };
            nodes.push((rank, *count));
            *count += 1;
        }
        let most = counts.into_iter().max().unwrap_or_default();
        if most * most.max(TAGS_PER_SENDER) > most_tag as usize {
            let text = format!("{most} nodes on one rank need more tags than the {most_tag} of this MPI");
            return Err(MpiError::Placement(text));
        }
        let mut places = vec![NO_NODE; most * ranks];
        for (node, &(rank, index)) in nodes.iter().enumerate() {
            places[rank * most + index] = node as u16;
        }
        Ok(Self { nodes: nodes.into(), places: places.into(), most })
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The rank of a node.
    #[inline]
    pub(crate) fn rank(&self, node: usize) -> i32 {
        self.nodes[node].0 as i32
    }

    /// The index of a node on its rank.
    #[inline]
    pub(crate) fn index(&self, node: usize) -> usize {
        self.nodes[node].1
    }

    /// The node with this index on this rank.
    #[inline]
    pub(crate) fn node(&self, rank: i32, index: usize) -> Option<usize> {
        let place = (index < self.most).then(|| rank as usize * self.most + index)?;
        self.places.get(place).filter(|&&node| node != NO_NODE).map(|&node| usize::from(node))
    }

    /// Returns true if each rank has one node at most.
    pub(crate) fn are_single(&self) -> bool {
        self.most <= 1
    }

    /// The tag of the bodies from one node to another.
    pub(crate) fn body_tag(&self, from: usize, to: usize) -> i32 {
        (self.index(to) * self.most + self.index(from)) as i32
    }
}

/// A communicator of the nodes that take part in a broadcast, the sender first.
pub(crate) fn broadcast_comm(shim: &Shim, places: &Places, from: usize, to: &[usize]) -> Comm {
    let ranks: Vec<_> = std::iter::once(&from).chain(to).map(|&node| places.rank(node)).collect();
    shim.subset(&ranks, from as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_one_rank_are_distinguished() {
        let places = Places::new(&[1, 0, 1, 1], 2, 32767).unwrap();
        let of_rank = [0, 2, 3];
        let pairs = of_rank.into_iter().flat_map(|to| of_rank.map(|from| places.body_tag(from, to)));
        let mut tags: Vec<_> = pairs.collect();
        tags.sort_unstable();
        assert_eq!(tags, (0..9).collect::<Vec<_>>());
        assert!((0..4).all(|node| places.node(places.rank(node), places.index(node)) == Some(node)));
        assert_eq!((places.node(0, 1), places.node(2, 0), places.node(1, 3)), (None, None, None));
        assert!(!places.are_single() && Places::new(&[1, 0], 2, 32767).unwrap().are_single());
    }

    #[test]
    fn impossible_placements_are_refused() {
        let error = |placement: &[usize], tags| Places::new(placement, 2, tags).unwrap_err().to_string();
        assert!(error(&[0, 2], 32767).starts_with("node 1 is placed on rank 2, and there are 2 ranks"));
        assert!(error(&[0; 200], 32767).contains("200 nodes on one rank need more tags"));
    }
}
