//! Processes as `/proc` shows them, and signals to them.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::{
    collections::BTreeMap,
    env, fs, thread,
    time::{Duration, Instant},
};

/// Longest wait for anything that must come: long, since it does not measure speed.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `condition` gives something, and fails when it never does.
pub(crate) fn wait_until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The process of node `name`, a child of `parent`.
pub(crate) fn node_pid(parent: u32, name: &str) -> u32 {
    wait_until(&format!("the process of {name}"), || {
        children(parent).into_iter().find(|&pid| argument(pid, "--role").as_deref() == Some(name))
    })
}

/// The processes of the sessions of a run by role, a map for each session: the nodes of one join at one address.
pub(crate) fn roles_of_sessions(parent: u32) -> Vec<BTreeMap<String, u32>> {
    let mut sessions: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
    for pid in children(parent) {
        if let (Some(session), Some(role)) = (argument(pid, "--join"), argument(pid, "--role")) {
            sessions.entry(session).or_default().insert(role, pid);
        }
    }
    sessions.into_values().collect()
}

/// The argument after `name` in the command line of a process.
fn argument(pid: u32, name: &str) -> Option<String> {
    let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
    let mut arguments = line.split('\0').skip_while(|argument| *argument != name);
    arguments.nth(1).map(str::to_owned)
}

fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| parent_of(pid) == Some(parent)).collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // pid (name) state parent ...: the name may hold anything, so count from its end.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The processes of a session in the order of their numbers, and the files, maps and threads that they have together.
pub(crate) fn belongings(parent: u32) -> (Vec<u32>, [usize; 3]) {
    let mut processes = children(parent);
    processes.push(parent);
    processes.sort_unstable();
    let count = |folder: &str| {
        let of = |pid: &u32| fs::read_dir(format!("/proc/{pid}/{folder}")).map_or(0, Iterator::count);
        processes.iter().map(of).sum()
    };
    let counts = ["fd", "map_files", "task"].map(count);
    (processes, counts)
}

/// Resident memory of a process and its children, in KiB.
pub(crate) fn group_memory(parent: u32) -> u64 {
    children(parent).into_iter().chain([parent]).filter_map(resident).sum()
}

/// The most memory that a process has had at once, in KiB.
pub(crate) fn peak_memory(pid: u32) -> Option<u64> {
    field(pid, "VmHWM:")
}

/// Resident memory of one process, in KiB.
pub(crate) fn own_memory(pid: u32) -> u64 {
    resident(pid).unwrap_or(0)
}

fn resident(pid: u32) -> Option<u64> {
    field(pid, "VmRSS:")
}

/// A number in what the kernel says of a process.
fn field(pid: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The cores that each thread of a process may use, as a list of the kernel; its first thread has the number of the process.
pub(crate) fn cores_of_threads(pid: u32) -> BTreeMap<u32, String> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let threads = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    threads.filter_map(|thread| Some((thread, allowed_cores(thread)?))).collect()
}

fn allowed_cores(thread: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_owned())
}

/// A process that leads its own group.
#[derive(Clone, Copy)]
pub(crate) struct Group(pub(crate) u32);

impl Group {
    /// To every process of the group, as a terminal does.
    pub(crate) fn signal(self, signal: Signal) {
        let _all_gone = kill_process_group(pid(self.0), signal);
    }

    /// To one process only.
    pub(crate) fn signal_one(process: u32, signal: Signal) {
        kill_process(pid(process), signal).expect("the process is there");
    }
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(number as i32).expect("no process has number 0")
}

/// Whether a program is installed; says so if not.
pub(crate) fn is_there(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let there = env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !there {
        evb_os::tools::skip_because(format_args!("{program} is not installed"));
    }
    there
}
