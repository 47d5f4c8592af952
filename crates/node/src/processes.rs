//! A run over processes: run control waits for its nodes, which it starts itself or which are started by hand.

use crate::children::Children;
use crate::control::{NodeError, Notice, Order};
use crate::limits;
use crate::lines::{Lines, pump, write};
use crate::run_control::{Nodes, Observer, RunControl, RunError};
use crate::run_number::run_number;
use crate::wire_control::{Answer, Hello};
use crate::{VERSION, fingerprint};
use evb_core::NodeId;
use evb_experiment::Plan;
use evb_record::Record;
use evb_transport::Token;
use std::{
    collections::BTreeMap,
    io::{self, ErrorKind},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    process::Command,
    sync::{
        atomic::Ordering,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

/// Longest time that a connection may take to say who it is.
const HELLO_TIMEOUT: Duration = Duration::from_secs(2);
/// Connections that may be saying hello at once; more wait in the system's queue.
const MOST_STRANGERS: usize = 64;
/// Longest time that an order may take to be written.
const ORDER_TIMEOUT: Duration = Duration::from_secs(2);

/// Time in which run control hears a signal that has ended one of its nodes already.
const STOP_GRACE: Duration = Duration::from_millis(200);

/// How the nodes of a run come about.
pub struct ProcessOptions<'a> {
    /// Where run control listens; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The secret of the run.
    pub token: Token,
    /// Who starts the nodes.
    pub start: Start<'a>,
    /// Longest wait for all nodes to come.
    pub patience: Duration,
}

/// Who starts the nodes of a run.
#[derive(Clone, Copy)]
pub enum Start<'a> {
    /// Run control, by the command of each node, which is made of its own address.
    Spawn(&'a dyn Fn(NodeId, SocketAddr) -> Command),
    /// People.
    ByHand,
    /// They are there already, and are told run control's address.
    Told(&'a dyn Fn(SocketAddr) -> Result<(), NodeError>),
}

/// Builds events with one process per node, which talk as the plan says; over TCP if it is for threads.
///
/// # Errors
/// [`RunError`] when nodes do not come or cannot open what they need. What goes wrong later is told by the record.
pub fn run_processes(
    plan: &Plan,
    options: &ProcessOptions<'_>,
    observer: &mut dyn Observer,
) -> Result<Record, RunError> {
    limits::check_for_run_control(plan)?;
    let listener = TcpListener::bind(options.listen).map_err(|error| {
        NodeError::new(format!("run control cannot listen on {}: {error}", options.listen))
            .hint("`--listen HOST:PORT` chooses another address; port 0 takes any free one")
    })?;
    let address = listener.local_addr().map_err(NodeError::new)?;
    let mut children = start(plan, options, address)?;
    let joined = Gathering::new(plan, options, listener)?.gather(&mut children, observer)?;
    let (sender, notices) = mpsc::channel();
    let connections = welcome(plan, joined, &sender)?;
    drop(sender);
    let nodes = ProcessNodes { connections, children };
    RunControl::new(plan, nodes, &notices, observer).run(plan.transport.about().between_processes())
}

/// The processes that run control starts itself, if any: each node has the place of its number.
fn start(plan: &Plan, options: &ProcessOptions<'_>, address: SocketAddr) -> Result<Children, NodeError> {
    let mut children = Children::default();
    let command = match options.start {
        Start::Spawn(command) => command,
        Start::ByHand => return Ok(children),
        Start::Told(tell) => return tell(address).map(|()| children),
    };
    for node in (0..plan.building.nodes()).map(NodeId) {
        children
            .start(&mut command(node, address))
            .map_err(|error| limits::error(&format!("cannot start {}", plan.building.node_name(node)), &error))?;
    }
    Ok(children)
}

/// A node that has said hello.
struct Joined {
    hello: Hello,
    stream: TcpStream,
    lines: Lines,
}

impl Joined {
    /// Whether the connection is open. A node says nothing before it is answered.
    fn is_there(&self) -> bool {
        let looked = self.stream.set_nonblocking(true).and_then(|()| self.stream.peek(&mut [0]));
        let is_silent = looked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        is_silent && self.stream.set_nonblocking(false).is_ok()
    }
}

/// Waits until all nodes have come.
struct Gathering<'a> {
    plan: &'a Plan,
    token: Token,
    experiment: u32,
    listener: TcpListener,
    by_hand: bool,
    patience: Duration,
    hellos: (Sender<Option<Joined>>, Receiver<Option<Joined>>),
    /// Connections that are saying hello.
    strangers: usize,
}

impl<'a> Gathering<'a> {
    fn new(plan: &'a Plan, options: &ProcessOptions<'_>, listener: TcpListener) -> Result<Self, NodeError> {
        listener.set_nonblocking(true).map_err(NodeError::new)?;
        Ok(Self {
            plan,
            token: options.token,
            experiment: fingerprint(plan),
            listener,
            by_hand: matches!(options.start, Start::ByHand),
            patience: options.patience,
            hellos: mpsc::channel(),
            strangers: 0,
        })
    }

    /// From its end on nobody listens: a node that comes too late is told so by its system.
    fn gather(
        mut self,
        children: &mut Children,
        observer: &mut dyn Observer,
    ) -> Result<BTreeMap<NodeId, Joined>, NodeError> {
        let (mut joined, wanted) = (BTreeMap::new(), usize::from(self.plan.building.nodes()));
        let end = Instant::now() + self.patience;
        if self.by_hand {
            let address = self.listener.local_addr().map_err(NodeError::new)?;
            observer.note(&format!("waiting at {address} for {wanted} nodes"));
        }
        while joined.len() < wanted {
            self.accept()?;
            match self.hellos.1.recv_timeout(Duration::from_millis(5)) {
                Ok(Some(newcomer)) => {
                    self.forget_who_left(&mut joined, observer);
                    self.admit(newcomer, &mut joined, observer);
                }
                Ok(None) => self.strangers -= 1,
                Err(_) => {}
            }
            if let Some((node, status)) = children.ended() {
                if is_stopping(observer) {
                    return Err(NodeError::stopped());
                }
                let name = self.plan.building.node_name(NodeId(node as u16));
                return Err(NodeError::new(format!("{name} ended before the run began: {status}")));
            }
            if observer.stop().load(Ordering::Relaxed) {
                return Err(NodeError::stopped());
            }
            if Instant::now() >= end {
                return Err(self.incomplete(&joined));
            }
        }
        Ok(joined)
    }

    fn incomplete(&self, joined: &BTreeMap<NodeId, Joined>) -> NodeError {
        let all = (0..self.plan.building.nodes()).map(NodeId);
        let missing = all.filter(|node| !joined.contains_key(node)).map(|node| self.plan.building.node_name(node));
        NodeError::new(format!("not all nodes have joined: {} missing", missing.collect::<Vec<_>>().join(", ")))
            .hint("start each with `evb node FILE --role NAME --join HOST:PORT` and the same token; `--patience` waits longer")
    }

    /// Hears new connections out, each in a thread of its own: a silent one holds up nobody.
    fn accept(&mut self) -> Result<(), NodeError> {
        while self.strangers < MOST_STRANGERS {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() != ErrorKind::WouldBlock && limits::hint(&error).is_some() => {
                    return Err(limits::error("run control cannot hear its nodes", &error));
                }
                Err(_) => return Ok(()),
            };
            let sender = self.hellos.0.clone();
            self.strangers += 1;
            limits::spawn(move || {
                let _nobody_waits = sender.send(hear_out(stream).ok().flatten());
            })?;
        }
        Ok(())
    }

    /// A node that waits may be ended, and another may take its place.
    fn forget_who_left(&self, joined: &mut BTreeMap<NodeId, Joined>, observer: &mut dyn Observer) {
        joined.retain(|&node, joined| {
            let stays = joined.is_there();
            if !stays {
                observer.note(&format!("{} has left before the run began", self.plan.building.node_name(node)));
            }
            stays
        });
    }

    fn admit(&mut self, newcomer: Joined, joined: &mut BTreeMap<NodeId, Joined>, observer: &mut dyn Observer) {
        self.strangers -= 1;
        let node = NodeId(newcomer.hello.node);
        match self.refusal(&newcomer.hello, joined) {
            None => _ = joined.insert(node, newcomer),
            Some(reason) => {
                let name = self.plan.building.node_name(node);
                observer.note(&format!("refused a connection that says it is {name}: {reason}"));
                let _gone = write(&newcomer.stream, &Answer::Refused { reason });
            }
        }
    }

    fn refusal(&self, hello: &Hello, joined: &BTreeMap<NodeId, Joined>) -> Option<String> {
        let token_fits = hello.token.parse::<Token>().is_ok_and(|token| token == self.token);
        if !token_fits {
            return Some("it does not have the token of this run".into());
        }
        if hello.version != VERSION {
            return Some(format!("it is evb {}, this is evb {VERSION}", hello.version));
        }
        if hello.experiment != self.experiment {
            return Some("its experiment is another one: the file and every --set must be the same".into());
        }
        if hello.node >= self.plan.building.nodes() {
            return Some(format!("the run has only {} nodes", self.plan.building.nodes()));
        }
        joined.contains_key(&NodeId(hello.node)).then(|| "this node has joined already".into())
    }
}

