//! Other tools, and plain C programs for the same tasks.

use super::{
    Blocks,
    jobs::{Bench, installed, output, output_of_pair},
    outputs,
};
use std::{path::Path, process::Command};

/// A turn: a time in nanoseconds or a rate per second for each size.
pub(super) type Measure = Box<dyn Fn() -> Result<Vec<f64>, String>>;

/// Approximate nanoseconds of a message of UCX: a round trip, or one of a stream.
const UCX_ROUND_TRIP_NS: u64 = 500;
const UCX_MESSAGE_NS: u64 = 100;
/// The same over TCP on the loopback.
const TCP_ROUND_TRIP_NS: u64 = 8_000;
/// Approximate nanoseconds of a batch of the loop over MPI, which is 1000 round trips.
const MPI_BATCH_NS: u64 = 700_000;
/// Header of the library of checksums.
const CHECKSUMS: &str = "/usr/include/isa-l/crc.h";
/// Slots of a builder: the default maximum of evb.
const SLOTS: &str = "64";
/// Number of copied fragments in the measurement of the copy limit for each fragment that is built.
const COPIES: u64 = 5;

/// An MPI, with Debian's names of its commands.
pub(super) struct Mpi {
    pub(super) name: &'static str,
    mpirun: &'static str,
    mpicc: &'static str,
    /// Options for more ranks than cores, for binding by `taskset`, and for root.
    arguments: &'static [&'static str],
}

impl Mpi {
    pub(super) const OPEN: Self = Self {
        name: "Open MPI",
        mpirun: "mpirun.openmpi",
        mpicc: "mpicc.openmpi",
        arguments: &["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"],
    };
    pub(super) const MPICH: Self =
        Self { name: "MPICH", mpirun: "mpirun.mpich", mpicc: "mpicc.mpich", arguments: &["-bind-to", "none"] };

    /// The words that start this number of ranks; the program follows.
    pub(super) fn launcher(&self, ranks: &str) -> Vec<String> {
        let words = [self.mpirun].into_iter().chain(self.arguments.iter().copied()).chain(["-n", ranks]);
        words.map(str::to_owned).collect()
    }

    pub(super) fn installed(&self) -> Result<(), String> {
        installed(self.mpirun).and_then(|()| installed(self.mpicc))
    }
}

/// Half a round trip (`tag_lat`) or the messages per second of one sender (`tag_bw`), through shared memory.
pub(super) fn ucx(bench: &Bench, test: &'static str, sizes: &'static [u32]) -> Result<Measure, String> {
    installed("ucx_perftest")?;
    let is_latency = test == "tag_lat";
    let count = bench.effort.round_trips(if is_latency { UCX_ROUND_TRIP_NS } else { UCX_MESSAGE_NS }).to_string();
    let bench = bench.clone();
    Ok(for_each(sizes, move |size| {
        let side = |core: usize, port: &str| {
            let mut command = bench.on_core(core, "ucx_perftest");
            command.env("UCX_TLS", "shm,self").args(["-p", port, "-f"]);
            command
        };
        let client = |port: &str| {
            let mut command = side(1, port);
            command.args(["-t", test, "-s", &size.to_string(), "-n", &count, "127.0.0.1"]);
            command
        };
        let result = outputs::ucx(&output_of_pair(|port| side(0, port), client)?)?;
        Ok(if is_latency { result.median_ns } else { result.messages_per_s })
    }))
}

/// The usual loop of blocking sends and receives. `taskset` starts each rank, with both launchers.
pub(super) fn osu_loop(bench: &Bench, mpi: &Mpi, sizes: &'static [u32]) -> Result<Measure, String> {
    mpi.installed()?;
    let program = bench.compile(mpi.mpicc, "crates/transport/mpi/benches/ping_pong.c", &[])?;
    let batches = bench.effort.round_trips(MPI_BATCH_NS).to_string();
    let (bench, words) = (bench.clone(), mpi.launcher("1"));
    Ok(Box::new(move || {
        let mut command = Command::new(&words[0]);
        command.current_dir(&bench.scratch);
        for (rank, core) in bench.cores.iter().enumerate() {
            command.args((rank > 0).then_some(":"));
            // The options of the whole job precede the first program only.
            command.args(if rank == 0 { &words[1..] } else { &words[words.len() - 2..] });
            command.args(["taskset", "-c", &core.to_string()]).arg(&program).arg(&batches);
            command.args(sizes.iter().map(u32::to_string));
        }
        let text = output(&mut command)?;
        sizes.iter().map(|&size| outputs::sizes_loop(&text, size)).collect()
    }))
}

