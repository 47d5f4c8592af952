//! Bonds under the conformance suite.

use evb_core::NodeId;
use evb_transport::{
    EndpointOptions, Token,
    conformance::{Subject, boxed, changed, joined, run_all, run_life},
};
use evb_transport_bond::{Bond, BondOptions, Stripe};
use evb_transport_shm::in_process;
use evb_transport_tcp::{Tcp, TcpOptions};
use std::time::Duration;

/// Longest silence in the tests that tell slow nodes from dead ones.
const SILENCE: Duration = Duration::from_millis(200);

/// Bonds of TCP over two addresses of the loopback interface.
fn tcp_bonds(count: usize, stripe: Stripe, options: &TcpOptions) -> Vec<Bond<Tcp>> {
    let options = TcpOptions {
        endpoint: changed(options.endpoint.clone(), |endpoint| endpoint.nodes = count as u16),
        ..options.clone()
    };
    let link = |node, address: [u8; 4]| {
        let listen = (address, 0).into();
        Tcp::bind(NodeId(node), TcpOptions { listen, ..options.clone() }).expect("an address of this machine")
    };
    let names = vec!["tcp@127.0.0.1".to_owned(), "tcp@127.0.0.2".to_owned()];
    let bond = |node| {
        let members = vec![link(node, [127, 0, 0, 1]), link(node, [127, 0, 0, 2])];
        let options = BondOptions { stripe, ..BondOptions::new(names.clone(), options.endpoint.max_body) };
        Bond::new(members, options).expect("a bond")
    };
    joined((0..count as u16).map(bond).collect())
}

#[test]
fn bonds_of_threads_conform() {
    for (stripe, links) in Stripe::ALL.into_iter().zip([2, 3, 1]) {
        let connect = |nodes| {
            boxed(Bond::of_connected((0..links).map(|_| in_process::connect(nodes, 512)).collect(), stripe, 1 << 20))
        };
        run_all(&Subject { connect: &connect, max_body: 1 << 20 });
    }
}

#[test]
fn bonds_of_tcp_conform() {
    let options = TcpOptions::new(changed(EndpointOptions::new(2, Token::new([5; Token::BYTES])), |endpoint| {
        endpoint.max_body = 1 << 20
    }));
    for stripe in Stripe::ALL {
        let connect = |nodes| boxed(tcp_bonds(nodes, stripe, &options));
        run_all(&Subject { connect: &connect, max_body: options.endpoint.max_body });
    }
}

#[test]
fn bonds_of_tcp_do_not_give_up_slow_nodes() {
    let options = TcpOptions::new(changed(EndpointOptions::new(2, Token::new([5; Token::BYTES])), |endpoint| {
        endpoint.peer_timeout = SILENCE
    }));
    for stripe in Stripe::ALL {
        let connect = |nodes| boxed(tcp_bonds(nodes, stripe, &options));
        run_life(&Subject { connect: &connect, max_body: options.endpoint.max_body }, SILENCE);
    }
}
