//! Numbering of a source's fragments, followed by value. Skipped, repeated, swapped and wild numbers are distinguished
//! from a counter that restarts.
//!
//! A fragment goes to the event whose number it carries, never to the next free one. A number that is not the next one
//! needs a witness: the fragment is held until later fragments count on from its number. A single wild number is set
//! apart, and so are all fragments but one that claim the same number. A run of numbers that leads elsewhere is a
//! *turn*: the counter was restarted, or has leapt. The numbers alone do not tell their events after a turn.
//!
//! A position in a file or stream proves nothing: after one lost fragment all later ones would go to the events of
//! other triggers. A counter that restarted does not come back by counting either, because it would pass through the
//! expected number by chance.

use crate::Mark;
use alloc::{collections::VecDeque, sync::Arc, vec::Vec};

/// Largest number of skipped events that counts as lost fragments when the next number confirms it. A longer leap is a
/// turn. A narrow counter takes at most a quarter of its range, to tell forwards from backwards.
pub const MAX_GAP: u64 = 1024;
/// Consecutive fragments that prove a turn.
const WITNESSES: usize = 3;

/// A step of the numbering: the fate of one fragment, or a change of the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NumberingEvent<T> {
    /// The fragment has this position: the number of events since the first one after the last turn, or since the
    /// beginning.
    Placed {
        /// Position, from 0.
        position: u64,
        /// The fragment.
        item: T,
    },
    /// The fragment is set apart: it has no position.
    Apart {
        /// The fragment.
        item: T,
        /// The reason.
        reason: Apart,
    },
    /// A turn: the following numbers have no relation to the earlier ones. Positions begin at 0 again.
    Turn {
        /// The source announced that it restarted its counter.
        declared: bool,
        /// The number of position 0.
        number: u64,
    },
    /// This many positions were skipped; their fragments do not come.
    Skipped(u64),
    /// The counter wrapped to zero as expected.
    Wrapped,
}

/// The reason why a fragment was set apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// Its number was seen before.
    Repeated,
    /// Its number fits neither the numbers before nor those after.
    Misnumbered,
}

/// A fragment whose event is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Its position, from 0.
    pub position: u64,
    /// Its mark.
    pub mark: Option<Mark>,
}

/// The extent and first fragments of a recording, for the alignment of sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Number of positions from the first fragment to the last, including those without a fragment.
    pub positions: u64,
    /// Number of positions before the first leap of the numbers. Later positions count only if another source has them,
    /// too.
    pub solid: u64,
    /// Bits of an event number.
    pub bits: u8,
    /// The number of position 0.
    pub number: u64,
    /// The first fragments.
    pub fragments: Arc<[Sighting]>,
}

struct HeldFragment<T> {
    number: u64,
    declared: bool,
    item: T,
}

/// The numbering of one source. Numbers have 1 to 64 bits and start anywhere.
pub struct Numbering<T> {
    mask: u64,
    /// The last position and its number; `None` before the first fragment.
    last: Option<(u64, u64)>,
    /// Fragments with consecutive numbers that differ from the expected ones.
    held: Vec<HeldFragment<T>>,
    steps: VecDeque<NumberingEvent<T>>,
}

impl<T> Numbering<T> {
    /// A numbering of `bits` bits, 1 to 64.
    pub const fn new(bits: u8) -> Self {
        Self { mask: u64::MAX >> (64 - bits as u32), last: None, held: Vec::new(), steps: VecDeque::new() }
    }

    /// The last position that was assigned, if any.
    pub fn last(&self) -> Option<u64> {
        self.last.map(|(position, _)| position)
    }

    /// Takes the next fragment. `declared` says that the source restarted its counter with it.
    pub fn push(&mut self, number: u64, declared: bool, item: T) {
        let fragment = HeldFragment { number: number & self.mask, declared, item };
        let Some((_, last)) = self.last else { return self.place(0, fragment) };
        let is_due = !declared && self.distance(last, fragment.number) == 1;
        let continues = !declared && self.continues(fragment.number);
        match (is_due, continues) {
            (true, false) => self.in_step(fragment),
            // One repeated fragment is not a restart; two or more may be.
            (true, true) if self.held.len() == 1 && self.held[0].number == last && !self.held[0].declared => {
                self.refute();
                self.in_step(fragment);
            }
            (_, true) => {
                self.held.push(fragment);
                self.confirm();
            }
            (false, false) => {
                self.refute();
                self.held.push(fragment);
            }
        }
    }

