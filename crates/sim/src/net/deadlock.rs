//! Finds packets that wait for each other in a circle.

use super::{Discipline, Net, UNKNOWN};
use crate::packet::{NO_LANE, PacketId};

impl Net {
    /// The links of a circle in which each waits for the next one, in that order, by name, and since when they do.
    ///
    /// A link waits for another one when the packet whose head came over the first asks for the second, or when a worm
    /// stands on both. Only requests that nothing that is planned will end count.
    pub(crate) fn deadlock(&mut self, now: u64) -> Option<(Vec<String>, u64)> {
        let mut waits_for = vec![Vec::new(); self.links.len()];
        for link in 0..self.links.len() as u32 {
            for place in 0..self.links[link as usize].port.waiting.len() {
                let id = self.port(link).waiting[place].id;
                let lane = self.packets[id].lane;
                if lane == NO_LANE || !self.is_stuck(now, link, id) {
                    continue;
                }
                waits_for[self.link_of(lane) as usize].push(link);
            }
        }
        self.add_bodies(&mut waits_for);
        let circle = circle(&waits_for)?;
        let names = circle.iter().map(|&link| self.network.links[link as usize].name.clone()).collect();
        Some((names, self.closed_at(&circle)))
    }

    /// When the last packet of a circle began to wait.
    fn closed_at(&self, circle: &[u32]) -> u64 {
        let next = circle.iter().cycle().skip(1);
        let waiting = circle.iter().zip(next).flat_map(|(&from, &link)| {
            let all = self.port(link).waiting.iter();
            all.filter(move |one| one.lane != NO_LANE && self.link_of(one.lane) == from)
        });
        waiting.map(|one| self.packets[one.id].since).max().unwrap_or(0)
    }

    /// The links that a worm stands on, and the one whose buffer its tail is in, wait for those nearer to its head.
    fn add_bodies(&self, waits_for: &mut [Vec<u32>]) {
        if !matches!(self.discipline, Discipline::Worm { .. }) {
            return;
        }
        for id in self.packets.ids() {
            let tail = usize::from(self.packets[id].left).saturating_sub(1);
            for pair in self.packets.hops(id)[tail..].windows(2) {
                waits_for[pair[0].link as usize].push(pair[1].link);
            }
        }
    }

    fn is_stuck(&mut self, now: u64, link: u32, id: PacketId) -> bool {
        let free_at = self.links[link as usize].port.free_at;
        if free_at > now { free_at == UNKNOWN } else { self.room_at(now, link, id) == UNKNOWN }
    }
}

/// A circle in a graph, found depth first.
fn circle(edges: &[Vec<u32>]) -> Option<Vec<u32>> {
    const NEW: u8 = 0;
    const ON_PATH: u8 = 1;
    const DONE: u8 = 2;
    let mut state = vec![NEW; edges.len()];
    for start in 0..edges.len() as u32 {
        // The path from the start, and which edge of each node is next.
        let mut path = vec![(start, 0)];
        if state[start as usize] != NEW {
            continue;
        }
        state[start as usize] = ON_PATH;
        while let Some((node, next)) = path.last_mut() {
            let Some(&to) = edges[*node as usize].get(*next) else {
                state[*node as usize] = DONE;
                path.pop();
                continue;
            };
            *next += 1;
            match state[to as usize] {
                NEW => {
                    state[to as usize] = ON_PATH;
                    path.push((to, 0));
                }
                ON_PATH => {
                    let nodes = path.iter().map(|&(node, _)| node);
                    return Some(nodes.skip_while(|&node| node != to).collect());
                }
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::circle;

    #[test]
    fn finds_a_circle_and_nothing_but_a_circle() {
        assert_eq!(circle(&[vec![1, 2], vec![2], vec![]]), None);
        assert_eq!(circle(&[vec![1], vec![2, 3], vec![], vec![1]]), Some(vec![1, 3]));
        assert_eq!(circle(&[vec![0]]), Some(vec![0]));
    }
}
