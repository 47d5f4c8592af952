//! Disturbances of a deployment: links are cut and shaped, nodes killed, and commands sent, in an order drawn from a seed.

use super::{NODES, Site, say};
use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng as _, SeedableRng as _},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
    thread,
    time::{Duration, Instant},
};
use xtask::{
    api::Api,
    namespaces::{Namespace, ip},
};

/// Runs a deployment in network namespaces.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Options {
    /// Seconds of disturbances: cut links, killed nodes and commands
    #[arg(long, default_value_t = Self::SHORT.seconds)]
    seconds: u64,
    /// Seed of their order
    #[arg(long, default_value_t = Self::SHORT.seed)]
    seed: u64,
}

impl Options {
    /// The options of a test.
    pub(crate) const SHORT: Self = Self { seconds: 20, seed: 1 };
}

/// A disturbance or a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Cut,
    Shape,
    Kill,
    Pause,
    Resume,
    Split,
    Stop,
}

/// The acts, each as often as it is drawn.
const ACTS: [Act; 11] = [
    Act::Cut,
    Act::Cut,
    Act::Cut,
    Act::Shape,
    Act::Shape,
    Act::Kill,
    Act::Pause,
    Act::Resume,
    Act::Resume,
    Act::Split,
    Act::Stop,
];

/// A deployment and its disturbances so far.
pub(super) struct Disturbances<'a> {
    api: &'a Api<'a>,
    machines: &'a [Namespace],
    random: Xoshiro256PlusPlus,
    /// Runs that lost nodes or the links to them.
    disturbed: BTreeSet<u64>,
    done: BTreeMap<Act, u32>,
}

