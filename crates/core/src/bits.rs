//! A small set of indices, with a cyclic search for fair turns.

use alloc::{boxed::Box, vec};

/// A set of indices below a fixed bound, one bit each.
#[derive(Clone, Debug)]
pub struct BitSet {
    words: Box<[u64]>,
}

/// Number of words that hold `bound` bits.
pub const fn words_for(bound: usize) -> usize {
    bound.div_ceil(64)
}

/// The word of an index and its bit in that word.
pub const fn place(index: usize) -> (usize, u64) {
    (index / 64, 1 << (index % 64))
}

impl BitSet {
    /// The empty set of indices below `bound`.
    pub fn new(bound: usize) -> Self {
        Self { words: vec![0; words_for(bound)].into() }
    }

    /// Adds an index.
    pub fn insert(&mut self, index: usize) {
        let (word, bit) = place(index);
        self.words[word] |= bit;
    }

    /// Adds all bits of one word.
    pub fn insert_word(&mut self, word: usize, bits: u64) {
        self.words[word] |= bits;
    }

    /// Takes an index out.
    pub fn remove(&mut self, index: usize) {
        let (word, bit) = place(index);
        self.words[word] &= !bit;
    }

    /// Empties one word and returns its bits.
    pub fn take_word(&mut self, word: usize) -> u64 {
        core::mem::take(&mut self.words[word])
    }

    /// Takes all indices out.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// True if the index is in the set.
    pub fn contains(&self, index: usize) -> bool {
        let (word, bit) = place(index);
        self.words[word] & bit != 0
    }

    /// True if no index is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(word, &bits)| members(word, bits))
    }

    /// The first member at or after `start`, searching on from 0 after the end.
    pub fn next_from(&self, start: usize) -> Option<usize> {
        let (first, bit) = place(start);
        let here = self.words.get(first).map_or(0, |word| word & !(bit - 1));
        if here != 0 {
            return Some(first * 64 + here.trailing_zeros() as usize);
        }
        let after = (first + 1..self.words.len()).chain(0..=first.min(self.words.len().saturating_sub(1)));
        after.into_iter().find_map(|word| members(word, *self.words.get(word)?).next())
    }
}

/// The indices of the set bits of one word.
pub fn members(word: usize, mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let lowest = bits.trailing_zeros() as usize;
        (bits != 0).then(|| {
            bits &= bits - 1;
            word * 64 + lowest
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn the_search_is_cyclic_and_finds_every_member() {
        let mut set = BitSet::new(200);
        assert_eq!(set.next_from(7), None);
        [3, 63, 64, 199].into_iter().for_each(|index| set.insert(index));
        let turns: Vec<_> = [0, 3, 4, 63, 64, 65, 199, 200].iter().map(|&from| set.next_from(from).unwrap()).collect();
        assert_eq!(turns, [3, 3, 63, 63, 64, 199, 199, 3]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 63, 64, 199]);
        set.remove(64);
        assert!(!set.contains(64) && set.iter().count() == 3 && !set.is_empty());
        assert_eq!(set.take_word(0).count_ones(), 2);
        assert_eq!(set.next_from(0), Some(199));
    }
}
