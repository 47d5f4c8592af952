//! Nodes in separate processes. Run control starts them, or they join by themselves.
//!
//! A node is known by its role, such as `ru0`, and stays through all runs and plans. A lost node may join again.

use crate::children::Children;
use crate::control::{Detail, Instruction, Notice, Order, Setup, ToNode};
use crate::error::NodeError;
use crate::limits;
use crate::lines::{Lines, Writer, pump, welcome};
use crate::machine::NodeMachine;
use crate::node_group::{Blueprint, NodeGroup};
use crate::observer::Observer;
use crate::run_info::RunInfo;
use crate::wire_control::{Answer, Hello};
use evb_core::NodeId;
use evb_experiment::{Cores, Plan};
use evb_transport::Token;
use evb_transport_secure::{AcceptResult, Acceptor, Purpose, Refusal};
use evb_unit::VERSION;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
    net::{SocketAddr, TcpListener},
    process::Command,
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

/// Least time between two notes about refused connections.
const NOTE_AGAIN: Duration = Duration::from_secs(10);
/// Longest time for writing an order.
const ORDER_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two checks for new connections while nodes are absent.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Options of a session with nodes in processes.
pub struct ProcessOptions<'a> {
    /// Address at which run control listens; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The secret of the session.
    pub token: Token,
    /// The starter of the nodes.
    pub start: Start<'a>,
    /// Longest wait for all nodes to join.
    pub patience: Duration,
}

/// The starter of the nodes of a session.
#[derive(Clone, Copy)]
pub enum Start<'a> {
    /// Run control starts them, by the command for a node's role and run control's own address.
    Spawn(&'a dyn Fn(&str, SocketAddr) -> io::Result<Command>),
    /// People start them.
    ByHand,
    /// They run already, and learn the address of run control from this function.
    Announce(&'a dyn Fn(SocketAddr) -> Result<(), NodeError>),
}

/// The nodes of a session in processes.
pub(crate) struct ProcessNodes<'a> {
    options: ProcessOptions<'a>,
    acceptor: Acceptor,
    address: SocketAddr,
    blueprint: Option<Arc<Blueprint>>,
    children: Children,
    /// Number of the latest child process of each role.
    places: BTreeMap<String, usize>,
    /// Nodes that have joined, by role.
    members: BTreeMap<String, Member>,
    /// Addresses of the endpoints that are open.
    addresses: BTreeMap<NodeId, String>,
    channel: (Sender<ReceivedNotice>, Receiver<ReceivedNotice>),
    /// The time of the last note about a refused connection.
    last_note: Option<Instant>,
    /// Number of nodes that were admitted. It distinguishes an old connection of a role from a new one.
    connections: u64,
    notices: VecDeque<(NodeId, Notice)>,
    has_announced: bool,
    /// Roles whose process was started but has not joined.
    awaited: BTreeSet<String>,
    /// Roles whose process was started again during a run.
    returning: BTreeSet<String>,
}

/// A node that has joined.
struct Member {
    writer: Writer,
    machine: NodeMachine,
    connection: u64,
}

/// A notice of the node with this role.
struct ReceivedNotice {
    role: String,
    connection: u64,
    notice: Box<Notice>,
}

/// A connection that has the token and has said hello.
struct Newcomer {
    hello: Hello,
    writer: Writer,
    lines: Lines,
}

impl<'a> ProcessNodes<'a> {
    pub(crate) fn listen(options: ProcessOptions<'a>) -> Result<Self, NodeError> {
        let listener = TcpListener::bind(options.listen).map_err(|error| {
            NodeError::new(format!("run control cannot listen on {}: {error}", options.listen))
                .hint("`--listen HOST:PORT` chooses another address; port 0 takes any free one")
        })?;
        let address = listener.local_addr().map_err(NodeError::new)?;
        let acceptor = Acceptor::new(listener, options.token, Purpose::Control).map_err(NodeError::new)?;
        Ok(Self {
            address,
            options,
            acceptor,
            blueprint: None,
            children: Children::default(),
            places: BTreeMap::new(),
            members: BTreeMap::new(),
            addresses: BTreeMap::new(),
            channel: mpsc::channel(),
            last_note: None,
            connections: 0,
            notices: VecDeque::new(),
            has_announced: false,
            awaited: BTreeSet::new(),
            returning: BTreeSet::new(),
        })
    }

