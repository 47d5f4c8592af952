//! The conformance suite over a network in memory, without and with faults. It needs no privileges.

mod support;

use evb_transport::{
    HEAD_BYTES,
    conformance::{Subject, changed, run_all, run_life},
};
use evb_transport_bond::Stripe;
use evb_transport_ethernet::EthernetOptions;
use std::time::Duration;
use support::{Faults, Memory, Relay, bond, join, join_layers, options};

#[test]
fn a_network_without_faults_conforms() {
    let options = EthernetOptions::new(changed(options(2).endpoint, |endpoint| endpoint.max_body = 1 << 20));
    run_all(&Subject {
        connect: &|nodes| join(Memory::network(nodes, 1500), &options),
        max_body: options.endpoint.max_body,
    });
}

#[test]
fn a_network_with_faults_conforms() {
    let options = EthernetOptions::new(changed(options(2).endpoint, |endpoint| endpoint.max_body = 300_000));
    let faults = Faults { lost: 20, doubled: 20, swapped: 20, harmed: 20 };
    let connect = |nodes| {
        let relays = Memory::network(nodes, 1500).into_iter().zip(1..);
        join(relays.map(|(wire, seed)| Relay::new(wire, faults, seed)).collect(), &options)
    };
    run_all(&Subject { connect: &connect, max_body: options.endpoint.max_body });
}

/// With the rule that takes rates into account, one of the links has faults.
#[test]
fn bonds_conform() {
    let options = EthernetOptions::new(changed(options(2).endpoint, |endpoint| endpoint.max_body = 300_000));
    for stripe in Stripe::ALL {
        let lost = if stripe == Stripe::Message { 20 } else { 0 };
        let link = |nodes, lost| {
            let faults = Faults { lost, doubled: lost, swapped: lost, harmed: lost };
            let wires = Memory::network(nodes, 1500).into_iter().zip(1..);
            wires.map(|(wire, seed)| Relay::new(wire, faults, seed)).collect()
        };
        let connect = |nodes| bond(vec![link(nodes, 0), link(nodes, lost)], stripe, &options);
        run_all(&Subject { connect: &connect, max_body: options.endpoint.max_body });
    }
}

#[test]
fn slow_nodes_are_not_given_up() {
    const SILENCE: Duration = Duration::from_millis(200);
    let options = EthernetOptions::new(changed(options(2).endpoint, |endpoint| endpoint.peer_timeout = SILENCE));
    let subject = Subject { connect: &|nodes| join(Memory::network(nodes, 9000), &options), max_body: 1 << 20 };
    run_life(&subject, SILENCE);
}

/// The layer, as a transport.
#[test]
fn a_layer_conforms() {
    let faults = Faults { lost: 10, doubled: 10, swapped: 10, harmed: 10 };
    let options = EthernetOptions::new(changed(options(2).endpoint, |endpoint| endpoint.max_body = 1 << 20));
    let connect = |nodes| {
        let relays = Memory::network(nodes, 1500).into_iter().zip(1..);
        join_layers(relays.map(|(wire, seed)| Relay::new(wire, faults, seed)).collect(), &options)
    };
    run_all(&Subject { connect: &connect, max_body: options.endpoint.max_body - HEAD_BYTES });
}
