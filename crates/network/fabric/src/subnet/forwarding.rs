//! The forwarding tables of the switches, checked along all routes between hosts.

use super::{
    FarEnd, Subnet, SubnetError, SubnetFile, SubnetHost, SubnetProblem,
    tables::{Table, fail},
};
use crate::SubnetSwitch;
use std::collections::HashMap;

/// A switch and its table.
struct Hop<'s> {
    name: &'s str,
    table: &'s Table,
    /// For each port its place among the outputs of the switch, and what is at its other end.
    outputs: HashMap<u8, (u8, FarEnd)>,
}

/// How far the route from a switch to one destination is known.
#[derive(Clone, Copy, PartialEq)]
enum Known {
    No,
    /// It is a part of the route that is being followed.
    OnRoute,
    Good,
}

impl Subnet<'_> {
    /// For each switch the output to each port of a host, as in [`SubnetSwitch::table`].
    pub(super) fn forwarding(&self, tables: &HashMap<u64, Table>) -> Result<Vec<Vec<u8>>, SubnetError> {
        let hops = self.hops(tables)?;
        let mut forwarding = vec![vec![SubnetSwitch::NO_OUTPUT; self.hosts.len()]; hops.len()];
        let starts = self.starts();
        for host in 0..self.hosts.len() {
            let mut known = vec![Known::No; hops.len()];
            for &start in &starts {
                self.follow(&hops, host, start, &mut known, &mut forwarding)?;
            }
        }
        Ok(forwarding)
    }

    /// The switches with their tables.
    fn hops<'s>(&'s self, tables: &'s HashMap<u64, Table>) -> Result<Vec<Hop<'s>>, SubnetError> {
        let guids: Vec<_> = self.switches.iter().map(|node| guid(node.id)).collect();
        let unknown = tables.iter().filter(|(guid, _)| !guids.contains(&Some(**guid)));
        if let Some((&guid, table)) = unknown.min_by_key(|(_, table)| table.line) {
            return Err(fail(table.line, SubnetProblem::UnknownSwitch { guid }));
        }
        let hop = |(place, guid): (usize, &Option<u64>)| {
            let name = self.switches[place].name;
            let missing = || SubnetError {
                file: SubnetFile::Tables,
                line: None,
                problem: SubnetProblem::NoTable { switch: name.to_owned() },
            };
            let table = guid.and_then(|guid| tables.get(&guid)).ok_or_else(missing)?;
            let outputs = self.outputs(place).enumerate().map(|(output, (port, end))| (port, (output as u8, end)));
            Ok(Hop { name, table, outputs: outputs.collect() })
        };
        guids.iter().enumerate().map(hop).collect()
    }

    /// The switches that hosts send to.
    fn starts(&self) -> Vec<usize> {
        let has_host = |&switch: &usize| self.outputs(switch).any(|(_, end)| matches!(end, FarEnd::Host(_)));
        (0..self.switches.len()).filter(has_host).collect()
    }

    /// Follows the route from a switch to a host, up to a switch from which it is known.
    fn follow(
        &self,
        hops: &[Hop<'_>],
        host: usize,
        start: usize,
        known: &mut [Known],
        forwarding: &mut [Vec<u8>],
    ) -> Result<(), SubnetError> {
        let (mut route, mut here) = (Vec::new(), start);
        while known[here] == Known::No {
            known[here] = Known::OnRoute;
            route.push(here);
            let (output, end) = self.step(&hops[here], host)?;
            forwarding[here][host] = output;
            match end {
                FarEnd::Switch(next) => here = next,
                FarEnd::Host(_) => break,
            }
            if known[here] == Known::OnRoute {
                return Err(self.circle(hops, host, &route, here));
            }
        }
        route.iter().for_each(|&switch| known[switch] = Known::Good);
        Ok(())
    }

    /// The output of a switch towards a host, and what is at its other end.
    fn step(&self, hop: &Hop<'_>, host: usize) -> Result<(u8, FarEnd), SubnetError> {
        let (to, switch) = (self.host(host), hop.name.to_owned());
        let Some(&(port, line)) = hop.table.entries.get(&to.lid) else {
            return Err(fail(hop.table.line, SubnetProblem::NoEntry { switch, to }));
        };
        match hop.outputs.get(&port) {
            None => Err(fail(line, SubnetProblem::NoCable { switch, port, to })),
            Some((_, FarEnd::Host(other))) if *other != host => {
                Err(fail(line, SubnetProblem::OtherHost { switch, port, to }))
            }
            Some(&step) => Ok(step),
        }
    }

    /// The error about a route that comes back to a switch.
    fn circle(&self, hops: &[Hop<'_>], host: usize, route: &[usize], back: usize) -> SubnetError {
        let begin = route.iter().position(|&switch| switch == back).unwrap_or(0);
        let switches = route[begin..].iter().chain([&back]).map(|&switch| hops[switch].name.to_owned()).collect();
        let to = self.host(host);
        let line = hops[back].table.entries.get(&to.lid).map_or(hops[back].table.line, |&(_, line)| line);
        fail(line, SubnetProblem::Circle { to, switches })
    }

    fn host(&self, host: usize) -> SubnetHost {
        let (node, port) = self.hosts[host];
        SubnetHost { lid: node.ports[&port].lid, name: node.name.to_owned() }
    }
}

/// The GUID in the id of a node, `S-0002c90000000100`.
fn guid(id: &str) -> Option<u64> {
    u64::from_str_radix(id.split_once('-')?.1, 16).ok()
}
