//! Memory of long bodies that is used again: no zeros are written and no page is touched for the first time.

use bytes::Bytes;
use std::{
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

/// Most bytes of unused buffers that are kept.
const IDLE_BYTES: usize = 8 << 20;

/// Rooms whose readers are gone.
type Home<M> = Mutex<Vec<M>>;

/// Rooms: pieces of memory for one long body each. A room is filled, lent to the readers of its body, and idle again when
/// the last of them has dropped it. Readers may be in any thread, and may outlive this.
#[derive(Debug)]
pub struct ReceiveBuffers<M> {
    /// Idle rooms, the one that was used last at the end: it may still be in a cache.
    idle: Vec<M>,
    idle_bytes: usize,
    home: Arc<Home<M>>,
}

impl<M> Default for ReceiveBuffers<M> {
    fn default() -> Self {
        Self { idle: Vec::new(), idle_bytes: 0, home: Arc::default() }
    }
}

impl<M: AsRef<[u8]> + Send + Sync + 'static> ReceiveBuffers<M> {
    /// Takes an idle room of at least `bytes` bytes and at most twice as many, with any content. Rooms beyond those that are
    /// kept go to `surplus`.
    pub fn take(&mut self, bytes: usize, mut surplus: impl FnMut(M)) -> Option<M> {
        let home = std::mem::take(&mut *lock(&self.home));
        home.into_iter().for_each(|room| self.keep(room, &mut surplus));
        let fits = |room: &M| (bytes..=bytes.saturating_mul(2)).contains(&room.as_ref().len());
        let room = self.idle.remove(self.idle.iter().rposition(fits)?);
        self.idle_bytes -= room.as_ref().len();
        Some(room)
    }

    /// Keeps a room for the next [`take`](Self::take), or gives it to `surplus`.
    pub fn keep(&mut self, room: M, surplus: impl FnOnce(M)) {
        let bytes = room.as_ref().len();
        if self.idle_bytes + bytes > IDLE_BYTES {
            return surplus(room);
        }
        self.idle_bytes += bytes;
        self.idle.push(room);
    }

    /// Lends a part of a room to the readers of its body.
    ///
    /// # Panics
    /// If the room is shorter.
    pub fn lend(&self, room: M, part: Range<usize>) -> Bytes {
        Bytes::from_owner(Lent { room: Some(room), home: Arc::clone(&self.home) }).slice(part)
    }
}

fn lock<M>(home: &Home<M>) -> std::sync::MutexGuard<'_, Vec<M>> {
    home.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A room with its readers.
struct Lent<M> {
    room: Option<M>,
    home: Arc<Home<M>>,
}

impl<M: AsRef<[u8]>> AsRef<[u8]> for Lent<M> {
    fn as_ref(&self) -> &[u8] {
        self.room.as_ref().map_or(&[], AsRef::as_ref)
    }
}

impl<M> Drop for Lent<M> {
    fn drop(&mut self) {
        lock(&self.home).extend(self.room.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_used_again_when_its_last_reader_has_dropped_it() {
        let mut rooms = ReceiveBuffers::default();
        let room = vec![7; 1000];
        let place = room.as_ptr();
        let body = rooms.lend(room, 10..900);
        let copy = body.slice(5..);
        drop(body);
        assert!(rooms.take(900, drop).is_none() && copy.len() == 885);
        std::thread::spawn(move || drop(copy)).join().unwrap();
        assert!(rooms.take(1001, drop).is_none() && rooms.take(499, drop).is_none(), "of another size");
        assert_eq!(rooms.take(500, drop).map(|room: Vec<u8>| room.as_ptr()), Some(place));
        assert!(rooms.take(500, drop).is_none() && rooms.idle_bytes == 0);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (mut rooms, mut surplus) = (ReceiveBuffers::default(), 0);
        let bodies: Vec<_> = (0..5).map(|_| rooms.lend(vec![0_u8; 3 << 20], 0..1)).collect();
        drop(bodies);
        assert!(rooms.take(3 << 20, |room| surplus += room.len()).is_some());
        assert_eq!((surplus, rooms.idle_bytes), (9 << 20, 3 << 20));
    }

    #[test]
    #[should_panic(expected = "range end out of bounds")]
    fn more_than_a_room_is_not_lent() {
        let _ = ReceiveBuffers::default().lend(vec![0_u8; 10], 0..11);
    }
}
