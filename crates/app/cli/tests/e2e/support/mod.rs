//! What the tests need: a folder with experiments, the `evb` command with a hard deadline, and what it left behind.

mod browser;
mod command;
mod files;
mod procs;
mod web;

pub(crate) use browser::Browser;
pub(crate) use command::{Evb, Outcome, Running};
pub(crate) use files::{Stored, apart_files, can_mount, find_stored, holds_event, read_all, stored_files};
pub(crate) use procs::{
    Group, belongings, cores_of_threads, group_memory, is_there, node_pid, own_memory, peak_memory, roles_of_sessions,
    wait_until,
};
pub(crate) use web::Service;

use evb_record::{Effect, FindingKind, Record, RecordKind};
use std::{
    fs,
    net::{TcpListener, UdpSocket},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};
use tempfile::TempDir;

/// A folder of one test, gone when it ends. Runs start in it and store in its `evb-data`.
pub(crate) struct Lab {
    folder: TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder for the test") }
    }

    /// A lab with one experiment, `experiment.toml`.
    pub(crate) fn with(text: &str) -> Self {
        let lab = Self::new();
        lab.write("experiment.toml", text);
        lab
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("the folder of the test can be written");
        path
    }

    /// The command in this folder, without any variable of evb in its environment.
    pub(crate) fn evb(&self, arguments: &[&str]) -> Evb {
        Evb::new(self.folder.path(), arguments)
    }

    /// `evb run --json experiment.toml` with more arguments.
    pub(crate) fn run(&self, arguments: &[&str]) -> Evb {
        self.evb(&["run", "--json", "experiment.toml"]).args(arguments)
    }

    /// `evb simulate --json experiment.toml` with more arguments.
    pub(crate) fn simulate(&self, arguments: &[&str]) -> Evb {
        self.evb(&["simulate", "--json", "experiment.toml"]).args(arguments)
    }

    /// `evb events verify` of these files.
    pub(crate) fn verify(&self, files: &[PathBuf]) -> Outcome {
        self.evb(&["events", "verify", "--json"]).paths(files).run()
    }

    /// All event files that the runs in this folder have written.
    pub(crate) fn stored_files(&self) -> Vec<PathBuf> {
        stored_files(&self.path("evb-data"))
    }

    /// The event files of one run in this folder.
    pub(crate) fn files_of(&self, run: u64) -> Vec<PathBuf> {
        let part = format!("-{run}-b");
        self.stored_files().into_iter().filter(|path| path.to_string_lossy().contains(&part)).collect()
    }

    /// Waits until a run has built an event and stored it: a run that is stopped before has none, and is not good.
    pub(crate) fn wait_for_event(&self, run: u64) {
        wait_until("an event is stored", || holds_event(&self.files_of(run), true).then_some(()));
    }
}

/// How the nodes of a run are carried.
pub(crate) const THREADS: &[&str] = &[];
/// See [`THREADS`].
pub(crate) const PROCESSES: &[&str] = &["--processes"];
/// See [`THREADS`]; where no file may grow long, for shared memory is one, too.
pub(crate) const TCP_PROCESSES: &[&str] = &["--processes", "--set", "transport.type=tcp"];
/// A shell in which no file may grow longer than 500 KiB.
pub(crate) const SHORT_FILES: [&str; 3] = ["bash", "-c", "ulimit -f 500; \"$0\" \"$@\""];
/// See [`THREADS`]; through simulated hardware, which is slow: fragments wait for each other in real time.
pub(crate) const HARDWARE: &[&str] = &["--set", "transport.type=velo-rtl"];