    /// The name under which a node joins: its role, or for the ranks of a job their number, independent of the plan.
    fn role(&self, node: NodeId) -> String {
        match (self.options.start, &self.blueprint) {
            (Start::Announce(_), _) => rank_name(node),
            (_, Some(blueprint)) => blueprint.plan.building.node_name(node),
            (_, None) => String::new(),
        }
    }

    fn node(&self, role: &str) -> Option<NodeId> {
        let nodes = self.blueprint.as_ref()?.plan.building.nodes();
        (0..nodes).map(NodeId).find(|&node| self.role(node) == role)
    }

    fn start(
        &mut self,
        role: &str,
        command: &dyn Fn(&str, SocketAddr) -> io::Result<Command>,
    ) -> Result<(), NodeError> {
        let place = command(role, self.address)
            .and_then(|mut command| self.children.start(&mut command))
            .map_err(|error| limits::error(&format!("cannot start {role}"), &error))?;
        tracing::debug!(role, "process started");
        self.places.insert(role.to_owned(), place);
        Ok(())
    }

    /// Waits for a node, and starts it if it is not on its way already.
    fn call(&mut self, role: &str, command: &dyn Fn(&str, SocketAddr) -> io::Result<Command>) -> Result<(), NodeError> {
        let comes = self.returning.remove(role) && self.children.status(self.places[role]).is_none();
        if !comes {
            self.start(role, command)?;
        }
        self.awaited.insert(role.to_owned());
        Ok(())
    }

    /// Dismisses nodes whose role the plan does not have.
    fn dismiss_others(&mut self) {
        let others: Vec<_> = self.members.keys().filter(|role| self.node(role).is_none()).cloned().collect();
        for mut member in others.iter().filter_map(|role| self.members.remove(role)) {
            let _gone = member.writer.write(&Instruction::from(Order::Exit));
        }
    }

