//! A store whose places are used again, the last one freed first, since a cache still holds it.

use evb_core::put;

/// Values by place, which is a number of the type `K`.
pub(crate) struct Slab<K, T> {
    values: Vec<Option<T>>,
    spare: Vec<K>,
    /// Places above which it is full. It takes more values nevertheless: its owner has to look.
    most: usize,
    is_full: bool,
}

impl<K, T> Default for Slab<K, T> {
    fn default() -> Self {
        Self { values: Vec::new(), spare: Vec::new(), most: usize::MAX, is_full: false }
    }
}

impl<K: Copy + From<u32> + Into<u32>, T> Slab<K, T> {
    pub(crate) fn insert(&mut self, value: T) -> K {
        if let Some(place) = self.spare.pop() {
            put(&mut self.values[place.into() as usize], value);
            return place;
        }
        self.values.push(Some(value));
        self.is_full = self.values.len() > self.most;
        u32::try_from(self.values.len() - 1).expect("fewer than 2^32 are under way at once").into()
    }

    pub(crate) fn remove(&mut self, place: K) -> T {
        self.spare.push(place);
        self.values[place.into() as usize].take().expect("a value is taken once")
    }

    pub(crate) fn get(&self, place: K) -> &T {
        self.values[place.into() as usize].as_ref().expect("a value that is there")
    }

    pub(crate) fn get_mut(&mut self, place: K) -> &mut T {
        self.values[place.into() as usize].as_mut().expect("a value that is there")
    }

    /// Sets the number of places above which it is full.
    pub(crate) fn set_bound(&mut self, most: usize) {
        self.most = most;
        self.is_full = self.values.len() > most;
    }

    /// True if there were more values at once than the bound.
    #[inline]
    pub(crate) const fn is_full(&self) -> bool {
        self.is_full
    }

    /// All values with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        let places = (0..self.values.len() as u32).map(K::from);
        places.zip(&self.values).filter_map(|(place, value)| Some((place, value.as_ref()?)))
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len() - self.spare.len()
    }
}
