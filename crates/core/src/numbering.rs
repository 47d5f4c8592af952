//! Numbering of a source's fragments, followed by value. Late, repeated, lost and damaged numbers are distinguished from
//! a counter that restarts.
//!
//! A fragment goes to the event whose number it carries, never to the next free one. The rule, by the number of a
//! fragment beside the *front*, the largest number that was placed:
//!
//! | number | what is done |
//! |---|---|
//! | the next one | placed |
//! | ahead by at most [`REACH`] | held until another fragment counts on from it; the numbers between stay open |
//! | ahead by at most [`MAX_GAP`], without a mark | held until [`WITNESSES`] fragments count on; the numbers between are lost |
//! | behind, open | placed: it came late |
//! | behind, taken, the same content | set apart as repeated |
//! | behind, taken, another content | set apart as disputed, unless the counter restarted |
//! | anything else | set apart as misnumbered, unless the counter restarted or leapt |
//!
//! Of two fragments that claim a number ahead the first is set apart, and the second unless the next fragment counts on from
//! it. An open number
//! is given up when [`REACH`] later ones have been placed. The counter restarted or leapt, which is called a *turn*, if
//! [`WITNESSES`] fragments in a row count on from each other and not from the front; a turn that the source announced
//! needs three. The numbers alone do not tell the events after a turn.
//!
//! A position in a file or stream proves nothing: after one lost fragment all later ones would go to the events of
//! other triggers. A counter that restarted does not come back by counting either, because it would pass through the
//! expected number by chance.

use crate::Mark;
use alloc::{collections::VecDeque, sync::Arc, vec::Vec};

/// Largest number of skipped events that counts as lost fragments when later numbers confirm it. A longer leap is a turn.
/// A narrow counter takes at most a quarter of its range, to tell forwards from backwards.
pub const MAX_GAP: u64 = 1024;
/// Most numbers by which a fragment may come early or late. A narrow counter takes at most an eighth of its range.
const REACH: u64 = 64;
/// Fragments in a row that prove a turn or a long gap.
const WITNESSES: usize = 16;
/// Fragments in a row that prove a turn that the source has announced.
const WITNESSES_OF_DECLARED: usize = 3;
/// Fragments that fit the old numbers, after which those that did not are damaged.
const REFUTERS: u32 = 4;
/// Most recent numbers whose contents are remembered.
const REMEMBERED: u64 = 1024;

/// A step of the numbering: the fate of one fragment, or a change of the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NumberingEvent<T> {
    /// The fragment has this position: the number of events since the first one after the last turn, or since the
    /// beginning. Positions come in order, except for fragments that were late.
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
        /// The largest number before.
        after: u64,
    },
    /// This many positions are lost; their fragments do not come.
    Skipped(u64),
    /// The counter wrapped to zero as expected.
    Wrapped,
}

/// The reason why a fragment was set apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// It is a copy of an earlier fragment.
    Repeated,
    /// Another fragment with a different content claims the same number.
    Disputed,
    /// It came after its number had been given up.
    Late,
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

/// A fragment with its number.
pub struct Numbered<T> {
    /// The number.
    pub number: u64,
    /// The source says that it restarted its counter with this fragment.
    pub declared: bool,
    /// The fragment has another identity, by which a long gap can be told from a leap of the counter.
    pub marked: bool,
    /// A digest of its content.
    pub digest: u64,
    /// The fragment.
    pub item: T,
}

/// What became of a number at or behind the front.
#[derive(Clone, Copy, PartialEq)]
enum Slot {
    /// A fragment with this digest was placed.
    Filled(u64),
    /// The fragment may still come.
    Open,
    /// The fragment did not come.
    GivenUp,
    /// Several fragments claim it, and all were set apart.
    Disputed,
}

