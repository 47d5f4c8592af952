//! Buffers that a transport lends: what is written there is sent without a copy.

use bytes::Bytes;
use std::sync::Arc;

/// Memory of a transport that nobody else has.
pub trait Memory: AsRef<[u8]> + AsMut<[u8]> + Send + 'static {}

impl<T: AsRef<[u8]> + AsMut<[u8]> + Send + 'static> Memory for T {}

/// Where buffers come from. It may be used by any thread and outlive its transport.
#[derive(Clone)]
pub struct Buffers(Arc<Lend>);

type Lend = dyn Fn(usize) -> Option<Buffer> + Send + Sync;

impl Buffers {
    /// Buffers made by `lend`, which is told how many bytes are wanted.
    pub fn new(lend: impl Fn(usize) -> Option<Buffer> + Send + Sync + 'static) -> Self {
        Self(Arc::new(lend))
    }

    /// A buffer for `capacity` bytes with any content; `None` when there is no room now. Then use memory of your own: the
    /// transport takes that too, and copies it.
    #[must_use]
    pub fn take(&self, capacity: usize) -> Option<Buffer> {
        self.0(capacity)
    }
}

impl std::fmt::Debug for Buffers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Buffers(..)")
    }
}

/// A buffer to be filled and made a body.
pub struct Buffer {
    memory: Box<dyn Memory>,
}

impl Buffer {
    /// A buffer of this memory.
    pub fn new(memory: impl Memory) -> Self {
        Self { memory: Box::new(memory) }
    }

    /// The first `length` bytes as a body. The memory comes back when all its copies and slices are dropped.
    ///
    /// # Panics
    /// If the buffer is shorter.
    #[must_use]
    pub fn freeze(self, length: usize) -> Bytes {
        Bytes::from_owner(self).slice(..length)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        (*self.memory).as_ref()
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        (*self.memory).as_mut()
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes)", self.as_ref().len())
    }
}
