//! A night in a minute: a service at full rate, while nodes, operators and the service itself do what they should not.
//!
//! The order of what happens is drawn from a seed, `EVB_NIGHT_SEED`; `EVB_NIGHT_SECONDS` says for how long.

use crate::support::{
    Group, Lab, Numbers, Service, belongings, check_accounts, own_memory, roles_of_sessions, stored_files, wait_until,
};
use evb_events::{FindingKind, verify};
use evb_record::Record;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, thread,
    time::{Duration, Instant},
};

const FULL_RATE: &str = r#"
[trigger]
type = "free-running"
events = 1000000000000
[readout]
units = 3
source = { type = "log-normal", mean = "2 kB", rms = "2 kB" }
[builder]
units = 3
[run]
peer_timeout = "4 s"
[storage]
keep = { one_in = 100 }
file_size = "4 MB"
"#;

/// Time after which memory and files of a service should grow no more.
const WARM: Duration = Duration::from_secs(8);
/// Most that the service itself may grow after that, in KiB, and in open files.
const GROWTH: (u64, usize) = (16 << 10, 16);

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// The service and all that is known about what was done to it.
struct Night {
    lab: Lab,
    service: Service,
    since: Instant,
    /// Memory and open files of the service when it was warm.
    warm: Option<(u64, usize)>,
    /// The nodes that were seen to die, by run.
    killed: BTreeMap<u64, BTreeSet<String>>,
    /// Runs that did not end in order, or whose nodes stood still.
    disturbed: BTreeSet<u64>,
    checked: BTreeSet<u64>,
}

impl Night {
    fn begin() -> Self {
        let lab = Lab::with(FULL_RATE);
        let service = Service::start(&lab, &["--processes"]);
        let (killed, disturbed, checked) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { lab, service, since: Instant::now(), warm: None, killed, disturbed, checked }
    }

    fn status(&self) -> Value {
        self.service.get("/api/status")
    }

    /// The run that goes on.
    fn run(status: &Value) -> Option<u64> {
        let goes_on = ["running", "degraded", "paused"].map(Value::from).contains(&status["state"]);
        status["run"]["number"].as_u64().filter(|_| goes_on)
    }

    fn act(&mut self, action: usize, draw: usize) {
        let status = self.status();
        let run = Self::run(&status);
        match action {
            0..=3 => self.kill(&status, ["ru0", "ru1", "ru2", "bu0", "bu1", "bu2", "evm"][draw % 7]),
            4 | 5 => self.stand_still(&status, ["ru1", "bu1"][draw % 2]),
            6 => drop(self.service.command("pause")),
            7 => drop(self.service.command("resume")),
            8..=11 => drop(self.service.command("stop")),
            12 => {
                self.disturbed.extend(run);
                self.service.command("abort");
            }
            13 => drop(self.service.ask("PUT", "/api/experiment", Some(&json!({ "text": "[readout]\nunits = -1\n" })))),
            14 => drop(self.service.send("POST", "/api/command", &["X-Evb: 1"], Some(&json!({ "command": "abort" })))),
            15 => self.fill_disk(run, ["bu0", "bu2"][draw % 2]),
            _ => self.kill_service(run),
        }
    }

    /// Lets a builder write no more, as on a full disk, until its run is over or has nothing to write.
    fn fill_disk(&mut self, run: Option<u64>, name: &str) {
        let Some(run) = run else { return };
        let roles = roles_of_sessions(self.service.evb.pid());
        let Some(&pid) = roles.iter().find_map(|roles| roles.get(name)) else { return };
        let pid = Pid::from_raw(pid as i32).expect("a process has a number");
        self.disturbed.insert(run);
        let nothing = |before: Rlimit| Rlimit { current: Some(0), ..before };
        let Ok(before) = prlimit(Some(pid), Resource::Fsize, nothing(getrlimit(Resource::Fsize))) else { return };
        let end = Instant::now() + Duration::from_secs(2);
        while Self::run(&self.status()) == Some(run) && Instant::now() < end {
            thread::sleep(Duration::from_millis(50));
        }
        // The process may have ended.
        let _error = prlimit(Some(pid), Resource::Fsize, before);
    }

    /// Kills a node, and sees that the service knows which one.
    fn kill(&mut self, status: &Value, name: &str) {
        let Some(run) = Self::run(status) else { return };
        let roles = roles_of_sessions(self.service.evb.pid());
        let Some(&pid) = roles.iter().find_map(|roles| roles.get(name)) else { return };
        Group::signal_one(pid, Signal::KILL);
        self.disturbed.insert(run);
        let found = wait_until(&format!("the death of {name} in run {run}"), || {
            let status = self.status();
            let nodes = status["nodes"].as_array()?;
            let is_lost = nodes.iter().any(|node| node["name"] == name && node["state"] == "lost");
            let is_over = Self::run(&status) != Some(run);
            (is_lost || is_over).then_some(is_lost)
        });
        if found {
            self.killed.entry(run).or_default().insert(name.to_owned());
        }
    }

    /// Stops a node for less than its peers wait, as a machine does that swaps.
    fn stand_still(&mut self, status: &Value, name: &str) {
        let roles = roles_of_sessions(self.service.evb.pid());
        let Some(&pid) = roles.iter().find_map(|roles| roles.get(name)) else { return };
        self.disturbed.extend(Self::run(status));
        Group::signal_one(pid, Signal::STOP);
        thread::sleep(Duration::from_millis(500));
        Group::signal_one(pid, Signal::CONT);
    }

