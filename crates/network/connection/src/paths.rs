//! The paths over which a connection spreads its packets. They take turns, and one on which a packet met congestion is left
//! out once for each such packet: paths are changed before the window is (Hoefler et al., arXiv:2508.08906).

/// Most turns that a path is left out.
const MOST_PENALTIES: u8 = 15;

#[derive(Debug)]
pub(crate) struct Paths {
    /// For each path the turns for which it is left out.
    penalties: Vec<u8>,
    next: usize,
}

impl Paths {
    pub(crate) fn new(count: u16) -> Self {
        Self { penalties: vec![0; count.max(1).into()], next: 0 }
    }

    /// The path of the next packet.
    pub(crate) fn pick(&mut self) -> u16 {
        let count = self.penalties.len();
        for _ in 0..count {
            let path = self.next;
            self.next = (path + 1) % count;
            if self.penalties[path] == 0 {
                return path as u16;
            }
            self.penalties[path] -= 1;
        }
        self.next as u16
    }

    /// A packet met congestion on a path.
    pub(crate) fn note_congestion(&mut self, path: u16) {
        if let Some(penalty) = self.penalties.get_mut(usize::from(path)) {
            *penalty = (*penalty + 1).min(MOST_PENALTIES);
        }
    }
}