    /// Ends the numbering. `last` is the number of the last fragment, if the source has reported it.
    pub fn end(&mut self, last: Option<u64>) {
        let witnessed = self.held.last().is_some_and(|held| last.is_none_or(|last| last & self.mask == held.number));
        if self.is_gap() && witnessed { self.close_gap() } else { self.refute() }
    }

    /// Removes the next step, if one is known.
    pub fn pop(&mut self) -> Option<NumberingEvent<T>> {
        self.steps.pop_front()
    }

    /// The next step, which stays in the queue.
    pub fn peek(&self) -> Option<&NumberingEvent<T>> {
        self.steps.front()
    }

    /// Number of fragments whose position is not known yet.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Number of events from one number to another, if the second is ahead of the first by value by at most half the
    /// range.
    pub const fn ahead(&self, from: u64, to: u64) -> Option<u64> {
        let distance = self.distance(from, to);
        if distance > 0 && distance <= self.mask / 2 { Some(distance) } else { None }
    }

    const fn distance(&self, from: u64, to: u64) -> u64 {
        to.wrapping_sub(from) & self.mask
    }

    fn place(&mut self, position: u64, fragment: HeldFragment<T>) {
        if self.last.is_some() && fragment.number == 0 && self.mask > 0 {
            self.steps.push_back(NumberingEvent::Wrapped);
        }
        self.last = Some((position, fragment.number));
        self.steps.push_back(NumberingEvent::Placed { position, item: fragment.item });
    }

    /// Takes the expected fragment, while fragments that came before it may be held.
    fn in_step(&mut self, fragment: HeldFragment<T>) {
        let position = self.last.map_or(0, |(position, _)| position + 1);
        if self.held.first().is_some_and(|held| held.number == fragment.number) {
            // Two claim this place, and nothing tells which of them is right.
            self.refute();
            self.last = Some((position, fragment.number));
            self.steps.push_back(NumberingEvent::Skipped(1));
            self.steps.push_back(NumberingEvent::Apart { item: fragment.item, reason: Apart::Misnumbered });
            return;
        }
        self.place(position, fragment);
        if !self.is_gap() {
            self.refute();
        }
    }

    /// Returns true if a number counts on from the held ones. After lost fragments a gap may follow, since a wild
    /// number would lie ahead of the next one. After a turn only consecutive numbers count.
    fn continues(&self, number: u64) -> bool {
        let Some(held) = self.held.last() else { return false };
        let most = if self.is_gap() { self.most_skipped() + 1 } else { 1 };
        (1..=most).contains(&self.distance(held.number, number))
    }

    /// Most numbers that may be skipped.
    fn most_skipped(&self) -> u64 {
        MAX_GAP.min(self.mask / 4)
    }

    /// Returns true if the numbers between the last position and the first held fragment are few enough to be lost
    /// fragments.
    fn is_gap(&self) -> bool {
        let (Some(first), Some((_, last))) = (self.held.first(), self.last) else { return false };
        !first.declared && (1..=self.most_skipped() + 1).contains(&self.distance(last, first.number))
    }

    /// Checks whether enough fragments count on from the first held one.
    fn confirm(&mut self) {
        if self.is_gap() {
            self.close_gap();
        } else if self.held.len() >= WITNESSES {
            self.turn();
        }
    }

    /// Places the held fragments by the values of their numbers.
    fn close_gap(&mut self) {
        for fragment in core::mem::take(&mut self.held) {
            let Some((position, last)) = self.last else { return };
            let ahead = self.distance(last, fragment.number);
            if ahead > 1 {
                self.steps.push_back(NumberingEvent::Skipped(ahead - 1));
            }
            self.place(position + ahead, fragment);
        }
    }

    fn turn(&mut self) {
        let held = core::mem::take(&mut self.held);
        let Some(first) = held.first() else { return };
        self.steps.push_back(NumberingEvent::Turn { declared: first.declared, number: first.number });
        self.last = None;
        for (position, fragment) in (0..).zip(held) {
            self.place(position, fragment);
        }
    }