impl<'a> Disturbances<'a> {
    /// Disturbs the deployment for some time, runs it once without disturbances, and checks the records of all runs.
    pub(super) fn run(
        options: Options,
        api: &'a Api<'a>,
        site: &Site,
        machines: &'a [Namespace],
    ) -> Result<(), String> {
        let Options { seconds, seed } = options;
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut all = Self { api, machines, random, disturbed: BTreeSet::new(), done: BTreeMap::new() };
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            all.turn().map_err(|error| format!("{error} (--seconds {seconds} --seed {seed})"))?;
        }
        let last = all.last_run()?;
        let runs = all.check_runs(last).map_err(|error| format!("{error} (--seconds {seconds} --seed {seed})"))?;
        site.check_files(&(1..=last).filter(|run| !all.disturbed.contains(run)).collect::<Vec<_>>())?;
        let done: Vec<_> = all.done.iter().map(|(act, count)| format!("{act:?} {count}").to_lowercase()).collect();
        say(&format!(
            "{seconds} s of disturbances with seed {seed} ({}): the records of all {runs} runs are right",
            done.join(", ")
        ));
        Ok(())
    }

    fn turn(&mut self) -> Result<(), String> {
        let act = ACTS[self.draw(ACTS.len())];
        // Not machine 0, on which run control is.
        let machine = &self.machines[1 + self.draw(self.machines.len() - 1)];
        let span = Duration::from_millis(300 + self.draw(3500) as u64);
        self.begin_a_run()?;
        match act {
            Act::Cut => self.disturb(|_| {
                ip(&format!("link set {} down", machine.name))?;
                thread::sleep(span);
                ip(&format!("link set {} up", machine.name))
            })?,
            Act::Shape => {
                machine.call("tc qdisc add dev e0 root tbf rate 20mbit burst 32kb latency 200ms")?;
                thread::sleep(span);
                machine.call("tc qdisc del dev e0 root")?;
            }
            Act::Kill => self.disturb(|_| kill_nodes(machine))?,
            // Refused if it has no meaning in the current state.
            Act::Pause => drop(self.api.command("pause")),
            Act::Resume => drop(self.api.command("resume")),
            Act::Split => drop(self.api.command("split")),
            Act::Stop => drop(self.api.command("stop")),
        }
        *self.done.entry(act).or_default() += 1;
        thread::sleep(Duration::from_millis(500 + self.draw(1000) as u64));
        Ok(())
    }

    /// Does something after which the current run, and one that begins meanwhile, may be incomplete.
    fn disturb(&mut self, act: impl FnOnce(&mut Self) -> Result<(), String>) -> Result<(), String> {
        let before = self.number()?;
        act(self)?;
        // Silence is detected later, and a node that was away takes part again in the next run.
        thread::sleep(Duration::from_secs(3));
        let after = self.number()?.max(before);
        self.disturbed.extend(before..=after);
        Ok(())
    }

    fn begin_a_run(&mut self) -> Result<(), String> {
        let status = self.api.get("/api/status")?;
        if ["initial", "configured", "stopped", "failed"].iter().any(|state| status["state"] == *state) {
            // Refused while nodes join: the next turn tries again.
            let _refused = self.api.command("start");
        }
        Ok(())
    }

    /// The number of the latest run.
    fn number(&self) -> Result<u64, String> {
        let runs = self.api.get("/api/runs")?;
        Ok(runs["runs"]
            .as_array()
            .and_then(|runs| runs.iter().filter_map(|run| run["number"].as_u64()).max())
            .unwrap_or(0))
    }

    /// Ends the current run and makes one with all nodes. Returns its number.
    fn last_run(&mut self) -> Result<u64, String> {
        let _refused_without_a_run = self.api.command("stop");
        self.api.wait("the end of the disturbances", |status| {
            ["stopped", "failed", "initial", "configured"].iter().any(|state| status["state"] == *state)
        })?;
        self.api.command_again("start")?;
        self.api.wait("all nodes after the disturbances", |status| {
            status["state"] == "running" && NODES.iter().all(|(name, _)| super::node(status, name) == "up")
        })?;
        thread::sleep(Duration::from_secs(1));
        self.api.command("stop")?;
        self.api.wait("the end of the last run", |status| status["state"] == "stopped")?;
        self.number()
    }

    /// Checks that every run has an end and consistent accounts, and that undisturbed ones are good. Returns their number.
    fn check_runs(&mut self, last: u64) -> Result<usize, String> {
        let runs = self.api.get("/api/runs")?;
        let mut runs = runs["runs"].as_array().cloned().unwrap_or_default();
        runs.sort_by_key(|run| run["number"].as_u64());
        for run in &runs {
            let number = run["number"].as_u64().ok_or_else(|| format!("a run has no number: {run}"))?;
            let full = self.api.get(&format!("/api/runs/{number}"))?;
            let events = &full["record"]["events"];
            let count = |key: &str| events[key].as_u64().unwrap_or(0);
            let ended = count("built") + count("incomplete") + count("rejected") + count("lost");
            if events.is_null() || count("triggered") != ended {
                return Err(format!("the accounts of run {number} of {last} do not hold: {events}"));
            }
            // A run that follows a disturbed one without a stop has only the remaining nodes.
            let continues = self.disturbed.contains(&(number.saturating_sub(1)))
                && full["record"]["findings"].to_string().contains("was lost in an earlier run");
            if continues {
                self.disturbed.insert(number);
            }
            // Run 1 lost a link in the first part.
            if number > 1 && !self.disturbed.contains(&number) && run["good"] != true {
                return Err(format!(
                    "run {number} was not disturbed, and it is not good: {run}: {}",
                    full["record"]["findings"]
                ));
            }
        }
        Ok(runs.len())
    }

    fn draw(&mut self, below: usize) -> usize {
        (self.random.next_u64() % below as u64) as usize
    }
}

/// Kills the nodes of a machine and no other processes.
fn kill_nodes(machine: &Namespace) -> Result<(), String> {
    let pids = Command::new("ip").args(["netns", "pids", &machine.name]).output().map_err(|error| error.to_string())?;
    for pid in String::from_utf8_lossy(&pids.stdout).split_whitespace() {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let is_node = line.split(|&byte| byte == 0).nth(1).is_some_and(|argument| argument == b"node");
        if is_node {
            let _gone = Command::new("kill").args(["-KILL", pid]).status();
        }
    }
    Ok(())
}
