//! The receiving side of a pair: pieces of all links are put in order and together.

use super::pair::cost_of;
use bytes::BytesMut;
use evb_transport::Message;
use std::collections::{BTreeMap, VecDeque};

/// A message that its user can take, with the number of its last piece and its cost.
#[derive(Debug)]
struct Ready {
    message: Message,
    last: u64,
    cost: usize,
}

/// Pieces of one sender.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    /// Number of the next piece.
    next: u64,
    /// Pieces that came before it, each with the length of the body that it is a segment of.
    early: BTreeMap<u64, (u32, Message)>,
    /// Segments of one body, and its length.
    partial: BytesMut,
    ready: VecDeque<Ready>,
    /// Bytes that were taken since the peer was notified.
    pub(super) untold_bytes: usize,
}

impl Incoming {
    /// Takes a piece, unless it came before.
    ///
    /// # Errors
    /// The segments do not fit together.
    pub(super) fn put(&mut self, number: u64, whole: u32, message: Message) -> Result<(), &'static str> {
        if number > self.next {
            self.early.entry(number).or_insert((whole, message));
            return Ok(());
        }
        if number < self.next {
            return Ok(());
        }
        self.accept(whole, message)?;
        while let Some((whole, message)) = self.early.remove(&self.next) {
            self.accept(whole, message)?;
        }
        Ok(())
    }

    /// Takes the next piece.
    fn accept(&mut self, whole: u32, mut message: Message) -> Result<(), &'static str> {
        let (last, cost) = (self.next, cost_of(message.body.len()));
        self.next += 1;
        if whole > 0 {
            if self.partial.is_empty() {
                self.partial.reserve(whole as usize);
            }
            self.partial.extend_from_slice(&message.body);
            if self.partial.len() < whole as usize {
                self.untold_bytes += cost;
                return Ok(());
            } else if self.partial.len() > whole as usize {
                return Err("it sent segments that do not fit together");
            }
            message.body = std::mem::take(&mut self.partial).freeze();
        }
        self.ready.push_back(Ready { message, last, cost });
        Ok(())
    }

    /// The next message for the user.
    pub(super) fn take(&mut self) -> Option<Message> {
        let Ready { message, cost, .. } = self.ready.pop_front()?;
        self.untold_bytes += cost;
        Some(message)
    }

    pub(super) fn is_readable(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Number of pieces that need no memory here any more: all before the last piece of the oldest message that waits.
    pub(super) fn taken(&self) -> u64 {
        self.ready.front().map_or(self.next, |ready| ready.last)
    }
}
