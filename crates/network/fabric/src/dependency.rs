//! Search for possible deadlocks (Dally and Seitz, Deadlock-Free Message Routing in Multiprocessor Interconnection
//! Networks, IEEE Transactions on Computers C-36, 1987): a cycle in the graph of channels that wait for each other.

use crate::{EndpointId, Flow, LinkId, Network, Routes, WhenFull};

/// A virtual channel of a link: `link * channels + channel`.
type Channel = u32;

impl Network {
    /// Links that can wait for each other in a circle, each for the next and the last for the first; `None` if a
    /// deadlock is impossible. Where full queues drop packets, nothing waits.
    ///
    /// A cycle does not mean that a deadlock will happen, only that nothing rules it out.
    pub fn cyclic_dependency(&self, routes: &Routes) -> Option<Vec<LinkId>> {
        if matches!(self.config.flow, Flow::StoreAndForward { full: WhenFull::Drop, .. }) {
            return None;
        }
        let channels = u32::from(self.config.flow.virtual_channels());
        let cycle = find_cycle(&self.dependencies(routes, channels))?;
        Some(cycle.into_iter().map(|channel| LinkId(channel / channels)).collect())
    }

    /// For each channel the channels that a packet in it can wait for.
    fn dependencies(&self, routes: &Routes, channels: u32) -> Vec<Vec<Channel>> {
        let mut graph = vec![Vec::new(); self.links.len() * channels as usize];
        let mut seen = vec![u32::MAX; graph.len()];
        let mut known = vec![false; self.switches.len() * channels as usize];
        for place in 0..self.endpoints.len() {
            let to = EndpointId(place as u16);
            // The last link waits for nothing, so one port represents all on its switch that begin in the same channel.
            let switch = usize::from(self.switch_out_of(to).0);
            let first = usize::from(self.first_channel(to));
            if !std::mem::replace(&mut known[switch * channels as usize + first], true) {
                self.follow(routes, to, channels, &mut seen, &mut graph);
            }
        }
        graph
    }

    /// Adds the dependencies of packets to one port, on all their routes from all ports of hosts.
    fn follow(&self, routes: &Routes, to: EndpointId, channels: u32, seen: &mut [u32], graph: &mut [Vec<Channel>]) {
        let first = u32::from(self.first_channel(to));
        let mut open: Vec<Channel> = self.endpoints.iter().map(|endpoint| endpoint.up.0 * channels + first).collect();
        let mark = u32::from(to.0);
        while let Some(channel) = open.pop() {
            let link = LinkId(channel / channels);
            let Some(switch) = self.link(link).to.switch() else {
                continue;
            };
            for &next in routes.candidates(switch, to) {
                let after = next.0 * channels + u32::from(self.next_channel(link, (channel % channels) as u8, next));
                let waits_for = &mut graph[channel as usize];
                if !waits_for.contains(&after) {
                    waits_for.push(after);
                }
                if std::mem::replace(&mut seen[after as usize], mark) != mark {
                    open.push(after);
                }
            }
        }
    }
}

/// One cycle of a directed graph, depth first.
fn find_cycle(graph: &[Vec<u32>]) -> Option<Vec<u32>> {
    let mut done = vec![false; graph.len()];
    let mut on_path = vec![false; graph.len()];
    for start in 0..graph.len() as u32 {
        if done[start as usize] {
            continue;
        }
        let mut path = vec![(start, 0)];
        on_path[start as usize] = true;
        while let Some((node, tried)) = path.last_mut() {
            let Some(&next) = graph[*node as usize].get(*tried) else {
                on_path[*node as usize] = false;
                done[*node as usize] = true;
                path.pop();
                continue;
            };
            *tried += 1;
            if on_path[next as usize] {
                let begin = path.iter().position(|&(node, _)| node == next).expect("it is on the path");
                return Some(path[begin..].iter().map(|&(node, _)| node).collect());
            }
            if !done[next as usize] {
                on_path[next as usize] = true;
                path.push((next, 0));
            }
        }
    }
    None
}