/// The numbering of one source. Numbers have 1 to 64 bits and start anywhere.
pub struct Numbering<T> {
    mask: u64,
    /// The largest number that was placed, and its position; `None` before the first fragment.
    front: Option<(u64, u64)>,
    /// What became of the front, of the number before it, and so on.
    recent: VecDeque<Slot>,
    /// Number of open ones among them.
    open: usize,
    /// Fragments ahead of the front within reach, in the order of their arrival.
    early: Vec<Numbered<T>>,
    /// The number of the last fragment within reach, if it was held.
    last_ahead: Option<u64>,
    /// A number ahead of the front that two fragments claim: the second is right if the next fragment counts on from it.
    contested: Option<u64>,
    /// Numbers ahead of the front that several fragments claim.
    disputed: Vec<u64>,
    /// Fragments that may follow a turn, and the number of fragments since then that fit without one.
    strays: Vec<(Numbered<T>, Apart)>,
    fitting: u32,
    steps: VecDeque<NumberingEvent<T>>,
}

impl<T> Numbering<T> {
    /// A numbering of `bits` bits, 1 to 64.
    pub const fn new(bits: u8) -> Self {
        Self {
            mask: u64::MAX >> (64 - bits as u32),
            front: None,
            recent: VecDeque::new(),
            open: 0,
            early: Vec::new(),
            last_ahead: None,
            contested: None,
            disputed: Vec::new(),
            strays: Vec::new(),
            fitting: 0,
            steps: VecDeque::new(),
        }
    }

    /// The largest position that was assigned, if any.
    pub fn last(&self) -> Option<u64> {
        self.front.map(|(position, _)| position)
    }

    /// The last position up to which every fragment has come, or does not come; `None` before the first.
    pub fn settled(&self) -> Option<u64> {
        let (front, _) = self.front?;
        if self.open == 0 {
            return Some(front);
        }
        let oldest = self.recent.iter().rposition(|slot| *slot == Slot::Open)?;
        front.checked_sub(oldest as u64 + 1)
    }

    /// Returns true if fragments are awaited that may come late, or wait for others.
    pub fn is_unsettled(&self) -> bool {
        !self.early.is_empty() || self.open > 0
    }

    /// Takes the next fragment.
    pub fn push(&mut self, fragment: Numbered<T>) {
        let fragment = Numbered { number: fragment.number & self.mask, ..fragment };
        if self.front.is_none() {
            return self.place(0, fragment);
        }
        self.settle_contested(Some(fragment.number));
        let front = self.front.map_or(0, |(_, front)| front);
        let (ahead, behind) = (self.distance(front, fragment.number), self.distance(fragment.number, front));
        if fragment.declared || self.counts_on_from_strays(fragment.number) {
            self.stray(fragment, Apart::Misnumbered);
        } else if behind < self.recent.len() as u64 {
            self.take_behind(behind as usize, fragment);
        } else if ahead <= self.reach() {
            self.take_ahead(fragment);
        } else {
            self.stray(fragment, Apart::Misnumbered);
        }
    }

    /// Places held fragments whose turn it is, and gives up open positions up to this one.
    pub fn give_up(&mut self, through: u64) {
        while let Some(next) = self.due() {
            self.advance(next);
        }
        let Some((front, _)) = self.front else { return };
        let newest = usize::try_from(front.saturating_sub(through)).unwrap_or(usize::MAX);
        self.give_up_from(newest);
    }

    /// Ends the numbering. `last` is the number of the last fragment, if the source has reported it.
    pub fn end(&mut self, last: Option<u64>) {
        self.settle_contested(None);
        self.refute();
        let most = last.zip(self.front).map(|(last, (_, front))| self.distance(front, last & self.mask));
        while let Some(next) = self.next_early() {
            let ahead = self.front.map_or(0, |(_, front)| self.distance(front, self.early[next].number));
            if most.is_some_and(|most| ahead > most) {
                break;
            }
            self.advance(next);
        }
        for fragment in core::mem::take(&mut self.early) {
            self.set_apart(fragment, Apart::Misnumbered);
        }
        self.give_up_from(0);
    }

    /// Removes the next step, if one is known.
    pub fn pop(&mut self) -> Option<NumberingEvent<T>> {
        self.steps.pop_front()
    }

