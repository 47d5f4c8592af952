//! Nodes in their own processes: this program starts itself again as a node, which finds its parent by an environment
//! variable.

use evb_core::NodeId;
use evb_transport::{
    Connect,
    conformance::remote::{self, Remote, Wire},
};
use evb_transport_ofi::{Ofi, OfiOptions};
use std::{
    env,
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    time::Duration,
};

const VARIABLE: &str = "EVB_TEST_PARENT";

/// A process whose node has not joined its peers yet.
pub(crate) struct Process {
    pub(crate) local: NodeId,
    calls: Wire,
    wakes: Wire,
    child: Child,
}

impl Process {
    /// Starts this program again, as the test of this name, which must [`serve`].
    pub(crate) fn start(test: &str, provider: &str, local: NodeId, nodes: u16, peer_timeout: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let mut command = Command::new(env::current_exe().expect("this program has a path"));
        command.args(["--exact", test, "--nocapture"]).stdout(Stdio::null());
        command.env(VARIABLE, listener.local_addr().expect("an address").to_string());
        let child = command.spawn().expect("this program starts");
        let accept = || Wire::new(listener.accept().expect("the child connects").0).expect("a setting");
        let (mut calls, wakes) = (accept(), accept());
        let order = format!("{provider} {} {nodes} {}", local.0, peer_timeout.as_millis());
        calls.put(&order).expect("the child listens");
        Self { local, calls, wakes, child }
    }

    pub(crate) fn address(&mut self) -> String {
        self.calls.line().expect("an address").0
    }

    /// Lets the other process join these peers, without waiting for it.
    pub(crate) fn begin_connect(&mut self, peers: &[(NodeId, String)]) {
        self.calls.put(&format!("connect {}", peers.len())).expect("the child listens");
        for (peer, address) in peers {
            self.calls.put(&format!("{address} {}", peer.0)).expect("the child listens");
        }
    }

    pub(crate) fn end_connect(mut self) -> Remote {
        self.calls.line().unwrap_or_else(|error| panic!("{} does not join: {error}", self.local));
        Remote::new(self.local, self.calls, self.wakes, Some(self.child))
    }
}

/// The other process: executes the parent's calls until the parent is gone. Without a parent there is nothing to do.
pub(crate) fn serve(options: impl Fn(&str, u16, Duration) -> OfiOptions) {
    let Ok(parent) = env::var(VARIABLE) else { return };
    let dial = || Wire::new(TcpStream::connect(&parent).unwrap()).unwrap();
    let (mut calls, wakes) = (dial(), dial());
    let (provider, numbers) = calls.line().unwrap();
    let (local, nodes, timeout) = (numbers[0] as u16, numbers[1] as u16, Duration::from_millis(numbers[2] as u64));
    let mut node = Ofi::open(NodeId(local), options(&provider, nodes, timeout)).unwrap();
    calls.put(&node.address()).unwrap();
    let (_, count) = calls.line().unwrap();
    let peers: Vec<_> = (0..count[0])
        .map(|_| {
            let (address, numbers) = calls.line().unwrap();
            (NodeId(numbers[0] as u16), address)
        })
        .collect();
    node.connect(&peers).unwrap_or_else(|error| panic!("{error}"));
    calls.put("joined").unwrap();
    let _parent_is_gone = remote::serve(node, &mut calls, wakes, || ());
}
