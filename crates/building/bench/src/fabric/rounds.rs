//! The rounds of a tournament in which every node meets every other once.

use super::Pair;
use evb_core::NodeId;

/// All pairs of `nodes` nodes, in rounds in which each node has one partner at most: `n - 1` rounds, or `n` if `n` is odd
/// and one node rests in each. One node stays, the others move on around a circle.
pub(super) fn rounds(nodes: u16) -> Vec<Vec<Pair>> {
    let places = nodes.next_multiple_of(2);
    let circle = places - 1;
    let at = |place: u16, round: u16| if place == circle { circle } else { (place + round) % circle };
    let pair = |first: u16, second: u16| [first.min(second), first.max(second)].map(NodeId);
    let round = |round| {
        let pairs = (0..places / 2).map(|place| pair(at(place, round), at(circle - 1 - place, round)));
        // The place in the middle of the circle meets the node that stays.
        let met = pairs.map(|[first, second]| if first == second { pair(first.0, circle) } else { [first, second] });
        met.filter(|[_, second]| second.0 < nodes).collect()
    };
    (0..circle).map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_pair_meets_once_and_no_node_twice_in_a_round() {
        for nodes in 2..=17 {
            let rounds = rounds(nodes);
            assert_eq!(rounds.len(), usize::from(nodes.next_multiple_of(2) - 1), "{nodes}");
            let mut met = BTreeSet::new();
            for round in &rounds {
                let busy: BTreeSet<_> = round.iter().flatten().collect();
                assert_eq!(busy.len(), 2 * round.len(), "{nodes}: {round:?}");
                assert!(round.iter().all(|pair| pair[0] < pair[1] && met.insert(*pair)), "{nodes}: {round:?}");
            }
            assert_eq!(met.len(), usize::from(nodes) * usize::from(nodes - 1) / 2, "{nodes}");
        }
    }
}
