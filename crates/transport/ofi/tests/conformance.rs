//! The transport under the conformance suite, over each provider.

mod support;

use evb_transport::conformance::{Subject, boxed, run_all, run_life};
use evb_transport_bond::{Bond, Stripe};
use evb_transport_ofi::OfiOptions;
use std::time::Duration;
use support::{PROVIDERS, joined_nodes, options, there_is};

fn conforms(options: &OfiOptions) {
    if there_is(&options.provider) {
        run_all(&Subject { connect: &|nodes| boxed(joined_nodes(nodes, options)), max_body: options.max_body });
    }
}

#[test]
fn tcp_conforms() {
    conforms(&OfiOptions { max_body: 1 << 20, ..options("tcp") });
}

#[test]
fn net_conforms() {
    conforms(&OfiOptions { max_body: 1 << 20, ..options("net") });
}

#[test]
fn shm_conforms() {
    conforms(&OfiOptions { max_body: 1 << 20, ..options("shm") });
}

/// Credits and queues are always used up.
#[test]
fn tcp_conforms_with_few_credits() {
    conforms(&OfiOptions { max_body: 300_000, credits: 30, send_queue_bytes: 250_000, ..options("tcp") });
}

/// Long messages are sent by tag, as where a provider cannot write into the memory of a peer.
#[test]
fn all_conform_without_writes() {
    for provider in PROVIDERS {
        conforms(&OfiOptions { max_body: 300_000, writes: false, ..options(provider) });
    }
}

/// Two endpoints of each node, on addresses of their own.
#[test]
fn a_bond_of_two_interfaces_conforms() {
    for provider in ["tcp", "net"].into_iter().filter(|provider| there_is(provider)) {
        let on = |address: &str| OfiOptions { max_body: 1 << 20, interface: Some(address.into()), ..options(provider) };
        let (one, other) = (on("127.0.0.1"), on("127.0.0.2"));
        let links = |nodes| vec![boxed(joined_nodes(nodes, &one)), boxed(joined_nodes(nodes, &other))];
        for stripe in Stripe::ALL {
            let connect = |nodes| boxed(Bond::of_connected(links(nodes), stripe, one.max_body));
            run_all(&Subject { connect: &connect, max_body: one.max_body });
        }
    }
}

#[test]
fn slow_is_not_dead() {
    const SILENCE: Duration = Duration::from_millis(400);
    for provider in PROVIDERS {
        let options = OfiOptions { peer_timeout: SILENCE, ..options(provider) };
        if there_is(provider) {
            run_life(
                &Subject { connect: &|nodes| boxed(joined_nodes(nodes, &options)), max_body: options.max_body },
                SILENCE,
            );
        }
    }
}