    /// The next step, which stays in the queue.
    pub fn peek(&self) -> Option<&NumberingEvent<T>> {
        self.steps.front()
    }

    /// Number of fragments that [`pop`](Self::pop) has not returned.
    pub fn waiting(&self) -> usize {
        let is_fragment =
            |step: &&NumberingEvent<T>| matches!(step, NumberingEvent::Placed { .. } | NumberingEvent::Apart { .. });
        self.early.len() + self.strays.len() + self.steps.iter().filter(is_fragment).count()
    }

    /// Removes the fragments that [`pop`](Self::pop) has not returned.
    pub fn take_waiting(&mut self) -> impl Iterator<Item = T> {
        let steps = core::mem::take(&mut self.steps).into_iter().filter_map(|step| match step {
            NumberingEvent::Placed { item, .. } | NumberingEvent::Apart { item, .. } => Some(item),
            NumberingEvent::Turn { .. } | NumberingEvent::Skipped(_) | NumberingEvent::Wrapped => None,
        });
        let strays = core::mem::take(&mut self.strays).into_iter().map(|(fragment, _)| fragment.item);
        let early = core::mem::take(&mut self.early).into_iter().map(|fragment| fragment.item);
        steps.chain(strays).chain(early)
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

    /// Most numbers by which a fragment may come early or late.
    fn reach(&self) -> u64 {
        REACH.min(self.mask / 8).max(1)
    }

    // ---- behind the front

    /// Takes a fragment whose number is not ahead of the front.
    fn take_behind(&mut self, back: usize, fragment: Numbered<T>) {
        match self.recent[back] {
            Slot::Open => {
                self.recent[back] = Slot::Filled(fragment.digest);
                self.open -= 1;
                let position = self.front.map_or(0, |(front, _)| front - back as u64);
                self.steps.push_back(NumberingEvent::Placed { position, item: fragment.item });
                self.fits();
            }
            Slot::Filled(digest) if digest == fragment.digest && self.is_distinct(back) => {
                self.set_apart(fragment, Apart::Repeated);
            }
            Slot::Filled(digest) if digest == fragment.digest => self.stray(fragment, Apart::Repeated),
            Slot::Filled(_) => self.stray(fragment, Apart::Disputed),
            Slot::GivenUp => self.stray(fragment, Apart::Late),
            Slot::Disputed => self.set_apart(fragment, Apart::Disputed),
        }
    }

    /// Returns true if the content of a recent fragment differs from that of its neighbours, so that equal contents
    /// prove a repetition.
    fn is_distinct(&self, back: usize) -> bool {
        let neighbours = [back.checked_sub(1), Some(back + 1)];
        let mut slots = neighbours.into_iter().flatten().filter_map(|at| self.recent.get(at));
        let differs = |slot: &Slot| matches!(slot, Slot::Filled(_)) && *slot != self.recent[back];
        slots.clone().any(differs) && slots.all(|slot| differs(slot) || !matches!(slot, Slot::Filled(_)))
    }

    /// Gives up the open numbers among those that lie this far or further behind the front.
    fn give_up_from(&mut self, newest: usize) {
        if self.open == 0 {
            return;
        }
        let open = self.recent.iter_mut().skip(newest).filter(|slot| **slot == Slot::Open);
        let count = open.map(|slot| *slot = Slot::GivenUp).count();
        self.open -= count;
        if count > 0 {
            self.steps.push_back(NumberingEvent::Skipped(count as u64));
        }
    }

    /// Gives up a gap of open numbers once its last number is out of reach.
    fn give_up_old(&mut self) {
        let reach = self.reach() as usize;
        let is_open = |back: usize| self.recent.get(back) == Some(&Slot::Open);
        if is_open(reach) && !is_open(reach - 1) {
            self.give_up_from(reach);
        }
    }

    // ---- ahead of the front

    /// Takes a fragment within reach ahead of the front.
    fn take_ahead(&mut self, fragment: Numbered<T>) {
        let number = fragment.number;
        let before = self.last_ahead.replace(number);
        self.fits();
        if self.disputed.contains(&number) {
            return self.set_apart(fragment, Apart::Disputed);
        }
        if let Some(rival) = self.early.iter().position(|early| early.number == number) {
            return self.dispute(rival, fragment);
        }
        let is_due = self.front.is_some_and(|(_, front)| self.distance(front, number) == 1);
        self.early.push(fragment);
        let follows = before.is_some_and(|before| (1..=self.reach()).contains(&self.distance(before, number)));
        if is_due || follows || self.completes_front(number) {
            self.last_ahead = None;
            self.advance_through(number);
        }
    }

    /// Sets a fragment apart whose number another one claims, unless that repeats it.
    fn dispute(&mut self, rival: usize, fragment: Numbered<T>) {
        if self.early[rival].digest == fragment.digest {
            return self.set_apart(fragment, Apart::Repeated);
        }
        self.last_ahead = None;
        self.contested = Some(fragment.number);
        let first = core::mem::replace(&mut self.early[rival], fragment);
        self.set_apart(first, Apart::Disputed);
    }

    /// Decides about a contested number by the one that came next.
    fn settle_contested(&mut self, next: Option<u64>) {
        let Some(number) = self.contested.take() else { return };
        if next.is_some_and(|next| self.distance(number, next) == 1) {
            return;
        }
        let Some(claimant) = self.early.iter().position(|early| early.number == number) else { return };
        self.disputed.push(number);
        let claimant = self.early.remove(claimant);
        self.set_apart(claimant, Apart::Disputed);
        self.pass_disputed();
    }

    /// Returns true if all numbers between the front and this one have come.
    fn completes_front(&self, number: u64) -> bool {
        let Some((_, front)) = self.front else { return false };
        (1..self.distance(front, number)).all(|ahead| {
            let between = front.wrapping_add(ahead) & self.mask;
            self.disputed.contains(&between) || self.early.iter().any(|early| early.number == between)
        })
    }

    /// The index of the early fragment that is next to the front, if there is one.
    fn due(&self) -> Option<usize> {
        let (_, front) = self.front?;
        self.early.iter().position(|early| self.distance(front, early.number) == 1)
    }

    /// The index of the early fragment nearest to the front.
    fn next_early(&self) -> Option<usize> {
        let (_, front) = self.front?;
        (0..self.early.len()).min_by_key(|&index| self.distance(front, self.early[index].number))
    }

    /// Places the early fragments up to this number.
    fn advance_through(&mut self, number: u64) {
        while let Some(next) = self.next_early() {
            let Some((_, front)) = self.front else { return };
            if self.distance(front, self.early[next].number) > self.distance(front, number) {
                return;
            }
            self.advance(next);
            if self.front.is_some_and(|(_, front)| front == number) {
                return;
            }
        }
    }

    /// Places an early fragment: it becomes the front.
    fn advance(&mut self, early: usize) {
        let fragment = self.early.remove(early);
        let (position, front) = self.front.unwrap_or_default();
        let ahead = self.distance(front, fragment.number);
        self.place(position + ahead, fragment);
        self.pass_disputed();
    }

    /// Moves the front over numbers that several fragments claim.
    fn pass_disputed(&mut self) {
        while let Some((position, front)) = self.front {
            let next = front.wrapping_add(1) & self.mask;
            let Some(index) = self.disputed.iter().position(|&number| number == next) else { return };
            self.disputed.swap_remove(index);
            self.front = Some((position + 1, next));
            self.remember(Slot::Disputed);
            self.steps.push_back(NumberingEvent::Skipped(1));
        }
    }

    /// Places a fragment at the front. The positions that it skips stay open.
    fn place(&mut self, position: u64, fragment: Numbered<T>) {
        if let Some((last, number)) = self.front {
            if fragment.number < number && self.mask > 0 {
                self.steps.push_back(NumberingEvent::Wrapped);
            }
            for skipped in (1..position - last).rev() {
                let number = fragment.number.wrapping_sub(skipped) & self.mask;
                let is_disputed = self.disputed.iter().position(|&other| other == number);
                is_disputed.map(|index| self.disputed.swap_remove(index));
                self.remember(if is_disputed.is_some() { Slot::Disputed } else { Slot::Open });
                if is_disputed.is_some() {
                    self.steps.push_back(NumberingEvent::Skipped(1));
                }
            }
        }
        self.front = Some((position, fragment.number));
        self.remember(Slot::Filled(fragment.digest));
        self.steps.push_back(NumberingEvent::Placed { position, item: fragment.item });
        self.give_up_old();
    }

    fn remember(&mut self, slot: Slot) {
        self.recent.push_front(slot);
        self.open += usize::from(slot == Slot::Open);
        if self.recent.len() as u64 > REMEMBERED.min(self.mask / 2).max(1) {
            // A gap is given up before it can get here, unless it is as long as the memory.
            if self.recent.pop_back() == Some(Slot::Open) {
                self.open -= 1;
                self.steps.push_back(NumberingEvent::Skipped(1));
            }
        }
    }

    // ---- turns

    /// Takes note of a fragment that fits the numbers: the strays before it were damaged, if there are several.
    fn fits(&mut self) {
        if self.strays.is_empty() {
            return;
        }
        self.fitting += 1;
        if self.fitting >= REFUTERS {
            self.refute();
        }
    }

    /// Returns true if a number is the next one after several strays, or after a declared restart: a counter that
    /// restarted may pass the front.
    fn counts_on_from_strays(&self, number: u64) -> bool {
        let Some((last, _)) = self.strays.last() else { return false };
        let is_chain = self.strays.len() > 1 || last.declared;
        is_chain && self.fitting == 0 && self.distance(last.number, number) == 1
    }

    /// Holds a fragment that fits nowhere. `reason` is why it is set apart if no turn is proved.
    fn stray(&mut self, fragment: Numbered<T>, reason: Apart) {
        let reach = self.reach();
        let joins = self.strays.last().is_some_and(|(last, _)| {
            let (ahead, behind) =
                (self.distance(last.number, fragment.number), self.distance(fragment.number, last.number));
            !fragment.declared && ahead.min(behind) <= reach
        });
        let is_known = self.strays.iter().position(|(stray, _)| stray.number == fragment.number);
        match is_known {
            Some(index) if joins => {
                let is_copy = self.strays[index].0.digest == fragment.digest;
                return self.set_apart(fragment, if is_copy { Apart::Repeated } else { Apart::Disputed });
            }
            _ if !joins => self.refute(),
            _ => {}
        }
        if self.strays.is_empty() {
            self.fitting = 0;
        }
        self.strays.push((fragment, reason));
        let declared = self.strays.first().is_some_and(|(first, _)| first.declared);
        if self.strays.len() >= if declared { WITNESSES_OF_DECLARED } else { WITNESSES } {
            self.follow_strays(declared);
        }
    }

    /// The strays are the truth: fragments were lost before them, or the counter turned.
    fn follow_strays(&mut self, declared: bool) {
        let mut strays: Vec<_> = core::mem::take(&mut self.strays).into_iter().map(|(stray, _)| stray).collect();
        let Some((first, half)) = strays.first().map(|first| (first.number, self.mask / 2)) else { return };
        // Numbers behind the first one came late.
        strays.sort_by_key(|stray| self.distance(first, stray.number).wrapping_add(half + 1) & self.mask);
        let Some(number) = strays.first().map(|stray| stray.number) else { return };
        let gap = self.front.map_or(u64::MAX, |(_, front)| self.distance(front, number));
        let is_gap = (1..=MAX_GAP.min(self.mask / 4) + 1).contains(&gap);
        if declared || !is_gap || strays.iter().any(|stray| stray.marked) {
            self.turn(declared, number);
        }
        for stray in strays {
            let position = self.front.map_or(0, |(last, front)| last + self.distance(front, stray.number));
            self.place(position, stray);
        }
    }

    fn turn(&mut self, declared: bool, number: u64) {
        for fragment in core::mem::take(&mut self.early) {
            self.set_apart(fragment, Apart::Misnumbered);
        }
        self.give_up_from(0);
        self.contested = None;
        self.disputed.clear();
        self.recent.clear();
        self.last_ahead = None;
        let after = self.front.take().map_or(number, |(_, front)| front);
        self.steps.push_back(NumberingEvent::Turn { declared, number, after });
    }

    /// Sets the strays apart.
    fn refute(&mut self) {
        for (fragment, reason) in core::mem::take(&mut self.strays) {
            self.set_apart(fragment, reason);
        }
    }

    fn set_apart(&mut self, fragment: Numbered<T>, reason: Apart) {
        self.steps.push_back(NumberingEvent::Apart { item: fragment.item, reason });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, string::String, vec, vec::Vec};

    /// The steps of these numbers as text: `n@p` is number n at position p, `n=` repeated, `n?` disputed, `n~` late, `n!`
    /// misnumbered, `-k` skipped, `|` a turn, `w` a wrap. Equal numbers have equal contents.
    fn follow(bits: u8, numbers: &[u64]) -> String {
        trace(bits, &numbers.iter().map(|&number| (number, false, number)).collect::<Vec<_>>(), None)
    }

    /// The same, with contents that all differ.
    fn follow_distinct(bits: u8, numbers: &[u64]) -> String {
        trace(bits, &(0..).zip(numbers).map(|(n, &number)| (number, false, n)).collect::<Vec<_>>(), None)
    }

    fn trace(bits: u8, numbers: &[(u64, bool, u64)], end: Option<u64>) -> String {
        let mut numbering = Numbering::new(bits);
        for &(number, declared, digest) in numbers {
            numbering.push(Numbered { number, declared, marked: false, digest, item: number });
        }
        numbering.end(end);
        let mut said = vec![];
        while let Some(step) = numbering.pop() {
            said.push(match step {
                NumberingEvent::Placed { position, item } => format!("{item}@{position}"),
                NumberingEvent::Apart { item, reason: Apart::Misnumbered } => format!("{item}!"),
                NumberingEvent::Apart { item, reason: Apart::Repeated } => format!("{item}="),
                NumberingEvent::Apart { item, reason: Apart::Disputed } => format!("{item}?"),
                NumberingEvent::Apart { item, reason: Apart::Late } => format!("{item}~"),
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
        assert_eq!(follow_distinct(2, &[3, 0, 1, 2, 3, 0]), "3@0 w 0@1 1@2 2@3 3@4 w 0@5");
    }

    #[test]
    fn lost_fragments_are_skipped_when_the_next_confirms_it() {
        assert_eq!(follow(24, &[1, 2, 5, 6]), "1@0 2@1 5@4 6@5 -2");
        assert_eq!(follow(24, &[1, 2, 5]), "1@0 2@1 5@4 -2", "at the end nothing speaks against it");
        assert_eq!(trace(24, &[(1, false, 1), (2, false, 2), (5, false, 5)], Some(3)), "1@0 2@1 5!");
        let far: Vec<u64> = [1, 2].into_iter().chain(70..90).collect();
        let said = follow(8, &far);
        assert!(said.starts_with("1@0 2@1 | 70@0 71@1") && said.ends_with("89@19"), "too far for eight bits: {said}");
    }

    #[test]
    fn a_long_gap_needs_many_witnesses() {
        let gap: Vec<u64> = [1, 2].into_iter().chain(600..616).collect();
        let said = follow(24, &gap);
        assert!(said.starts_with("1@0 2@1 600@599 601@600"), "{said}");
        assert_eq!(follow(24, &[1, 2, 600, 601, 602, 3, 4, 5, 6]), "1@0 2@1 3@2 4@3 5@4 600! 601! 602! 6@5");
    }

    #[test]
    fn many_lost_fragments_cost_no_other() {
        assert_eq!(follow(24, &[1, 2, 4, 6, 7, 9]), "1@0 2@1 4@3 6@5 7@6 9@8 -3");
    }

    #[test]
    fn one_wild_number_is_set_apart() {
        assert_eq!(follow(24, &[1, 2, 4006, 4, 5]), "1@0 2@1 4@3 5@4 4006! -1");
        assert_eq!(follow_distinct(24, &[1, 2, 4, 4, 5]), "1@0 2@1 4? 4@3 5@4 -1", "the first 4 was a 3");
        let said = follow_distinct(24, &[1, 2, 9, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(said, "1@0 2@1 3@2 4@3 5@4 6@5 7@6 8@7 9? 9@8 10@9");
    }

    #[test]
    fn late_fragments_are_placed() {
        assert_eq!(follow(24, &[1, 3, 2, 4, 5]), "1@0 2@1 3@2 4@3 5@4");
        assert_eq!(follow(24, &[1, 2, 5, 6, 7, 3, 4, 8]), "1@0 2@1 5@4 6@5 7@6 3@2 4@3 8@7");
        assert_eq!(follow(24, &[1, 6, 5, 4, 3, 2, 7, 8]), "1@0 2@1 3@2 4@3 5@4 6@5 7@6 8@7");
        let very_late: Vec<u64> = (1..10).chain(11..90).chain([10, 90]).collect();
        let said = follow(24, &very_late);
        assert!(said.contains(" -1 ") && said.ends_with("10~"), "{said}");
    }

    #[test]
    fn repeated_fragments_are_set_apart() {
        assert_eq!(follow(24, &[1, 2, 2, 3]), "1@0 2@1 2= 3@2");
        assert_eq!(follow(24, &[1, 2, 3, 4, 2, 5, 6]), "1@0 2@1 3@2 4@3 2= 5@4 6@5");
        let resent: Vec<u64> = (1..=100).chain(71..=130).collect();
        let said = follow(24, &resent);
        assert!(said.contains("100@99 71= 72=") && said.ends_with("130@129"), "{said}");
    }

    #[test]
    fn lost_bits_place_no_second_claimant() {
        assert_eq!(follow_distinct(24, &[0, 0, 2, 2, 4, 4, 6, 7, 8]), "0@0 2? 2? 0? 4? 4? -1 -1 6@6 7@7 8@8 -3");
        let upper: Vec<u64> = (4098..4101).chain([5, 6, 7]).chain(4104..4110).collect();
        let said = follow(15, &upper);
        assert!(said.contains("4104@6 4105@7") && said.contains("5! 6! 7!") && !said.contains('|'), "{said}");
    }

    #[test]
    fn a_counter_that_starts_again_never_comes_back_by_counting() {
        let restarted: Vec<u64> = (1..=100).chain(1..=200).collect();
        let said = follow_distinct(24, &restarted);
        assert!(said.contains("100@99 | 1@0 2@1") && said.ends_with("200@199"), "{said}");
        let near: Vec<u64> = (1..=3).chain(2..=30).collect();
        let said = follow_distinct(24, &near);
        assert!(said.starts_with("1@0 2@1 3@2 | 2@0 3@1 4@2 5@3"), "{said}");
    }

    #[test]
    fn a_declared_restart_is_a_turn_wherever_it_leads() {
        let numbers = [(8, false, 1), (9, false, 2), (10, true, 3), (11, false, 4), (12, false, 5)];
        assert_eq!(trace(24, &numbers, None), "8@0 9@1 |d 10@0 11@1 12@2");
        let glitch = [(19, false, 1), (20, false, 2), (1, true, 3), (21, false, 4), (22, false, 5)];
        assert_eq!(trace(24, &glitch, None), "19@0 20@1 21@2 22@3 1!", "one frame alone is not a restart");
    }

    #[test]
    fn late_fragments_are_given_up_in_time() {
        let mut numbering = Numbering::new(24);
        for number in [1, 2, 4, 5] {
            numbering.push(Numbered { number, declared: false, marked: false, digest: number, item: number });
        }
        assert_eq!((numbering.settled(), numbering.is_unsettled()), (Some(1), true));
        numbering.give_up(4);
        assert_eq!((numbering.settled(), numbering.is_unsettled()), (Some(4), false));
    }
}
