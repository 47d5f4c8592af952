//! The transport under the conformance suite, over `tcp` and over `shm`.

mod support;

use evb_transport::conformance::{Subject, run_all, run_life};
use evb_transport_ofi::OfiOptions;
use std::time::Duration;
use support::{boxed, joined, options, there_is};

fn conforms(options: &OfiOptions) {
    if there_is(&options.provider) {
        run_all(&Subject { connect: &|nodes| boxed(joined(nodes, options)), max_body: options.max_body });
    }
}

#[test]
fn tcp_conforms() {
    conforms(&OfiOptions { max_body: 1 << 20, ..options("tcp") });
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

#[test]
fn slow_is_not_dead() {
    const SILENCE: Duration = Duration::from_millis(400);
    for provider in ["tcp", "shm"] {
        let options = OfiOptions { peer_timeout: SILENCE, ..options(provider) };
        if there_is(provider) {
            run_life(
                &Subject { connect: &|nodes| boxed(joined(nodes, &options)), max_body: options.max_body },
                SILENCE,
            );
        }
    }
}
