//! Helpers of the tests of the transports.

use evb_core::NodeId;
#[cfg(target_os = "linux")]
use evb_transport::shm::{Shm, ShmOptions};
use evb_transport::{
    Connect, Group, MulticastOptions, ReliableMulticast, Transport,
    bond::{Bond, BondOptions, Stripe},
    tcp::{Tcp, TcpOptions},
};
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

#[allow(dead_code, reason = "not every test file boxes its nodes")]
pub(crate) fn boxed<T: Transport + 'static>(nodes: Vec<T>) -> Vec<Box<dyn Transport>> {
    nodes.into_iter().map(|node| Box::new(node) as Box<dyn Transport>).collect()
}

/// TCP nodes of this process, joined from one thread each.
#[allow(dead_code, reason = "not every test file has nodes of TCP")]
pub(crate) fn tcp_nodes(count: usize, options: &TcpOptions) -> Vec<Tcp> {
    let options = TcpOptions { nodes: count as u16, ..options.clone() };
    joined((0..count as u16).map(|node| Tcp::bind(NodeId(node), options.clone()).unwrap()).collect())
}

/// Two TCP nodes of this process, whose connection goes through a relay. It may change what the second one sends.
#[allow(dead_code, reason = "not every test file has a relay")]
pub(crate) fn tcp_through(options: &TcpOptions, change: impl FnMut(&mut [u8]) + Send + 'static) -> [Tcp; 2] {
    let [mut first, mut second] = [0, 1].map(|node| Tcp::bind(NodeId(node), options.clone()).unwrap());
    let behind = first.listen_addr();
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = relay.local_addr().unwrap();
    thread::spawn(move || {
        let (there, here) = (relay.accept().unwrap().0, TcpStream::connect(behind).unwrap());
        let (back_from, back_to) = (here.try_clone().unwrap(), there.try_clone().unwrap());
        thread::spawn(move || carry(back_from, back_to, |_| {}));
        carry(there, here, change);
    });
    let joining = thread::spawn(move || second.connect(&[(NodeId(0), address)]).map(|()| second).unwrap());
    first.connect(&[(NodeId(1), address)]).unwrap();
    [first, joining.join().unwrap()]
}

fn carry(mut from: TcpStream, mut to: TcpStream, mut change: impl FnMut(&mut [u8])) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(1..) = from.read(&mut bytes).map(|count| {
        change(&mut bytes[..count]);
        to.write_all(&bytes[..count]).map_or(0, |()| count)
    }) {}
    let _gone = to.shutdown(std::net::Shutdown::Both);
}

/// Bonds of TCP over two addresses of the loopback interface.
#[allow(dead_code, reason = "not every test file has bonds")]
pub(crate) fn tcp_bonds(count: usize, stripe: Stripe, options: &TcpOptions) -> Vec<Bond<Tcp>> {
    let options = TcpOptions { nodes: count as u16, ..options.clone() };
    let link = |node, address: [u8; 4]| {
        let listen = (address, 0).into();
        Tcp::bind(NodeId(node), TcpOptions { listen, ..options.clone() }).expect("an address of this machine")
    };
    let names = vec!["tcp@127.0.0.1".to_owned(), "tcp@127.0.0.2".to_owned()];
    let bond = |node| {
        let members = vec![link(node, [127, 0, 0, 1]), link(node, [127, 0, 0, 2])];
        let options = BondOptions { stripe, ..BondOptions::new(names.clone(), options.max_body) };
        Bond::new(members, options).expect("a bond")
    };
    joined((0..count as u16).map(bond).collect())
}

/// TCP nodes with multicast on the loopback interface.
#[allow(dead_code, reason = "not every test file has nodes with multicast")]
pub(crate) fn multicast_nodes(count: usize, options: &TcpOptions) -> Vec<ReliableMulticast<Tcp, Group>> {
    let (nodes, multicast) = (count as u16, MulticastOptions::new(count as u16, options.max_body));
    let options = TcpOptions { nodes, ..options.clone() };
    let bind = |node| ReliableMulticast::over_tcp(Tcp::bind(NodeId(node), options.clone()).unwrap(), multicast);
    joined((0..nodes).map(bind).collect())
}

/// Nodes of shared memory of this process, joined from one thread each.
#[cfg(target_os = "linux")]
#[allow(dead_code, reason = "not every test file has nodes of shared memory")]
pub(crate) fn shm_nodes(count: usize, options: &ShmOptions) -> Vec<Shm> {
    let options = ShmOptions { nodes: count as u16, ..options.clone() };
    joined((0..count as u16).map(|node| Shm::bind(NodeId(node), options.clone()).unwrap()).collect())
}

fn joined<T: Transport + Connect + 'static>(nodes: Vec<T>) -> Vec<T> {
    let addresses: Vec<_> = nodes.iter().map(|node| (node.local(), node.address())).collect();
    let joining: Vec<_> = nodes
        .into_iter()
        .map(|mut node| {
            let peers: Vec<_> = addresses.iter().filter(|peer| peer.0 != node.local()).cloned().collect();
            std::thread::spawn(move || Connect::connect(&mut node, &peers).map(|()| node).unwrap())
        })
        .collect();
    joining.into_iter().map(|node| node.join().unwrap()).collect()
}