/// Runs `test` with threads and with processes, both at the same time: for runs that mostly wait.
pub(crate) fn both_modes(test: impl Fn(&[&str]) + Sync) {
    std::thread::scope(|scope| {
        let processes = scope.spawn(|| test(PROCESSES));
        test(THREADS);
        processes.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// The accounts hold in every record, however bad the run was.
pub(crate) fn check_accounts(record: &Record) {
    let events = &record.events;
    let ended = events.built + events.incomplete + events.rejected;
    assert_eq!(events.triggered, ended + events.lost, "{record:#?}");
    if record.builders.is_empty() {
        return; // Traffic has receivers that keep no accounts.
    }
    let of_builders: u64 = record.builders.iter().map(|b| b.built + b.incomplete + b.rejected).sum();
    assert!(of_builders >= ended || !record.lost_nodes.is_empty(), "{record:#?}");
    for builder in &record.builders {
        assert!(builder.stored <= builder.built + builder.incomplete || !record.lost_nodes.is_empty(), "{record:#?}");
    }
}

/// The record of a run that went well: accounts hold, and all events are built. Only a simulation must keep the rate of its
/// file: the machine of a test may be busy.
pub(crate) fn good(outcome: &Outcome) -> Record {
    let record = outcome.record();
    check_accounts(&record);
    assert_eq!(record.events.triggered, record.events.built + record.events.rejected, "{outcome}");
    assert_eq!((record.events.incomplete, record.events.lost), (0, 0), "{outcome}");
    let is_busy = record.kind == RecordKind::Run && !record.good && is_good_or_busy(&record);
    let codes: &[i32] = if is_busy { &[1, 3] } else { &[0] };
    assert!((is_busy || record.good) && outcome.code().is_some_and(|code| codes.contains(&code)), "{outcome}");
    assert!(record.lost_nodes.is_empty(), "{outcome}");
    record
}

/// A run is good, or all that speaks against it is that its machine was too busy for the rate.
pub(crate) fn is_good_or_busy(record: &Record) -> bool {
    let against = record.findings.iter().map(|finding| finding.kind).filter(|kind| kind.effect() != Effect::Remark);
    against.into_iter().all(|kind| matches!(kind, FindingKind::RateNotKept | FindingKind::RateNotJudged))
}

/// The record of a run that went badly, but not wrong.
pub(crate) fn not_good(outcome: &Outcome) -> Record {
    assert_eq!(outcome.code(), Some(1), "{outcome}");
    let record = outcome.record();
    check_accounts(&record);
    assert!(!record.good, "{outcome}");
    record
}

/// The run did not wait for something that could not come until it was given up.
pub(crate) fn never_stood_still(record: &Record) {
    assert!(record.findings.iter().all(|finding| finding.kind != FindingKind::NotDrained), "{:?}", record.findings);
}

/// The folder with recorded detector data, or `None` with a message.
pub(crate) fn recorded_data() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data");
    let folder = std::env::var_os("EVB_DATA").map_or(beside, PathBuf::from);
    let there = folder.join("cms-csc-run307511-fed841.raw").is_file();
    if !there {
        eprintln!("skipped: no recorded data in {}; set EVB_DATA", folder.display());
    }
    there.then(|| folder.canonicalize().expect("a folder that is there"))
}

/// An experiment that comes with evb.
pub(crate) fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../experiments").join(name)
}

/// A TCP port that is free now. See [`free_ports`].
pub(crate) fn free_tcp_port() -> u16 {
    free_tcp_ports(1)
}

/// The first of `count` TCP ports, one after the other, that are free now. See [`free_ports`].
pub(crate) fn free_tcp_ports(count: u16) -> u16 {
    free_ports(count, |port| TcpListener::bind(("127.0.0.1", port)).is_ok())
}

/// A UDP port that is free now. See [`free_ports`].
pub(crate) fn free_udp_port() -> u16 {
    free_ports(1, |port| UdpSocket::bind(("127.0.0.1", port)).is_ok())
}

/// Ports below those that the system picks for sockets without a port of their own: none of these can take one before it
/// is used. No two calls share a port.
fn free_ports(count: u16, is_free: impl Fn(u16) -> bool) -> u16 {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(1009);
    let next = || (begin.wrapping_add(NEXT.fetch_add(u32::from(count), Ordering::Relaxed)) % COUNT + FIRST) as u16;
    let all_free = |first: &u16| (*first..first + count).all(&is_free);
    (0..COUNT).map(|_| next()).find(all_free).expect("free ports")
}

/// The same numbers in every run of a test (SplitMix64).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) as usize % limit
    }
}
