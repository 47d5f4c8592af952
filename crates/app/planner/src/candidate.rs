//! Networks made of parts.

use crate::{
    base::Changes,
    demand::Demand,
    parts::{Cable, Interface, Parts, Switch},
    requirements::Site,
};
use evb_core::{Bandwidth, ByteCount};
use evb_experiment::Plan;
use evb_fabric::Flow;
use evb_record::{BillLine, Bounds, PlanCandidate, PlanLevel};
use toml::{Table, Value};

/// A level of switches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level<'a> {
    pub(crate) part: &'a Switch,
    /// Number of switches.
    pub(crate) switches: u32,
    /// Switches of the level below that each is joined to; hosts at the first level.
    pub(crate) down: u32,
    /// Switches of the level above that each is joined to; 0 at the highest level.
    pub(crate) up: u32,
    /// Parallel cables to each of them.
    pub(crate) links: u32,
    /// Rate of these cables.
    pub(crate) rate: Bandwidth,
    /// Hosts below one switch.
    pub(crate) hosts: u32,
}

impl Level<'_> {
    /// Cables of a switch to the level above.
    pub(crate) fn uplinks(&self) -> u32 {
        self.up * self.links
    }

    /// Bytes per second of these cables.
    pub(crate) fn up_rate(&self) -> f64 {
        f64::from(self.uplinks()) * self.rate.as_bytes_per_second()
    }
}

/// A network made of parts: a tree of one to three levels.
#[derive(Clone, Debug)]
pub(crate) struct Candidate<'a> {
    /// The interface of all hosts whose cable the experiment does not fix; `None` if it fixes all.
    pub(crate) interface: Option<&'a Interface>,
    pub(crate) host_cable: &'a Cable,
    pub(crate) switch_cable: Option<&'a Cable>,
    pub(crate) levels: Vec<Level<'a>>,
    /// Networks with the same parts, of which one with more uplinks is better.
    pub(crate) family: usize,
    pub(crate) site: Site,
}

/// The rate of the cables of hosts: that of the interface, or the fastest that the experiment fixes.
pub(crate) fn host_rate(interface: Option<&Interface>, demand: &Demand) -> Bandwidth {
    let fixed = demand.fixed.iter().flatten().max().copied().unwrap_or_default();
    interface.map_or(fixed, |interface| interface.rate)
}

