//! The conformance suite across processes: rank 0 runs it, and reaches the endpoints of the other ranks over sockets.
//! The other ranks call MPI while they wait, since it makes no progress by itself.

use evb_core::NodeId;
use evb_transport::{
    Transport,
    conformance::{
        Subject,
        remote::{Remote, Wire, serve},
        run_all,
    },
};
use evb_transport_mpi::{Endpoint, Mpi};
use std::{
    cell::RefCell,
    net::{Ipv4Addr, TcpListener, TcpStream},
};

pub(crate) fn ranks(mpi: &Mpi) {
    assert_eq!(evb_transport_mpi::launched(), Some(mpi.size()));
    if mpi.rank() == 0 { be_node_0(mpi) } else { be_another(mpi) }
}

/// Runs the suite: node 0 is in this process, the others are on the other ranks.
fn be_node_0(mpi: &Mpi) {
    let (listener, port) = listen();
    let port = port.to_string();
    assert_eq!(mpi.share(port.as_bytes()), port.as_bytes());
    let ranks = RefCell::new((1..mpi.size()).map(|_| accept(&listener)).collect::<Vec<_>>());
    let connect = |nodes: usize| {
        let (listeners, ports): (Vec<_>, Vec<_>) = (1..nodes).map(|_| listen()).unzip();
        let order = ports.iter().fold("open".to_owned(), |order, port| format!("{order} {port}"));
        ranks.borrow_mut().iter_mut().for_each(|rank| rank.put(&order).expect("a rank"));
        let mut boxed: Vec<Box<dyn Transport>> = vec![Box::new(open(mpi, nodes).expect("node 0 is here"))];
        for (node, listener) in (1..).map(NodeId).zip(&listeners) {
            boxed.push(Box::new(Remote::new(node, accept(listener), accept(listener), None)));
        }
        boxed
    };
    run_all(&Subject { connect: &connect, max_body: super::MAX_BODY });
}

/// Opens endpoints on the order of rank 0 and serves them, until rank 0 closes the connection.
fn be_another(mpi: &Mpi) {
    let port = String::from_utf8(mpi.share(&[])).expect("a text").parse().expect("a port");
    let mut orders = dial(port);
    loop {
        orders.wait(|| mpi.progress()).expect("rank 0");
        let Ok((_, ports)) = orders.line() else { return };
        if let Some(endpoint) = open(mpi, ports.len() + 1) {
            let port = ports[mpi.rank() - 1] as u16;
            let (mut calls, wakes) = (dial(port), dial(port));
            serve(endpoint, &mut calls, wakes, || mpi.progress()).expect("rank 0");
        }
    }
}

/// The endpoint of this rank's node, if it has one.
fn open(mpi: &Mpi, nodes: usize) -> Option<Endpoint> {
    let placement: Vec<_> = (0..nodes).collect();
    mpi.endpoints(&placement, &super::options()).expect("there are as many ranks").pop()
}

fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    (listener, port)
}

fn accept(listener: &TcpListener) -> Wire {
    Wire::new(listener.accept().expect("a rank").0).expect("a connection")
}

fn dial(port: u16) -> Wire {
    Wire::new(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("rank 0")).expect("a connection")
}