    /// Returns an error if a child has ended that should have joined.
    fn look_after_children(&mut self) -> Result<(), NodeError> {
        for role in &self.awaited {
            if let Some(status) = self.children.status(self.places[role]) {
                return Err(NodeError::new(format!("{role} ended before the run began: {status}")));
            }
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        let nodes = self.blueprint.as_ref().map_or(0, |blueprint| blueprint.plan.building.nodes());
        (0..nodes).all(|node| self.members.contains_key(&self.role(NodeId(node))))
    }

    /// Admits connections that have proved to have the token. Others hold one of few places for a short time.
    fn accept(&mut self, observer: &mut dyn Observer) -> Result<(), NodeError> {
        let results = match self.acceptor.look() {
            Ok(results) => results,
            Err(error) if limits::hint(&error).is_some() => {
                return Err(limits::error("run control cannot accept its nodes", &error));
            }
            Err(_) => return Ok(()),
        };
        for result in results {
            match result {
                AcceptResult::Refused { peer, refusal } => self.note_refusal(peer, refusal, observer),
                AcceptResult::Arrived(arrived) => {
                    // A peer with the token and an invalid hello has another version.
                    let Ok((hello, writer, lines)) = welcome(*arrived) else { continue };
                    let node = self.admit(Newcomer { hello, writer, lines }, observer)?;
                    self.notices.extend(node.map(|node| (node, Notice::Joined)));
                }
            }
        }
        Ok(())
    }

    /// Notes a refused connection, but not each one of a flood.
    fn note_refusal(&mut self, peer: SocketAddr, refusal: Refusal, observer: &mut dyn Observer) {
        if self.last_note.is_some_and(|last| last.elapsed() < NOTE_AGAIN) {
            return;
        }
        self.last_note = Some(Instant::now());
        tracing::warn!(%peer, %refusal, "refused");
        observer.note(&format!("refused a connection from {peer}: {refusal}"));
    }

    /// Admits a new connection, or refuses it with a reason.
    fn admit(&mut self, newcomer: Newcomer, observer: &mut dyn Observer) -> Result<Option<NodeId>, NodeError> {
        let Newcomer { hello: Hello { role, version, machine }, mut writer, mut lines } = newcomer;
        let is_ready = writer.stream().set_write_timeout(Some(ORDER_TIMEOUT)).is_ok();
        if let Some(reason) = self.refusal(&role, &version) {
            tracing::warn!(role, reason, "refused");
            observer.note(&format!("refused a connection that says it is {role}: {reason}"));
            let _gone = writer.write(&Answer::Refused { reason });
            return Ok(None);
        }
        if !is_ready || writer.write(&Answer::Welcome).is_err() {
            return Ok(None);
        }
        tracing::info!(role, peer = ?writer.stream().peer_addr().ok(), "joined");
        self.connections += 1;
        let (node, connection, sender) = (self.node(&role), self.connections, self.channel.0.clone());
        self.awaited.remove(&role);
        self.returning.remove(&role);
        self.members.insert(role.clone(), Member { writer, machine: machine.seen(), connection });
        limits::spawn(move || {
            let received = |notice| ReceivedNotice { role: role.clone(), connection, notice: Box::new(notice) };
            let reason = pump(&mut lines, |notice| sender.send(received(notice)).is_ok());
            let _session_is_over = sender.send(received(Notice::Gone { reason }));
        })?;
        Ok(node)
    }

    fn refusal(&self, role: &str, version: &str) -> Option<String> {
        if version != VERSION {
            return Some(format!("it is evb {version}, this is evb {VERSION}"));
        }
        if self.node(role).is_none() {
            let building = &self.blueprint.as_ref()?.plan.building;
            let (readouts, builders) = (building.readout_units - 1, building.builder_units - 1);
            return Some(format!("the nodes of this run are evm, ru0 to ru{readouts} and bu0 to bu{builders}"));
        }
        self.members.contains_key(role).then(|| "this node has joined already".into())
    }

    /// Takes an input from a connection. Notices of an old connection of a role are too late and ignored.
    fn receive(
        &mut self,
        role: &str,
        connection: u64,
        notice: Notice,
        observer: &mut dyn Observer,
    ) -> Option<(NodeId, Notice)> {
        if self.members.get(role)?.connection != connection {
            return None;
        }
        let node = self.node(role);
        match (&notice, node) {
            (Notice::Gone { .. }, _) => {
                if self.addresses.is_empty() {
                    observer.note(&format!("{role} has left before the run began"));
                }
                self.members.remove(role);
            }
            (Notice::Opened { address }, Some(node)) => _ = self.addresses.insert(node, address.clone()),
            _ => {}
        }
        Some((node?, notice))
    }

    /// The nodes on the machine of a node, itself among them, where nodes are bound to cores. They have joined.
    fn neighbours(&self, node: NodeId, plan: &Plan) -> Vec<NodeId> {
        let nodes = if plan.run.cores == Cores::None { 0 } else { plan.building.nodes() };
        let host = |node| self.machine(node).map(|machine| machine.host);
        let own = host(node);
        (0..nodes).map(NodeId).filter(|&other| other == node || host(other) == own).collect()
    }

    fn instruction(&self, node: NodeId, order: Order, run: Option<&RunInfo>) -> Instruction {
        let detail = match (order, &self.blueprint) {
            (Order::Open, Some(blueprint)) => {
                Detail::Setup(setup(node, blueprint, self.neighbours(node, &blueprint.plan)))
            }
            (Order::Connect, _) => Detail::Peers(self.addresses.clone().into_iter().collect()),
            _ => run.map_or(Detail::None, |run| Detail::Run(run.clone())),
        };
        Instruction { order, detail }
    }
}

/// What a node needs to know of an event builder.
fn setup(node: NodeId, blueprint: &Blueprint, here: Vec<NodeId>) -> Box<Setup> {
    let Blueprint { plan, text } = blueprint;
    Box::new(Setup { node, plan: plan.clone(), text: text.clone(), here })
}

impl NodeGroup for ProcessNodes<'_> {
    fn gather(
        &mut self,
        blueprint: &Arc<Blueprint>,
        absent: &[NodeId],
        observer: &mut dyn Observer,
    ) -> Result<(), NodeError> {
        limits::check_for_run_control(&blueprint.plan)?;
        self.blueprint = Some(blueprint.clone());
        self.dismiss_others();
        let (here, away): (Vec<_>, Vec<_>) =
            absent.iter().partition(|&&node| self.members.contains_key(&self.role(node)));
        self.notices.extend(here.into_iter().map(|&node| (node, Notice::Joined)));
        match self.options.start {
            Start::Spawn(command) => away.into_iter().try_for_each(|&node| self.call(&self.role(node), command)),
            Start::ByHand if !away.is_empty() => {
                observer.note(&format!("waiting at {} for {} nodes", self.address, away.len()));
                Ok(())
            }
            Start::Announce(announce) if !std::mem::replace(&mut self.has_announced, true) => announce(self.address),
            Start::ByHand | Start::Announce(_) => Ok(()),
        }
    }