/// One way of libfabric's own ping-pong, over a provider by its full name.
pub(super) fn fi_pingpong(
    bench: &Bench,
    provider: &'static str,
    trips: u64,
    sizes: &'static [u32],
) -> Result<Measure, String> {
    installed("fi_pingpong")?;
    let bench = bench.clone();
    Ok(for_each(sizes, move |size| {
        let side = |core: usize, more: &[&str]| {
            let mut command = bench.on_core(core, "fi_pingpong");
            command.args(["-p", provider, "-e", "rdm", "-m", "tagged", "-I", &trips.to_string()]);
            command.args(["-S", &size.to_string()]).args(more);
            command
        };
        let text = output_of_pair(|port| side(0, &["-B", port]), |port| side(1, &["-P", port, "127.0.0.1"]))?;
        outputs::fi_pingpong(&text)
    }))
}

/// One way of the loop with the calls of libfabric that evb's layer makes. It pins itself.
pub(super) fn libfabric_loop(
    bench: &Bench,
    provider: &'static str,
    trips: u64,
    sizes: &'static [u32],
) -> Result<Measure, String> {
    installed("cc")?;
    let program = bench.compile("cc", "crates/transport/ofi/benches/plain.c", &["-lfabric"])?;
    let interface = if provider == "tcp" { "127.0.0.1" } else { "-" };
    let bench = bench.clone();
    Ok(for_each(sizes, move |size| {
        let mut command = bench.on_both(&program);
        command.args([provider, interface, &size.to_string(), &trips.to_string()]);
        command.args(bench.cores.map(|core| core.to_string()));
        outputs::libfabric_loop(&output(&mut command)?)
    }))
}

/// One way of NetPIPE over TCP, the best of its trials.
pub(super) fn netpipe(bench: &Bench, sizes: &'static [u32]) -> Result<Measure, String> {
    installed("NPtcp")?;
    let bench = bench.clone();
    Ok(Box::new(move || {
        let (least, most) = (sizes[0].to_string(), sizes[sizes.len() - 1].to_string());
        let side = |core: usize, port: &str, file: &str| {
            let mut command = bench.on_core(core, "NPtcp");
            command.args(["-l", &least, "-u", &most, "-p", "0", "-P", port, "-o", file]);
            command
        };
        let client = |port: &str| {
            let mut command = side(1, port, "netpipe.client");
            command.args(["-h", "127.0.0.1"]);
            // It reports on standard error; the shell joins the two streams.
            joined(&command)
        };
        let text = output_of_pair(|port| side(0, port, "netpipe.server"), client)?;
        sizes.iter().map(|&size| outputs::netpipe(&text, size)).collect()
    }))
}

/// One way of plain sockets between processes that poll, as evb's do. It pins itself.
pub(super) fn tcp_loop(bench: &Bench, sizes: &'static [u32]) -> Result<Measure, String> {
    installed("cc")?;
    let program = bench.compile("cc", "lab/src/peers/tcp_loop.c", &[])?;
    let trips = bench.effort.round_trips(TCP_ROUND_TRIP_NS).to_string();
    let bench = bench.clone();
    Ok(Box::new(move || {
        let mut command = bench.on_both(&program);
        command.arg(&trips).args(bench.cores.map(|core| core.to_string())).args(sizes.iter().map(u32::to_string));
        let text = output(&mut command)?;
        sizes.iter().map(|&size| outputs::sizes_loop(&text, size)).collect()
    }))
}

