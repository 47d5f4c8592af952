//! The transport under the conformance suite, over each provider.

mod support;

use evb_transport::conformance::{Subject, boxed, run_all, run_life};
use evb_transport_bond::{Bond, Stripe};
use evb_transport_ofi::OfiOptions;
use std::time::Duration;
use support::{PROVIDERS, joined_nodes, options, there_is, with};

fn conforms(options: &OfiOptions) {
    if there_is(&options.provider) {
        run_all(&Subject {
            connect: &|nodes| boxed(joined_nodes(nodes, options)),
            max_body: options.endpoint.max_body,
        });
    }
}

#[test]
fn tcp_conforms() {
    conforms(&with(&options("tcp"), |endpoint| endpoint.max_body = 1 << 20));
}

#[test]
fn net_conforms() {
    conforms(&with(&options("net"), |endpoint| endpoint.max_body = 1 << 20));
}

#[test]
fn shm_conforms() {
    conforms(&with(&options("shm"), |endpoint| endpoint.max_body = 1 << 20));
}

/// Credits and queues are always used up.
#[test]
fn tcp_conforms_with_few_credits() {
    conforms(&OfiOptions {
        credits: 30,
        send_queue_bytes: 250_000,
        ..with(&options("tcp"), |endpoint| endpoint.max_body = 300_000)
    });
}

/// Long messages are sent by tag, as where a provider cannot write into the memory of a peer.
#[test]
fn all_conform_without_writes() {
    for provider in PROVIDERS {
        conforms(&OfiOptions { writes: false, ..with(&options(provider), |endpoint| endpoint.max_body = 300_000) });
    }
}

/// Two endpoints of each node, on their own addresses.
#[test]
fn a_bond_of_two_interfaces_conforms() {
    for provider in ["tcp", "net"].into_iter().filter(|provider| there_is(provider)) {
        let on = |address: &str| OfiOptions {
            interface: Some(address.into()),
            ..with(&options(provider), |endpoint| endpoint.max_body = 1 << 20)
        };
        let (one, other) = (on("127.0.0.1"), on("127.0.0.2"));
        let links = |nodes| vec![boxed(joined_nodes(nodes, &one)), boxed(joined_nodes(nodes, &other))];
        for stripe in Stripe::ALL {
            let connect = |nodes| boxed(Bond::of_connected(links(nodes), stripe, one.endpoint.max_body));
            run_all(&Subject { connect: &connect, max_body: one.endpoint.max_body });
        }
    }
}

#[test]
fn slow_nodes_are_not_given_up() {
    const SILENCE: Duration = Duration::from_millis(400);
    for provider in PROVIDERS {
        let options = with(&options(provider), |endpoint| endpoint.peer_timeout = SILENCE);
        if there_is(provider) {
            run_life(
                &Subject {
                    connect: &|nodes| boxed(joined_nodes(nodes, &options)),
                    max_body: options.endpoint.max_body,
                },
                SILENCE,
            );
        }
    }
}