    /// Sets the held fragments apart.
    fn refute(&mut self) {
        let last = self.last.map(|(_, number)| number);
        for fragment in core::mem::take(&mut self.held) {
            let behind = last.is_some_and(|last| self.distance(fragment.number, last) <= self.most_skipped());
            let reason = if behind { Apart::Repeated } else { Apart::Misnumbered };
            self.steps.push_back(NumberingEvent::Apart { item: fragment.item, reason });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, string::String, vec, vec::Vec};

    /// The steps of these numbers as text: `n@p` is number n at position p, `n!` apart, `-k` skipped, `|` a turn.
    fn follow(bits: u8, numbers: &[u64]) -> String {
        trace(bits, &numbers.iter().map(|&number| (number, false)).collect::<Vec<_>>(), None)
    }

    fn trace(bits: u8, numbers: &[(u64, bool)], end: Option<u64>) -> String {
        let mut numbering = Numbering::new(bits);
        for &(number, declared) in numbers {
            numbering.push(number, declared, number);
        }
        numbering.end(end);
        let mut said = vec![];
        while let Some(step) = numbering.pop() {
            said.push(match step {
                NumberingEvent::Placed { position, item } => format!("{item}@{position}"),
                NumberingEvent::Apart { item, reason: Apart::Misnumbered } => format!("{item}!"),
                NumberingEvent::Apart { item, reason: Apart::Repeated } => format!("{item}="),
                NumberingEvent::Turn { declared, .. } => if declared { "|d" } else { "|" }.into(),
                NumberingEvent::Skipped(count) => format!("-{count}"),
                NumberingEvent::Wrapped => "w".into(),
            });
        }
        said.join(" ")
    }

    #[test]
    fn numbers_start_anywhere_and_wrap() {
        assert_eq!(follow(24, &[500, 501, 502]), "500@0 501@1 502@2");
        assert_eq!(follow(32, &[(1 << 32) - 2, (1 << 32) - 1, 0, 1]), "4294967294@0 4294967295@1 w 0@2 1@3");
        assert_eq!(follow(2, &[3, 0, 1, 2, 3, 0]), "3@0 w 0@1 1@2 2@3 3@4 w 0@5");
    }

    #[test]
    fn lost_fragments_are_skipped_when_the_next_confirms_it() {
        assert_eq!(follow(24, &[1, 2, 5, 6]), "1@0 2@1 -2 5@4 6@5");
        assert_eq!(follow(24, &[1, 2, 5]), "1@0 2@1 -2 5@4", "at the end nothing speaks against it");
        assert_eq!(trace(24, &[(1, false), (2, false), (5, false)], Some(3)), "1@0 2@1 5!");
        assert_eq!(follow(8, &[1, 2, 70, 71, 72, 73]), "1@0 2@1 | 70@0 71@1 72@2 73@3", "too far for eight bits");
    }

    #[test]
    fn many_lost_fragments_cost_no_other() {
        assert_eq!(follow(24, &[1, 2, 4, 6, 7, 9]), "1@0 2@1 -1 4@3 -1 6@5 7@6 -1 9@8");
    }

    #[test]
    fn one_wild_number_is_set_apart() {
        assert_eq!(follow(24, &[1, 2, 4006, 4, 5]), "1@0 2@1 4006! -1 4@3 5@4");
        assert_eq!(follow(24, &[1, 2, 4, 4, 5]), "1@0 2@1 4! -1 4@3 5@4", "the first 4 was a 3");
        assert_eq!(follow(24, &[1, 2, 9, 3, 4, 5, 6, 7, 8, 9, 10]), "1@0 2@1 3@2 4@3 5@4 6@5 7@6 8@7 9! -1 9! 10@9");
    }

    #[test]
    fn repeated_and_swapped_fragments_are_distinguished() {
        assert_eq!(follow(24, &[1, 2, 2, 3]), "1@0 2@1 2= 3@2");
        assert_eq!(follow(24, &[1, 2, 3, 4, 2, 5, 6]), "1@0 2@1 3@2 4@3 5@4 2= 6@5");
        assert_eq!(follow(24, &[1, 3, 2, 4, 5]), "1@0 2@1 3@2 4@3 5@4");
    }

    #[test]
    fn a_counter_that_starts_again_never_comes_back_by_counting() {
        let restarted: Vec<u64> = (1..=100).chain(1..=200).collect();
        let said = follow(24, &restarted);
        assert!(said.contains("100@99 | 1@0 2@1") && said.ends_with("200@199"), "{said}");
        assert_eq!(follow(24, &[1, 2, 3, 1, 2, 3, 4]), "1@0 2@1 3@2 | 1@0 2@1 3@2 4@3");
        assert_eq!(follow(24, &[1, 2, 3, 2, 3, 4, 5]), "1@0 2@1 3@2 | 2@0 3@1 4@2 5@3");
    }

    #[test]
    fn a_declared_restart_is_a_turn_wherever_it_leads() {
        let numbers = [(8, false), (9, false), (10, true), (11, false), (12, false)];
        assert_eq!(trace(24, &numbers, None), "8@0 9@1 |d 10@0 11@1 12@2");
        let glitch = [(19, false), (20, false), (1, true), (21, false), (22, false)];
        assert_eq!(trace(24, &glitch, None), "19@0 20@1 21@2 1= 22@3", "one frame alone is not a restart");
    }
}
