//! The matching of the hits of one source to events that are close together.
//!
//! A matching takes hits and events in pairs that are within the window of each other. It keeps the order, and takes
//! none twice. An edge is a pair that could be taken. A matching is thus a chain of edges, each later in hits and in
//! events than the one before it.
//!
//! An edge is decided if every longest chain has it. Let the rank of an edge be the length of the longest chain that ends
//! with it. A longest chain has exactly one edge of each rank, for the n-th of its edges cannot have a rank above n
//! without there being a longer chain. So an edge is decided if and only if it is the only one of its rank among the
//! edges of longest chains. No matchings are counted, and no count overflows.

use alloc::vec::Vec;

/// Most hits of a source that are matched together.
pub(crate) const MOST_HITS: usize = 128;

/// The decision about a hit, or about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Nothing is within the window.
    None,
    /// The index of the event, or of the hit.
    One(usize),
    /// Something is within the window, and not in every largest matching.
    Ambiguous,
}

/// The memory of the matching, which is used again.
#[derive(Default)]
pub(crate) struct Matching {
    /// Length of the longest chain of the first hits and the first events.
    forward: Vec<u16>,
    /// Length of the longest chain of the last hits and the last events.
    backward: Vec<u16>,
    /// The edge of each rank, or that there are several.
    ranks: Vec<Decision>,
    edges: Vec<(usize, usize)>,
    /// The decision about each hit.
    pub(crate) hits: Vec<Decision>,
    /// The decision about each event.
    pub(crate) events: Vec<Decision>,
}

impl Matching {
    /// Matches sorted times of hits to sorted times of events.
    pub(crate) fn decide(&mut self, hits: &[i64], events: &[i64], window: i64) {
        self.find_edges(hits, events, window);
        self.measure_chains(hits.len(), events.len());
        self.rank(events.len() + 1);
        for rank in 1..self.ranks.len() {
            if let Decision::One(edge) = self.ranks[rank] {
                let (hit, event) = self.edges[edge];
                (self.hits[hit], self.events[event]) = (Decision::One(event), Decision::One(hit));
            }
        }
    }

    /// Finds all edges. What has one is ambiguous until it is decided.
    fn find_edges(&mut self, hits: &[i64], events: &[i64], window: i64) {
        self.edges.clear();
        for (decisions, count) in [(&mut self.hits, hits.len()), (&mut self.events, events.len())] {
            decisions.clear();
            decisions.resize(count, Decision::None);
        }
        for (index, &hit) in hits.iter().enumerate() {
            let first = events.partition_point(|&event| event < hit - window);
            let near = events.iter().enumerate().skip(first).take_while(|(_, event)| **event <= hit + window);
            for (event, _) in near {
                self.edges.push((index, event));
                (self.hits[index], self.events[event]) = (Decision::Ambiguous, Decision::Ambiguous);
            }
        }
    }

    fn measure_chains(&mut self, hits: usize, events: usize) {
        let width = events + 1;
        for table in [&mut self.forward, &mut self.backward] {
            table.clear();
            table.resize((hits + 1) * width, 0);
        }
        let mut edges = self.edges.iter().peekable();
        for hit in 0..hits {
            for event in 0..events {
                let at = (hit + 1) * width + event + 1;
                let is_edge = edges.next_if(|edge| **edge == (hit, event)).is_some();
                let (above, left) = (self.forward[at - width], self.forward[at - 1]);
                let longer = if is_edge { self.forward[at - width - 1] + 1 } else { 0 };
                self.forward[at] = above.max(left).max(longer);
            }
        }
        let mut edges = self.edges.iter().rev().peekable();
        for hit in (0..hits).rev() {
            for event in (0..events).rev() {
                let at = hit * width + event;
                let is_edge = edges.next_if(|edge| **edge == (hit, event)).is_some();
                let (below, right) = (self.backward[at + width], self.backward[at + 1]);
                let longer = if is_edge { self.backward[at + width + 1] + 1 } else { 0 };
                self.backward[at] = below.max(right).max(longer);
            }
        }
    }

    /// Sorts the edges of longest chains by rank.
    fn rank(&mut self, width: usize) {
        let longest = self.backward.first().copied().unwrap_or(0);
        self.ranks.clear();
        self.ranks.resize(usize::from(longest) + 1, Decision::None);
        for (index, &(hit, event)) in self.edges.iter().enumerate() {
            let before = self.forward[hit * width + event];
            let after = self.backward[(hit + 1) * width + event + 1];
            if before + 1 + after == longest {
                let of_rank = &mut self.ranks[usize::from(before) + 1];
                *of_rank = if *of_rank == Decision::None { Decision::One(index) } else { Decision::Ambiguous };
            }
        }
    }
}

#[cfg(test)]
mod tests;