impl Candidate<'_> {
    /// The keys of the experiment that describe the network.
    pub(crate) fn changes(&self, demand: &Demand, plan: &Plan) -> Changes {
        let rate = host_rate(self.interface, demand);
        let mut changes = vec![
            ("network.topology".to_owned(), self.topology()),
            ("network.link.rate".to_owned(), rate.to_string().into()),
            ("network.link.delay".to_owned(), self.host_cable.time(self.site.host_cable_m).to_string().into()),
        ];
        let parts = || self.levels.iter().map(|level| level.part);
        if let Some(delay) = parts().filter_map(|part| part.delay).max() {
            changes.push(("network.switch.delay".to_owned(), delay.to_string().into()));
        }
        let smallest =
            |of: fn(&Switch) -> Option<ByteCount>| parts().filter_map(of).min().map(|bytes| bytes.to_string());
        let buffer = match (&plan.network.config.flow, &plan.network.config.switch.memory) {
            (Flow::StoreAndForward { .. }, Some(_)) => {
                Some(("network.switch.memory.size", smallest(|part| part.buffer)))
            }
            (Flow::StoreAndForward { .. }, None) => Some(("network.flow.queue", smallest(Switch::buffer_of_port))),
            (Flow::CutThrough { .. }, _) => Some(("network.flow.buffer", smallest(Switch::buffer_of_port))),
            (Flow::Wormhole { .. }, _) => None,
        };
        if let Some((key, Some(size))) = buffer {
            changes.push((key.to_owned(), size.into()));
        }
        changes
    }

    /// Bytes of the switch with the least memory; `None` if the parts have none.
    pub(crate) fn least_memory(&self) -> Option<ByteCount> {
        self.levels.iter().filter_map(|level| level.part.buffer).min()
    }

    fn topology(&self) -> Value {
        let mut topology = Table::new();
        let mut set = |key: &str, value: Value| drop(topology.insert(key.to_owned(), value));
        if let [only] = self.levels.as_slice() {
            set("type", "crossbar".into());
            set("ports", i64::from(only.hosts).into());
            return topology.into();
        }
        let delay = self.switch_cable.map(|cable| cable.time(self.site.switch_cable_m).to_string());
        let level = |level: &Level<'_>| {
            let mut table = Table::new();
            table.insert("down".to_owned(), i64::from(level.down).into());
            if level.up > 0 {
                table.insert("up".to_owned(), i64::from(level.up).into());
                table.insert("links".to_owned(), i64::from(level.links).into());
                table.insert("rate".to_owned(), level.rate.to_string().into());
                delay.iter().for_each(|delay| drop(table.insert("delay".to_owned(), delay.clone().into())));
            }
            Value::from(table)
        };
        set("type", "fat-tree".into());
        set("levels", self.levels.iter().map(level).collect::<Vec<_>>().into());
        topology.into()
    }

    /// The hosts below the first switch of a level: those of its part of the tree that are in use.
    pub(crate) fn hosts_below(&self, level: usize, index: u32) -> std::ops::Range<usize> {
        let hosts = self.levels[level].hosts as usize;
        index as usize * hosts..(index as usize + 1) * hosts
    }

    /// Number of parts of the tree below one or several switches of a level.
    pub(crate) fn subtrees(&self, level: usize) -> u32 {
        self.levels[level + 1..].iter().map(|above| above.down).product()
    }

    /// Switches of a level on top of the same part of the tree.
    pub(crate) fn width(&self, level: usize) -> u32 {
        self.levels[..level].iter().map(|below| below.up).product()
    }

    /// Cables between switches, in all.
    fn switch_cables(&self) -> u64 {
        self.levels.iter().map(|level| u64::from(level.switches) * u64::from(level.uplinks())).sum()
    }

    /// The parts and their number.
    pub(crate) fn bill(&self, demand: &Demand) -> Vec<BillLine> {
        let mut bill: Vec<BillLine> = Vec::new();
        for level in &self.levels {
            let part = level.part;
            add(&mut bill, "switch", &part.name, level.switches.into(), part.cost.into(), part.power_w, &part.source);
        }
        let mut cable = |part: &Cable, count| {
            add(&mut bill, "cable", &part.name, count, part.cost.into(), part.power_w, &part.source);
        };
        cable(self.host_cable, demand.hosts().into());
        self.switch_cable.into_iter().for_each(|part| cable(part, self.switch_cables()));
        if let Some(part) = self.interface {
            let bought = demand.fixed.iter().filter(|rate| rate.is_none()).count() as u64;
            add(&mut bill, "interface", &part.name, bought, part.cost.into(), part.power_w, &part.source);
        }
        bill
    }

    /// What records say of it.
    pub(crate) fn record(&self, number: u32, demand: &Demand) -> PlanCandidate {
        let bill = self.bill(demand);
        let sum = |of: fn(&BillLine) -> f64| bill.iter().map(|line| line.count as f64 * of(line)).sum();
        PlanCandidate {
            number,
            network: self.words(),
            host_bits_per_s: host_rate(self.interface, demand).0,
            levels: self.levels.iter().map(level_record).collect(),
            cost: Bounds { low: sum(|line| line.each.low), high: sum(|line| line.each.high) },
            power_w: sum(|line| line.power_w),
            bill,
        }
    }

    fn words(&self) -> String {
        match self.levels.as_slice() {
            [only] => format!("1 {}", only.part.name),
            levels => {
                let level = |level: &Level<'_>| match level.up {
                    0 => format!("{} {}", level.switches, level.part.name),
                    _ => format!("{} {} ({} up)", level.switches, level.part.name, level.uplinks()),
                };
                levels.iter().map(level).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

fn level_record(level: &Level<'_>) -> PlanLevel {
    PlanLevel {
        switch: level.part.name.clone(),
        switches: level.switches,
        down: level.down,
        up: level.uplinks(),
        up_bits_per_s: level.rate.0,
    }
}

/// Adds parts to a bill. Equal ones have one line.
fn add(bill: &mut Vec<BillLine>, kind: &str, part: &str, count: u64, each: Bounds, power_w: f64, source: &str) {
    if count == 0 {
        return;
    }
    if let Some(line) = bill.iter_mut().find(|line| line.kind == kind && line.part == part) {
        line.count += count;
        return;
    }
    let (kind, part, source) = (kind.to_owned(), part.to_owned(), source.to_owned());
    bill.push(BillLine { kind, part, count, each, power_w, source });
}

/// The parts of a plan, and what networks of them must join.
pub(crate) struct Assembly<'a, 'd> {
    pub(crate) parts: &'a Parts,
    pub(crate) demand: &'d Demand,
    pub(crate) levels: &'d [u8],
    pub(crate) oversubscription: f64,
    pub(crate) least_spines: u32,
    pub(crate) site: Site,
}

impl<'a> Assembly<'a, '_> {
    /// All networks whose ports suffice for the hosts.
    pub(crate) fn candidates(&self) -> Vec<Candidate<'a>> {
        let is_fixed = self.demand.fixed.iter().all(Option::is_some);
        let interfaces: Vec<Option<&Interface>> =
            if is_fixed { vec![None] } else { self.parts.interface.iter().map(Some).collect() };
        let mut all = Vec::new();
        for interface in interfaces {
            let fastest = self.demand.fixed.iter().flatten().max().copied().unwrap_or_default();
            let rate = host_rate(interface, self.demand).max(fastest);
            let Some(host_cable) = self.parts.cable(rate, self.site.host_cable_m) else { continue };
            let hosts = Hosts { interface, rate, host_cable };
            for leaf in &self.parts.switch {
                if self.levels.contains(&1) {
                    all.extend(
                        self.one_level(&hosts, leaf).map(|found| family(&all, vec![found])).into_iter().flatten(),
                    );
                }
                for above in &self.parts.switch {
                    let two = self.two_levels(&hosts, leaf, above);
                    // Where two levels reach all hosts, a third one only costs more.
                    let tapers: &[u32] = if two.is_empty() && self.levels.contains(&3) { &[1, 2, 3] } else { &[] };
                    if self.levels.contains(&2) {
                        all.extend(family(&all, two));
                    }
                    for &taper in tapers {
                        all.extend(family(&all, self.three_levels(&hosts, leaf, above, taper)));
                    }
                }
            }
        }
        all
    }

    fn one_level(&self, hosts: &Hosts<'a>, part: &'a Switch) -> Option<Candidate<'a>> {
        let count = u32::from(self.demand.hosts());
        let only = Level { part, switches: 1, down: count, up: 0, links: 1, rate: Bandwidth(0), hosts: count };
        (part.port_count(hosts.rate) >= count).then(|| self.candidate(hosts, None, vec![only]))
    }

    /// Leaves and spines: for each number of uplinks, the fewest leaves, and the fewest spines that take all uplinks.
    fn two_levels(&self, hosts: &Hosts<'a>, leaf: &'a Switch, spine: &'a Switch) -> Vec<Candidate<'a>> {
        let rate = leaf.fastest().rate.min(spine.fastest().rate);
        let Some(cable) = self.parts.cable(rate, self.site.switch_cable_m) else { return Vec::new() };
        let ports = spine.port_count(rate);
        let network = |uplinks: u32| {
            let (leaves, down) = self.leaves(hosts, leaf, rate, uplinks)?;
            let spines = (self.least_spines..=uplinks)
                .find(|&spines| uplinks.is_multiple_of(spines) && leaves * (uplinks / spines) <= ports)?;
            let links = uplinks / spines;
            let leaf = Level { part: leaf, switches: leaves, down, up: spines, links, rate, hosts: down };
            let top = Level {
                part: spine,
                switches: spines,
                down: leaves,
                up: 0,
                links: 1,
                rate: Bandwidth(0),
                hosts: down * leaves,
            };
            Some(self.candidate(hosts, Some(cable), vec![leaf, top]))
        };
        (1..=u32::from(leaf.fastest().count)).filter_map(network).collect()
    }

    /// Leaves, spines in groups, and cores. Every spine has `taper` times as many ports down as up.
    fn three_levels(&self, hosts: &Hosts<'a>, leaf: &'a Switch, above: &'a Switch, taper: u32) -> Vec<Candidate<'a>> {
        let rate = leaf.fastest().rate.min(above.fastest().rate);
        let Some(cable) = self.parts.cable(rate, self.site.switch_cable_m) else { return Vec::new() };
        let ports = above.port_count(rate);
        let most_leaves = ports * taper / (taper + 1);
        let network = |uplinks: u32| {
            let (leaves, down) = self.leaves(hosts, leaf, rate, uplinks)?;
            let groups = leaves.div_ceil(most_leaves.max(1));
            if groups < 2 || groups > ports || uplinks < self.least_spines {
                return None;
            }
            let in_group = leaves.div_ceil(groups);
            let cores = in_group.div_ceil(taper).max(self.least_spines);
            let leaf =
                Level { part: leaf, switches: in_group * groups, down, up: uplinks, links: 1, rate, hosts: down };
            let spine = Level {
                part: above,
                switches: uplinks * groups,
                down: in_group,
                up: cores,
                links: 1,
                rate,
                hosts: down * in_group,
            };
            let core = Level {
                part: above,
                switches: uplinks * cores,
                down: groups,
                up: 0,
                links: 1,
                rate: Bandwidth(0),
                hosts: down * in_group * groups,
            };
            Some(self.candidate(hosts, Some(cable), vec![leaf, spine, core]))
        };
        (1..=u32::from(leaf.fastest().count)).filter_map(network).collect()
    }

    /// The fewest leaves with this number of uplinks each, and the hosts of one leaf; `None` if the oversubscription is too high.
    fn leaves(&self, hosts: &Hosts<'_>, leaf: &Switch, rate: Bandwidth, uplinks: u32) -> Option<(u32, u32)> {
        let most = leaf.port_count(hosts.rate).checked_sub(uplinks).filter(|&most| most > 0)?;
        let count = u32::from(self.demand.hosts());
        let leaves = count.div_ceil(most);
        let down = count.div_ceil(leaves);
        let ratio = f64::from(down) * hosts.rate.0 as f64 / (f64::from(uplinks) * rate.0 as f64);
        // With more uplinks than its hosts can fill a leaf is no better.
        let is_useful = f64::from(uplinks - 1) * (rate.0 as f64) < f64::from(down) * hosts.rate.0 as f64;
        (leaves > 1 && ratio <= self.oversubscription && is_useful).then_some((leaves, down))
    }

    fn candidate(&self, hosts: &Hosts<'a>, cable: Option<&'a Cable>, levels: Vec<Level<'a>>) -> Candidate<'a> {
        Candidate {
            interface: hosts.interface,
            host_cable: hosts.host_cable,
            switch_cable: cable,
            levels,
            family: 0,
            site: self.site,
        }
    }
}

/// The cables of all hosts.
struct Hosts<'a> {
    interface: Option<&'a Interface>,
    /// Rate of the fastest.
    rate: Bandwidth,
    host_cable: &'a Cable,
}

/// Candidates that become one more family of `all`.
fn family<'a>(all: &[Candidate<'a>], found: Vec<Candidate<'a>>) -> Vec<Candidate<'a>> {
    let family = all.last().map_or(0, |last| last.family + 1);
    found.into_iter().map(|candidate| Candidate { family, ..candidate }).collect()
}

impl From<crate::Range<f64>> for Bounds {
    fn from(range: crate::Range<f64>) -> Self {
        Self { low: range.low, high: range.high }
    }
}
