//! The stream of records that the payloads of a peer are, one after another: a record is a message, or the goodbye.

use bytes::{Bytes, BytesMut};
use evb_transport::{ChunkPool, HEAD_BYTES, Message};

/// Bytes before the body of a message.
pub(crate) const RECORD_BYTES: usize = LENGTH_BYTES + HEAD_BYTES;
/// Bytes of the goodbye, and of the length before a head.
pub(crate) const LENGTH_BYTES: usize = 4;
/// The length that marks a goodbye.
pub(crate) const GOODBYE: u32 = u32::MAX;
/// Length up to which a body is put together in memory that is used again, and then copied.
const COPY_UP_TO: usize = 64 << 10;

/// The last record of a payload, if it continues in the next one.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Bytes of a record whose length and head are not complete.
    front: Vec<u8>,
    body: Option<Body>,
    /// Memory for bodies of several payloads.
    memory: BytesMut,
    /// The goodbye has arrived.
    pub(super) ended: bool,
}

#[derive(Debug)]
struct Body {
    head: [u8; HEAD_BYTES],
    length: usize,
    bytes: BytesMut,
}

impl Records {
    /// Takes the next payload, and gives the messages that end in it.
    ///
    /// # Errors
    /// The reason why this is not a stream of records.
    pub(super) fn feed(
        &mut self,
        mut payload: &[u8],
        max_body: usize,
        chunks: &mut ChunkPool,
        mut give: impl FnMut(Message),
    ) -> Result<(), String> {
        while !payload.is_empty() {
            if self.ended {
                return Err("it sent something after its goodbye".into());
            }
            if self.body.is_some() {
                payload = self.go_on(payload, chunks, &mut give);
            } else if self.front.is_empty() && payload.len() >= RECORD_BYTES {
                payload = self.begin(payload, max_body, chunks, &mut give)?;
            } else {
                payload = self.collect(payload, max_body, chunks, &mut give)?;
            }
        }
        Ok(())
    }

    /// Takes a record whose front is complete, and as much of its body as is there.
    #[inline]
    fn begin<'a>(
        &mut self,
        payload: &'a [u8],
        max_body: usize,
        chunks: &mut ChunkPool,
        give: &mut impl FnMut(Message),
    ) -> Result<&'a [u8], String> {
        let (length, rest) = payload.split_first_chunk::<LENGTH_BYTES>().expect("the front is complete");
        let length = u32::from_le_bytes(*length);
        if length == GOODBYE {
            self.ended = true;
            return Ok(rest);
        }
        let (&head, rest) = rest.split_first_chunk().expect("the front is complete");
        let length = length as usize;
        if length > max_body {
            return Err(format!("it announced a body of {length} bytes, above the limit of {max_body} bytes"));
        }
        if let Some((body, rest)) = rest.split_at_checked(length) {
            give(Message { head, body: chunks.copy(body) });
            return Ok(rest);
        }
        let mut bytes = if length <= COPY_UP_TO { std::mem::take(&mut self.memory) } else { BytesMut::new() };
        bytes.reserve(length);
        bytes.extend_from_slice(rest);
        self.body = Some(Body { head, length, bytes });
        Ok(&[])
    }

    /// Collects the front of a record that is cut.
    fn collect<'a>(
        &mut self,
        payload: &'a [u8],
        max_body: usize,
        chunks: &mut ChunkPool,
        give: &mut impl FnMut(Message),
    ) -> Result<&'a [u8], String> {
        let (more, rest) = payload.split_at(payload.len().min(self.missing()));
        self.front.extend_from_slice(more);
        let is_goodbye = self.front.starts_with(&GOODBYE.to_le_bytes());
        // A goodbye is short, and it shows when its length is there.
        if is_goodbye || self.front.len() == RECORD_BYTES {
            let front = std::mem::take(&mut self.front);
            self.begin(&front, max_body, chunks, give)?;
            self.front = front;
            self.front.clear();
        }
        Ok(rest)
    }

    fn missing(&self) -> usize {
        let wanted = if self.front.len() < LENGTH_BYTES { LENGTH_BYTES } else { RECORD_BYTES };
        wanted - self.front.len()
    }

    /// Takes more of a body.
    fn go_on<'a>(&mut self, payload: &'a [u8], chunks: &mut ChunkPool, give: &mut impl FnMut(Message)) -> &'a [u8] {
        let Some(body) = &mut self.body else { return payload };
        let (more, rest) = payload.split_at(payload.len().min(body.length - body.bytes.len()));
        body.bytes.extend_from_slice(more);
        if body.bytes.len() == body.length
            && let Some(Body { head, bytes, .. }) = self.body.take()
        {
            give(Message { head, body: self.finish(bytes, chunks) });
        }
        rest
    }

    fn finish(&mut self, mut bytes: BytesMut, chunks: &mut ChunkPool) -> Bytes {
        if bytes.len() > COPY_UP_TO {
            return bytes.freeze();
        }
        let body = chunks.copy(&bytes);
        bytes.clear();
        self.memory = bytes;
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(bodies: &[usize]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, &length) in bodies.iter().enumerate() {
            bytes.extend_from_slice(&(length as u32).to_le_bytes());
            bytes.extend_from_slice(&[number as u8; HEAD_BYTES]);
            bytes.resize(bytes.len() + length, number as u8);
        }
        bytes
    }

    #[test]
    fn records_survive_every_kind_of_cut() {
        let bodies = [0, 1, 30, COPY_UP_TO, 5, COPY_UP_TO + 1, 0, 700];
        let mut bytes = stream(&bodies);
        bytes.extend_from_slice(&GOODBYE.to_le_bytes());
        for cut in [1, 3, 35, 36, 37, 1400, 9000, usize::MAX] {
            let (mut records, mut chunks, mut got) = (Records::default(), ChunkPool::default(), Vec::new());
            for payload in bytes.chunks(cut.min(bytes.len())) {
                records.feed(payload, 1 << 20, &mut chunks, |message| got.push(message)).unwrap();
            }
            assert!(records.ended, "pieces of {cut}");
            assert_eq!(got.iter().map(|message| message.body.len()).collect::<Vec<_>>(), bodies, "pieces of {cut}");
            for (number, Message { head, body }) in got.iter().enumerate() {
                assert!(head.iter().chain(body.iter()).all(|&byte| byte == number as u8), "pieces of {cut}");
            }
            assert!(records.feed(&[1], 1 << 20, &mut chunks, |_| ()).is_err(), "after the goodbye");
        }
    }

    #[test]
    fn long_bodies_are_refused_before_memory_is_taken() {
        let (mut records, mut chunks) = (Records::default(), ChunkPool::default());
        let bytes = stream(&[1001]);
        let error = records.feed(&bytes[..50], 1000, &mut chunks, |_| ()).unwrap_err();
        assert_eq!(error, "it announced a body of 1001 bytes, above the limit of 1000 bytes");
    }
}
