//! `[transport]`: how nodes talk.

use crate::{choice::*, plan::TransportKind, schema::*};

pub(super) static TRANSPORT: Choice<Make<TransportKind>> = choice(
    "transport",
    Default::Text("in-process"),
    &[
        variant("in-process", "threads of one process, messages by reference", &[], |_| TransportKind::InProcess),
        variant("shm", "shared memory between processes of one machine: a VELO mailbox for each node", &[], |_| {
            TransportKind::Shm
        }),
        variant("tcp", "TCP between processes and machines", &[], |_| TransportKind::Tcp),
        variant(
            "mpi",
            "MPI, whichever is installed: start with `mpirun -n NODES evb run FILE`, and the rank chooses the role",
            &[],
            |_| TransportKind::Mpi,
        ),
        variant(
            "ofi",
            "a provider of libfabric",
            &[key(
                "provider",
                Kind::Text,
                Default::Text("tcp"),
                "the provider, such as tcp, shm, verbs, efa, cxi, psm3 or opx",
            )],
            |view| TransportKind::Ofi { provider: view.text("provider").to_owned() },
        ),
        variant(
            "velo-rtl",
            "threads of one process through the VELO hardware, simulated cycle by cycle; needs Verilator, and is slow",
            &[key("wires", integer(16, 96), Default::Integer(16), "wires of a link in one direction: 16, 32 or 96")],
            |view| TransportKind::VeloRtl { wires: view.integer("wires") },
        ),
    ],
);