/// The work of an event builder in plain C beside moving fragments and verifying every word.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Duties {
    None,
    /// The work of evb: checksums on both sides, and an account of every event.
    Evbs,
}

impl Duties {
    /// The options of the compiler.
    fn options(self) -> Result<&'static [&'static str], String> {
        match self {
            Self::None => Ok(&[]),
            Self::Evbs if Path::new(CHECKSUMS).exists() => Ok(&["-DDUTIES", "-lisal"]),
            Self::Evbs => Err("libisal-dev is not installed".into()),
        }
    }
}

/// Fragments per second of the event builder in plain C over MPI: the same roles, sizes and slots, and every word verified.
pub(super) fn event_building(
    bench: &Bench,
    mpi: &Mpi,
    duties: Duties,
    sizes: &'static [u32],
    blocks: Blocks,
) -> Result<Measure, String> {
    mpi.installed()?;
    let program = bench.compile(mpi.mpicc, "crates/transport/mpi/tests/peer/event_building.c", duties.options()?)?;
    let (bench, words) = (bench.clone(), mpi.launcher("5"));
    Ok(for_each(sizes, move |size| {
        let mut command = bench.on_both(&words[0]);
        command.args(&words[1..]).arg(&program);
        // It handles a block as one long fragment.
        let block = blocks.usual_events();
        let sent = bench.effort.events_in(blocks, size) / u64::from(block);
        command.args(["2", &sent.to_string(), &(size * block).to_string(), "push", SLOTS]);
        outputs::event_building(&output(&mut command)?).map(|sent| sent * f64::from(block))
    }))
}

/// Fragments per second of the event builder in plain C over sockets, with evb's duties.
pub(super) fn event_building_tcp(bench: &Bench, sizes: &'static [u32]) -> Result<Measure, String> {
    installed("cc")?;
    let program = bench.compile("cc", "lab/src/peers/event_building_tcp.c", Duties::Evbs.options()?)?;
    let bench = bench.clone();
    Ok(for_each(sizes, move |size| {
        let mut command = bench.on_both(&program);
        command.args(["2", "2", &bench.effort.events_of(size).to_string(), &size.to_string(), SLOTS]);
        outputs::event_building(&output(&mut command)?)
    }))
}

/// Fragments per second that one core can copy into shared memory while another copies them out: see `copy_limit.c`.
pub(super) fn copy_limit(bench: &Bench, sizes: &'static [u32]) -> Result<Measure, String> {
    limit(bench, "lab/src/peers/copy_limit.c", &[], sizes)
}

/// Fragments per second that two cores write and checksum in place, and verify in place: see `reference_limit.c`.
pub(super) fn reference_limit(bench: &Bench, sizes: &'static [u32]) -> Result<Measure, String> {
    limit(bench, "lab/src/peers/reference_limit.c", Duties::Evbs.options()?, sizes)
}

/// A program that pins itself and prints the number of fragments that two cores can handle per second.
fn limit(bench: &Bench, source: &str, options: &[&str], sizes: &'static [u32]) -> Result<Measure, String> {
    installed("cc")?;
    let program = bench.compile("cc", source, options)?;
    let bench = bench.clone();
    Ok(for_each(sizes, move |size| {
        let mut command = bench.on_both(&program);
        command.args([size.to_string(), (bench.effort.events_of(size) * COPIES).to_string()]);
        command.args(bench.cores.map(|core| core.to_string()));
        outputs::one_number(&output(&mut command)?)
    }))
}

/// A tool that measures one size at a time.
fn for_each(sizes: &'static [u32], measure: impl Fn(u32) -> Result<f64, String> + 'static) -> Measure {
    Box::new(move || sizes.iter().map(|&size| measure(size)).collect())
}

/// The same command with standard error joined to standard output.
fn joined(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" 2>&1", "sh"]).arg(command.get_program()).args(command.get_args());
    shell.current_dir(command.get_current_dir().unwrap_or(Path::new(".")));
    shell
}
