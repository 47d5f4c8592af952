//! A store whose places are used again, the last one freed first: it is the one that a cache still holds.

/// Values by place.
pub(crate) struct Slab<T> {
    values: Vec<Option<T>>,
    spare: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { values: Vec::new(), spare: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(place) = self.spare.pop() {
            self.values[place as usize] = Some(value);
            return place;
        }
        self.values.push(Some(value));
        u32::try_from(self.values.len() - 1).expect("fewer than 2^32 are under way at once")
    }

    pub(crate) fn remove(&mut self, place: u32) -> T {
        self.spare.push(place);
        self.values[place as usize].take().expect("a value is taken once")
    }

    pub(crate) fn get(&self, place: u32) -> &T {
        self.values[place as usize].as_ref().expect("a value that is there")
    }

    pub(crate) fn get_mut(&mut self, place: u32) -> &mut T {
        self.values[place as usize].as_mut().expect("a value that is there")
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len() - self.spare.len()
    }
}
