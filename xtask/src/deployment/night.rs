//! Bad days of a deployment: links are cut and shaped, nodes killed, and commands given, in an order drawn from a seed.

use super::{NODES, Site, say};
use crate::{
    api::Api,
    namespaces::{Namespace, ip},
};
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

/// Options of the deployment.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Options {
    /// Seconds of cut links, killed nodes and commands, after the rest
    #[arg(long, default_value_t = Self::SHORT.seconds)]
    seconds: u64,
    /// Seed of their order
    #[arg(long, default_value_t = Self::SHORT.seed)]
    seed: u64,
}

impl Options {
    /// Those of a test.
    pub(crate) const SHORT: Self = Self { seconds: 20, seed: 1 };
}

/// What is done in one turn.
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

/// Acts by how often they are drawn.
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

/// A deployment, and what was done to it.
pub(super) struct Night<'a> {
    api: &'a Api<'a>,
    machines: &'a [Namespace],
    random: Xoshiro256PlusPlus,
    /// Runs of which nodes were taken away, or the links to them.
    disturbed: BTreeSet<u64>,
    done: BTreeMap<Act, u32>,
}

impl<'a> Night<'a> {
    /// Disturbs the deployment for some time, lets it have one good run, and sees that all runs are told as they were.
    pub(super) fn pass(
        options: Options,
        api: &'a Api<'a>,
        site: &Site,
        machines: &'a [Namespace],
    ) -> Result<(), String> {
        let Options { seconds, seed } = options;
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut night = Self { api, machines, random, disturbed: BTreeSet::new(), done: BTreeMap::new() };
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            night.turn().map_err(|error| format!("{error} (--seconds {seconds} --seed {seed})"))?;
        }
        let last = night.dawn()?;
        let runs = night.check_runs(last).map_err(|error| format!("{error} (--seconds {seconds} --seed {seed})"))?;
        site.check_files(&(1..=last).filter(|run| !night.disturbed.contains(run)).collect::<Vec<_>>())?;
        let done: Vec<_> = night.done.iter().map(|(act, count)| format!("{act:?} {count}").to_lowercase()).collect();
        say(&format!(
            "{seconds} s of bad days with seed {seed} ({}): {runs} runs are told as they were",
            done.join(", ")
        ));
        Ok(())
    }

    fn turn(&mut self) -> Result<(), String> {
        let act = ACTS[self.draw(ACTS.len())];
        // Cut off from machine 0 is what a node can be; machine 0 is run control's own.
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
            // What means nothing in this state is refused.
            Act::Pause => drop(self.api.command("pause")),
            Act::Resume => drop(self.api.command("resume")),
            Act::Split => drop(self.api.command("split")),
            Act::Stop => drop(self.api.command("stop")),
        }
        *self.done.entry(act).or_default() += 1;
        thread::sleep(Duration::from_millis(500 + self.draw(1000) as u64));
        Ok(())
    }

    /// Does something that the present run does not survive whole, and neither does one that begins meanwhile.
    fn disturb(&mut self, act: impl FnOnce(&mut Self) -> Result<(), String>) -> Result<(), String> {
        let before = self.number()?;
        act(self)?;
        // Silence is found later, and a node that was away takes part in no run until the next one.
        thread::sleep(Duration::from_secs(3));
        let after = self.number()?.max(before);
        self.disturbed.extend(before..=after);
        Ok(())
    }

    fn begin_a_run(&mut self) -> Result<(), String> {
        let status = self.api.get("/api/status")?;
        if ["initial", "configured", "stopped", "failed"].iter().any(|state| status["state"] == *state) {
            // Nodes may be on their way: the next turn tries again.
            let _refused = self.api.command("start");
        }
        Ok(())
    }

    /// Number of the latest run.
    fn number(&self) -> Result<u64, String> {
        let runs = self.api.get("/api/runs")?;
        Ok(runs["runs"]
            .as_array()
            .and_then(|runs| runs.iter().filter_map(|run| run["number"].as_u64()).max())
            .unwrap_or(0))
    }

    /// Ends what goes on, and has a run with all nodes. Returns its number.
    fn dawn(&mut self) -> Result<u64, String> {
        let _refused_without_a_run = self.api.command("stop");
        self.api.wait("the end of the night", |status| {
            ["stopped", "failed", "initial", "configured"].iter().any(|state| status["state"] == *state)
        })?;
        self.api.command_again("start")?;
        self.api.wait("all nodes after the night", |status| {
            status["state"] == "running" && NODES.iter().all(|(name, _)| super::node(status, name) == "up")
        })?;
        thread::sleep(Duration::from_secs(1));
        self.api.command("stop")?;
        self.api.wait("the end of the last run", |status| status["state"] == "stopped")?;
        self.number()
    }

    /// Every run has an end and accounts that hold; those that nothing was done to are good. Returns their number.
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
                return Err(format!("run {number} of {last} has no account that holds: {events}"));
            }
            // A run that follows a disturbed one without a stop has the nodes that were left.
            let goes_on = self.disturbed.contains(&(number.saturating_sub(1)))
                && full["record"]["findings"].to_string().contains("was lost in an earlier run");
            if goes_on {
                self.disturbed.insert(number);
            }
            // Number 1 was cut in the first part.
            if number > 1 && !self.disturbed.contains(&number) && run["good"] != true {
                return Err(format!(
                    "nothing was done to run {number}, and it is not good: {run}: {}",
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

/// Kills the nodes of a machine, and nothing else there.
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
