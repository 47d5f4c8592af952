//! All tests that need MPI, under each installed MPI. Started by hand, this program starts itself again under the
//! launchers; started by a launcher, it is one rank of a case.

mod launch;
mod layers;
mod remote;

use evb_os::tools::skip_because;
use evb_transport::conformance::{Subject, run_all};
use evb_transport_mpi::{Mpi, MpiError, MpiOptions, Threads, launched};
use launch::{Expected, Installed, Job, run};
use std::{env, process::ExitCode};

/// Longest body in the conformance suite: far above what any MPI sends eagerly.
const MAX_BODY: usize = 1 << 20;
/// Prefix of the message of a rank that could not start.
const NO_START: &str = "no start: ";

fn options() -> MpiOptions {
    MpiOptions { max_body: MAX_BODY }
}

fn main() -> ExitCode {
    match env::args().nth(1).as_deref().and_then(|name| name.strip_prefix("case:")) {
        Some(case) => be_a_rank(case),
        None => be_the_test(),
    }
}

/// The cases: number of ranks (0 is a process without a launcher), expected end, and whether the MPI is the launcher's.
fn jobs() -> Vec<Job> {
    let good = |name, ranks| Job { name, ranks, expected: Expected::Good, foreign: false };
    let bad = |name, ranks, says, foreign| Job { name, ranks, expected: Expected::Bad(says), foreign };
    vec![
        good("one-process", 0),
        good("ranks", 5),
        good("layers", 3),
        good("many-on-few", 2),
        bad("panic", 2, "a rank fails", false),
        bad("error", 2, "", false),
        bad("start", 2, "the launcher started 2 processes, but", true),
    ]
}

fn be_the_test() -> ExitCode {
    let mut good = run("without mpicc", launch::without_mpicc);
    let installed = Installed::find();
    if installed.is_empty() {
        skip_because("no MPI is installed (openmpi-bin and libopenmpi-dev, or mpich and libmpich-dev)");
    }
    for mpi in &installed {
        for job in jobs() {
            let foreign = installed.iter().find(|other| other.mpirun != mpi.mpirun);
            if job.foreign && foreign.is_none() {
                skip_because(format_args!("{} needs two MPIs, and only one is installed", job.name));
                continue;
            }
            let mpicc = foreign.filter(|_| job.foreign).map(|other| other.mpicc.as_str());
            good &= run(&format!("{} with {}", job.name, mpi.mpirun), || mpi.start(&job, mpicc));
        }
        good &= run(&format!("event building in plain MPI with {}", mpi.mpirun), || mpi.build_events());
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn be_a_rank(case: &str) -> ExitCode {
    let threads = if case == "layers" { Threads::One } else { Threads::Many };
    let mpi = match Mpi::init(threads) {
        Ok(mpi) => mpi,
        Err(error) => {
            println!("{NO_START}{error}");
            return ExitCode::FAILURE;
        }
    };
    println!("rank {} of {} with {}", mpi.rank(), mpi.size(), mpi.version());
    match case {
        "one-process" => one_process(&mpi),
        "ranks" => remote::ranks(&mpi),
        "layers" => layers::run(&mpi),
        "many-on-few" => many_on_few(&mpi),
        "panic" | "error" => {
            if mpi.rank() == 1 {
                assert!(case != "panic", "a rank fails");
                return ExitCode::SUCCESS;
            }
            // No rank answers: the end of the job ends this.
            let _never = mpi.share(&[]);
            let _never = mpi.share(&[]);
            std::thread::sleep(launch::PATIENCE);
        }
        _ => println!("{case} is not a case"),
    }
    mpi.finish();
    ExitCode::SUCCESS
}

/// Several nodes in one process: each message goes to the process's own rank.
fn one_process(mpi: &Mpi) {
    assert_eq!((launched(), mpi.rank(), mpi.size()), (None, 0, 1));
    let connect = |nodes: usize| {
        let endpoints = mpi.endpoints(&vec![0; nodes], &options()).expect("rank 0 is there");
        endpoints.into_iter().map(|endpoint| Box::new(endpoint) as _).collect()
    };
    run_all(&Subject { connect: &connect, max_body: MAX_BODY });
    assert!(matches!(Mpi::init(Threads::Many), Err(MpiError::Start(_))), "MPI starts once");
    let error = mpi.endpoints(&[0, 1], &options()).expect_err("there is one rank").to_string();
    assert!(error.contains("node 1 is placed on rank 1"), "{error}");
}

/// Nodes that share ranks, not one after the other: all send to all, and each hears of the end of all others.
fn many_on_few(mpi: &Mpi) {
    use bytes::Bytes;
    use evb_core::NodeId;
    use evb_transport::{HEAD_BYTES, Message, Received, Transport};
    const PLACES: [usize; 7] = [1, 0, 0, 1, 0, 1, 1];
    let mut here = mpi.endpoints(&PLACES, &options()).expect("there are two ranks");
    assert_eq!(here.len(), PLACES.iter().filter(|&&rank| rank == mpi.rank()).count());
    let body = |from: NodeId, to: NodeId| Bytes::from(vec![from.0 as u8 * 16 + to.0 as u8; 10_000 * to.index()]);
    let nodes = || (0..PLACES.len() as u16).map(NodeId);
    for endpoint in &mut here {
        let from = endpoint.local();
        for to in nodes().filter(|&to| to != from) {
            let message = Message { head: [from.0 as u8; HEAD_BYTES], body: body(from, to) };
            endpoint.send(to, message).expect("room for one");
        }
    }
    let mut left = vec![PLACES.len() - 1; here.len()];
    let mut sink = Vec::new();
    let mut flushed = false;
    while !flushed || left.iter().any(|&left| left > 0) {
        flushed = here.iter_mut().map(Transport::flush).filter(|empty| !empty).count() == 0;
        for (endpoint, left) in here.iter_mut().zip(&mut left) {
            endpoint.receive(10, &mut sink);
            for item in sink.drain(..) {
                let Received::Message { from, message } = item else { continue };
                assert_eq!(message.head, [from.0 as u8; HEAD_BYTES]);
                assert!(message.body == body(from, endpoint.local()));
                *left -= 1;
            }
        }
        std::thread::yield_now();
    }
}