    /// Kills the service, and starts another.
    fn kill_service(&mut self, run: Option<u64>) {
        self.check_size();
        self.disturbed.extend(run);
        let nodes = belongings(self.service.evb.pid()).0;
        self.service.evb.signal(Signal::KILL);
        for &node in nodes.iter().filter(|&&pid| pid != self.service.evb.pid()) {
            wait_until("the end of a node without run control", || {
                (!fs::exists(format!("/proc/{node}/cwd")).unwrap_or(false)).then_some(())
            });
        }
        self.service = Service::start(&self.lab, &["--processes"]);
        (self.since, self.warm) = (Instant::now(), None);
    }

    /// The service itself does not grow.
    fn check_size(&mut self) {
        if self.since.elapsed() < WARM {
            return;
        }
        let pid = self.service.evb.pid();
        let files = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        let now = (own_memory(pid), files);
        let warm = *self.warm.get_or_insert(now);
        assert!(
            now.0 <= warm.0 + GROWTH.0 && now.1 <= warm.1 + GROWTH.1,
            "grown from {warm:?} to {now:?} KiB and files"
        );
    }

    /// Starts a run where there is none, and checks those that have ended.
    fn go_on(&mut self) {
        let status = self.status();
        if ["initial", "configured", "stopped", "failed"].map(Value::from).contains(&status["state"]) {
            self.check_runs();
            self.service.command("start");
        }
    }

    /// What the registry says is what happened, and what is in the files.
    fn check_runs(&mut self) {
        let runs = self.service.get("/api/runs?limit=1000");
        for row in runs["runs"].as_array().expect("a list") {
            let number = row["number"].as_u64().expect("a number");
            if row["state"] != "running" && self.checked.insert(number) {
                self.check_run(number, &self.service.get(&format!("/api/runs/{number}")));
            }
        }
    }

    fn check_run(&self, number: u64, run: &Value) {
        let marker = format!("-{number}-b");
        let mut files = stored_files(&self.lab.path("evb-data"));
        files.retain(|file| file.to_string_lossy().contains(&marker));
        let found = verify(&files).expect("the files can be read");
        let is_disturbed = self.disturbed.contains(&number) || run["state"] == "interrupted";
        // What a death leaves.
        let is_harmless = |kind| {
            use FindingKind::{Duplicate, Start, Tail, Unclosed};
            matches!(kind, Start | Tail | Unclosed | Duplicate)
        };
        assert_eq!(found.damaged, 0, "run {number}: {:?}", found.findings);
        for finding in &found.findings {
            assert!(is_disturbed && is_harmless(finding.kind), "run {number}: {finding:?}");
        }
        match run["state"].as_str().expect("a state") {
            "interrupted" => assert!(run["record"].is_null(), "{run}"),
            "stopped" | "failed" => {
                let record: Record = serde_json::from_value(run["record"].clone()).expect("a record");
                check_accounts(&record);
                let known: BTreeSet<_> = record.lost_nodes.iter().cloned().collect();
                let killed = self.killed.get(&number).cloned().unwrap_or_default();
                assert!(known.is_superset(&killed), "run {number}: {known:?} lost, {killed:?} killed");
                let stored: u64 = record.builders.iter().map(|builder| builder.stored).sum();
                // A run may be stopped before its first event.
                let is_good = record.good || record.events.triggered == 0;
                assert!(is_disturbed || (stored, is_good) == (found.events, true), "run {number}: {record:#?}");
            }
            other => panic!("run {number} is {other}"),
        }
        files.iter().for_each(|file| fs::remove_file(file).expect("the file can go"));
    }

    fn end(mut self) -> usize {
        if Self::run(&self.status()).is_some() {
            self.service.command("stop");
        }
        self.service.wait("the end of the last run", |status| {
            ["stopped", "failed", "initial"].map(Value::from).contains(&status["state"])
        });
        self.check_size();
        self.check_runs();
        let runs = self.checked.len();
        assert!(self.disturbed.is_subset(&self.checked), "{:?} of {:?}", self.disturbed, self.checked);
        let Self { service, .. } = self;
        service.command("quit");
        let (pid, outcome) = (service.evb.pid(), service.evb.wait());
        assert_eq!(outcome.code(), Some(0), "{outcome}");
        assert!(belongings(pid).0.len() <= 1, "nodes are left");
        runs
    }
}

#[test]
fn a_night_leaves_true_files_and_a_true_registry() {
    let (seconds, seed) = (number("EVB_NIGHT_SECONDS", 30), number("EVB_NIGHT_SEED", 1));
    println!("EVB_NIGHT_SEED={seed} EVB_NIGHT_SECONDS={seconds}");
    let (mut random, end) = (Numbers(seed), Instant::now() + Duration::from_secs(seconds));
    let mut night = Night::begin();
    while Instant::now() < end {
        night.go_on();
        thread::sleep(Duration::from_millis(200 + random.below(1500) as u64));
        let (action, draw) = (random.below(17), random.below(42));
        night.act(action, draw);
        night.check_size();
    }
    println!("{} runs", night.end());
}