    fn ask(&mut self, blueprint: &Blueprint, question: u64) -> BTreeSet<String> {
        let mut asked = BTreeSet::new();
        for node in (0..blueprint.plan.building.nodes()).map(NodeId) {
            let role = blueprint.plan.building.node_name(node);
            let Some(member) = self.members.get_mut(&role) else { continue };
            let check = setup(node, blueprint, Vec::new());
            if member.writer.write(&ToNode::Check { check, question }).is_ok() {
                asked.insert(role);
            }
        }
        asked
    }

    fn order(&mut self, node: NodeId, order: Order, run: Option<&RunInfo>) -> Result<(), NodeError> {
        let role = self.role(node);
        if let Some(child) =
            self.places.get(&role).and_then(|&place| self.children.at(place)).filter(|_| order == Order::Die)
        {
            let _has_ended = child.kill();
            return Ok(());
        }
        if order == Order::Reset {
            self.addresses.remove(&node);
        }
        // A node that does not listen any more is noticed by the end of its connection.
        let instruction = self.instruction(node, order, run);
        let _gone = self.members.get_mut(&role).map(|member| member.writer.write(&instruction));
        Ok(())
    }

    fn notice(&mut self, wait: Duration, observer: &mut dyn Observer) -> Result<Option<(NodeId, Notice)>, NodeError> {
        if let Some(notice) = self.notices.pop_front() {
            return Ok(Some(notice));
        }
        self.accept(observer)?;
        if let Some(notice) = self.notices.pop_front() {
            return Ok(Some(notice));
        }
        let wait = match self.is_complete() && self.acceptor.is_idle() {
            true => wait,
            false => {
                self.look_after_children()?;
                wait.min(LOOK_AGAIN)
            }
        };
        match self.channel.1.recv_timeout(wait) {
            Ok(ReceivedNotice { role, connection, notice }) => Ok(self.receive(&role, connection, *notice, observer)),
            Err(_) => Ok(None),
        }
    }

    fn bring_back(&mut self, node: NodeId) -> Result<(), NodeError> {
        let role = self.role(node);
        let Start::Spawn(command) = self.options.start else { return Ok(()) };
        if self.members.contains_key(&role) || self.returning.contains(&role) {
            return Ok(());
        }
        self.start(&role, command)?;
        self.returning.insert(role);
        Ok(())
    }

    fn fate(&mut self, node: NodeId) -> Option<String> {
        let place = *self.places.get(&self.role(node))?;
        // The connection closes a moment before the process can be waited for.
        let end = Instant::now() + Duration::from_millis(200);
        loop {
            match self.children.status(place) {
                Some(status) => return Some(status.to_string()),
                None if Instant::now() < end => thread::sleep(Duration::from_millis(2)),
                None => return None,
            }
        }
    }

    fn patience(&self) -> Duration {
        self.options.patience
    }

    fn machine(&self, node: NodeId) -> Option<NodeMachine> {
        self.members.get(&self.role(node)).map(|member| member.machine.clone())
    }

    fn transport(&self, plan: &Plan) -> &'static str {
        plan.transport.info().between_processes()
    }
}

/// Closes the connections of all nodes, however the session ends. Threads of this process still hold them open, so the
/// nodes would not see the end otherwise.
impl Drop for ProcessNodes<'_> {
    fn drop(&mut self) {
        for member in self.members.values() {
            member.writer.close();
        }
    }
}

/// The name under which a rank of a job joins.
pub(crate) fn rank_name(node: NodeId) -> String {
    format!("rank{}", node.0)
}