/// Whether the user wants the run to stop. A signal for all processes at once may reach the others first.
fn is_stopping(observer: &dyn Observer) -> bool {
    let end = Instant::now() + STOP_GRACE;
    while !observer.stop().load(Ordering::Relaxed) {
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Reads the hello of a new connection.
fn hear_out(stream: TcpStream) -> io::Result<Option<Joined>> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(ORDER_TIMEOUT))?;
    let mut lines = Lines::new(&stream)?;
    Ok(lines.read_within(HELLO_TIMEOUT)?.map(|hello| Joined { hello, stream, lines }))
}

/// Tells every node where the others are; from then on a thread for each hears its notices.
fn welcome(
    plan: &Plan,
    joined: BTreeMap<NodeId, Joined>,
    sender: &Sender<(NodeId, Notice)>,
) -> Result<BTreeMap<NodeId, TcpStream>, NodeError> {
    let run = run_number(plan);
    let peers: Vec<_> = joined.iter().map(|(&node, joined)| (node, joined.hello.address.clone())).collect();
    let mut connections = BTreeMap::new();
    for (node, Joined { stream, mut lines, .. }) in joined {
        let answer = Answer::Welcome { run, peers: peers.clone() };
        write(&stream, &answer).and_then(|()| stream.set_read_timeout(None)).map_err(NodeError::new)?;
        lines.trust();
        connections.insert(node, stream);
        let sender = sender.clone();
        limits::spawn(move || {
            let reason = pump(&mut lines, |notice| sender.send((node, notice)).is_ok());
            let _run_is_over = sender.send((node, Notice::Gone { reason }));
        })?;
    }
    Ok(connections)
}

struct ProcessNodes {
    connections: BTreeMap<NodeId, TcpStream>,
    children: Children,
}

/// However the run ends, its nodes are to see the end of their connection, which threads of ours still hold open.
impl Drop for ProcessNodes {
    fn drop(&mut self) {
        for stream in self.connections.values() {
            let _already_closed = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Nodes for ProcessNodes {
    fn order(&mut self, node: NodeId, order: Order) {
        match self.children.at(node.index()) {
            Some(child) if order == Order::Die => _ = child.kill(),
            _ => {
                // A node that does not listen any more is noticed by the end of its connection.
                let _gone = self.connections.get(&node).map(|stream| write(stream, &order));
            }
        }
    }

    fn fate(&mut self, node: NodeId) -> Option<String> {
        let child = self.children.at(node.index())?;
        // The connection closes a moment before the process can be waited for.
        let end = Instant::now() + Duration::from_millis(200);
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Some(status.to_string()),
                Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(2)),
                _ => return None,
            }
        }
    }
}
