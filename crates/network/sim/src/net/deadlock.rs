//! Finds packets that wait for each other in a circle.

use super::{Net, UNKNOWN, links::Links};
use crate::packet::{LaneId, Packets};
use evb_core::Time;
use evb_fabric::LinkId;

/// The links of a circle in which each waits for the next one, in that order, and the time since which all wait.
///
/// A link waits for another one if the packet whose head came over the first requests the second, or if a worm
/// occupies both. Requests that a planned event will end do not count.
pub(super) fn find(net: &mut Net) -> Option<(Vec<LinkId>, Time)> {
    let mut waits_for = stuck_requests(net);
    add_bodies(&net.packets, &mut waits_for);
    let circle: Vec<_> = circle(&waits_for)?.into_iter().map(LinkId).collect();
    let closed_at = closed_at(&net.links, &net.packets, &circle);
    Some((circle, closed_at))
}

/// The links that the packets at the end of each link wait for without end.
fn stuck_requests(net: &mut Net) -> Vec<Vec<u32>> {
    let now = net.queue.now();
    let mut waits_for = vec![Vec::new(); net.links.ids().count()];
    for link in net.links.ids() {
        for place in 0..net.links[link].waiting.len() {
            let one = net.links[link].waiting[place];
            if one.lane == LaneId::NONE {
                continue;
            }
            let free_at = net.links[link].free_at;
            let continues_at = if free_at > now { free_at } else { net.room_at(link, one.id) };
            if continues_at == UNKNOWN {
                waits_for[net.links.link_of(one.lane).0 as usize].push(link.0);
            }
        }
    }
    waits_for
}

/// The links that a worm occupies, and the one whose buffer its tail is in, wait for those nearer to its head.
fn add_bodies(packets: &Packets, waits_for: &mut [Vec<u32>]) {
    for id in packets.ids() {
        let tail = usize::from(packets[id].left).saturating_sub(1);
        for pair in packets.hops(id)[tail..].windows(2) {
            waits_for[pair[0].link.0 as usize].push(pair[1].link.0);
        }
    }
}

/// Time at which the last packet of a circle began to wait.
fn closed_at(links: &Links, packets: &Packets, circle: &[LinkId]) -> Time {
    let next = circle.iter().cycle().skip(1);
    let waiting = circle.iter().zip(next).flat_map(|(&from, &link)| {
        links[link].waiting.iter().filter(move |one| one.lane != LaneId::NONE && links.link_of(one.lane) == from)
    });
    waiting.map(|one| packets[one.id].since).max().unwrap_or(Time::ZERO)
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
    fn only_circles_are_found() {
        assert_eq!(circle(&[vec![1, 2], vec![2], vec![]]), None);
        assert_eq!(circle(&[vec![1], vec![2, 3], vec![], vec![1]]), Some(vec![1, 3]));
        assert_eq!(circle(&[vec![0]]), Some(vec![0]));
    }
}
