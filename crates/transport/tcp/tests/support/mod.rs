//! Helpers of the tests of TCP.

use evb_core::NodeId;
use evb_transport::conformance::{changed, joined};
use evb_transport_tcp::{
    Tcp, TcpOptions,
    multicast::{Group, MulticastOptions, ReliableMulticast},
};
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

/// TCP nodes of this process, joined from one thread each.
#[allow(dead_code, reason = "not every test file has nodes of TCP")]
pub(crate) fn tcp_nodes(count: usize, options: &TcpOptions) -> Vec<Tcp> {
    let options = TcpOptions {
        endpoint: changed(options.endpoint.clone(), |endpoint| endpoint.nodes = count as u16),
        ..options.clone()
    };
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

/// TCP nodes with multicast on the loopback interface.
#[allow(dead_code, reason = "not every test file has nodes with multicast")]
pub(crate) fn multicast_nodes(count: usize, options: &TcpOptions) -> Vec<ReliableMulticast<Tcp, Group>> {
    let (nodes, multicast) = (count as u16, MulticastOptions::new(count as u16, options.endpoint.max_body));
    let options = TcpOptions {
        endpoint: changed(options.endpoint.clone(), |endpoint| endpoint.nodes = nodes),
        ..options.clone()
    };
    let bind = |node| ReliableMulticast::over_tcp(Tcp::bind(NodeId(node), options.clone()).unwrap(), multicast);
    joined((0..nodes).map(bind).collect())
}
