//! Buffers lent by a transport: data written there are sent without a copy.

use bytes::Bytes;
use std::sync::Arc;

/// Memory of a transport with one owner.
pub trait Memory: AsRef<[u8]> + AsMut<[u8]> + Send + 'static {}

impl<T: AsRef<[u8]> + AsMut<[u8]> + Send + 'static> Memory for T {}

/// A source of buffers. Any thread may use it, and it may outlive its transport.
#[derive(Clone)]
pub struct Buffers(Arc<Lend>);

type Lend = dyn Fn(usize) -> Option<Buffer> + Send + Sync;

impl Buffers {
    /// Buffers made by `lend`, which gets the wanted number of bytes.
    pub fn new(lend: impl Fn(usize) -> Option<Buffer> + Send + Sync + 'static) -> Self {
        Self(Arc::new(lend))
    }

    /// A buffer for `capacity` bytes with any content; `None` if there is no room now. The caller then uses memory of
    /// its own, which the transport copies.
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

/// A buffer to be filled and turned into a body.
pub struct Buffer {
    memory: Box<dyn Memory>,
}

impl Buffer {
    /// A buffer of this memory.
    pub fn new(memory: impl Memory) -> Self {
        Self { memory: Box::new(memory) }
    }

    /// The first `length` bytes as a body. The memory is returned when all its copies and slices are dropped.
    ///
    /// # Panics
    /// If the buffer is shorter.
    #[must_use]
    pub fn freeze(self, length: usize) -> Bytes {
        let mut body = Bytes::from_owner(self);
        assert!(length <= body.len(), "{length} bytes of a buffer of {}", body.len());
        body.truncate(length);
        body
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
