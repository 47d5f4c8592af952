//! A device with its current message, its sends under way, and the peers that are known to have ended.

use crate::Code;
use evb_velo_device::{Body, Device, DeviceError, Envelope, Incoming, NOTES, Note, Peer, SENDERS, Span};
use std::time::{Duration, Instant};

/// Kind of an arrival: a message.
pub const KIND_MESSAGE: u32 = 0;
/// Kind of an arrival: a notice without bytes.
pub const KIND_NOTICE: u32 = 1;

/// Time between two looks at the processes of peers.
const LOOK: Duration = Duration::from_millis(5);
/// Longest sleep while a message is under way: its receiver rings no bell.
const NAP: Duration = Duration::from_micros(200);
/// Empty polls before a wait sleeps.
const SPINS: u32 = 500;

/// `evbvelo_message`: what has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Arrival {
    /// Length in bytes.
    pub length: u64,
    /// The sender's word for choosing.
    pub tag: u64,
    /// Another word of the sender.
    pub data: u64,
    /// The peer that has sent it, or -1 if it has ended or knows too many senders.
    pub peer: i32,
    /// [`KIND_MESSAGE`] or [`KIND_NOTICE`].
    pub kind: u32,
}

#[derive(Debug)]
enum Send {
    Free,
    UnderWay(Note),
    Over(Result<(), Code>),
}

/// A device as C sees it.
#[derive(Debug)]
pub(crate) struct Lane {
    device: Device,
    /// The first message, which the program has not received yet.
    first: Option<(Incoming, Arrival)>,
    /// Bytes of the first message that have come in blocks.
    pulled: Option<usize>,
    repliers: Vec<Option<i32>>,
    sends: Vec<Send>,
    under_way: usize,
    /// A send is over and not reported by a wait yet.
    news: bool,
    ended: Vec<bool>,
    looked: Instant,
}

/// The words of a message beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    pub(crate) tag: u64,
    pub(crate) data: u64,
    pub(crate) kind: u32,
}

impl Lane {
    pub(crate) fn open(name: Option<&str>) -> Result<Self, Code> {
        Ok(Self {
            device: Device::open(name)?,
            first: None,
            pulled: None,
            repliers: vec![None; SENDERS],
            sends: Vec::new(),
            under_way: 0,
            news: false,
            ended: Vec::new(),
            looked: Instant::now(),
        })
    }

    pub(crate) fn device(&mut self) -> &mut Device {
        &mut self.device
    }

    /// Returns the peer if it exists and is not known to have ended.
    pub(crate) fn peer(&self, peer: i32) -> Result<Peer, Code> {
        let peer = usize::try_from(peer).ok().filter(|peer| *peer < self.device.peers()).ok_or(Code::Invalid)?;
        if self.ended.get(peer) == Some(&true) { Err(Code::Gone) } else { Ok(peer) }
    }

    /// 0 if the memory can be used again, otherwise the number of a send under way.
    pub(crate) fn send(&mut self, peer: i32, words: Words, span: Span) -> Result<i32, Code> {
        let peer = self.peer(peer)?;
        let Words { tag, data, kind } = words;
        let envelope = Envelope { length: span.length as u64, tag, data, flags: kind as u16 };
        let note = match self.device.send(peer, &envelope, &[span]) {
            Ok(None) => return Ok(0),
            Ok(Some(note)) => note,
            Err(DeviceError::Full) => {
                self.drive();
                self.look();
                return Err(if self.ended.get(peer) == Some(&true) { Code::Gone } else { Code::Again });
            }
            Err(DeviceError::Gone) => {
                self.bury(peer);
                return Err(Code::Gone);
            }
            Err(error) => return Err(error.into()),
        };
        self.under_way += 1;
        let place = self.sends.iter().position(|send| matches!(send, Send::Free)).unwrap_or(self.sends.len());
        if place == self.sends.len() {
            self.sends.push(Send::Free);
        }
        self.sends[place] = Send::UnderWay(note);
        Ok(place as i32 + 1)
    }

    /// 1 if a send is over, 0 if it is under way.
    pub(crate) fn done(&mut self, send: i32) -> Result<i32, Code> {
        self.drive();
        self.look();
        let place = usize::try_from(send).ok().and_then(|send| send.checked_sub(1)).ok_or(Code::Invalid)?;
        let send = self.sends.get_mut(place).ok_or(Code::Invalid)?;
        match send {
            Send::Free => Err(Code::Invalid),
            Send::UnderWay(_) => Ok(0),
            Send::Over(result) => {
                let result = *result;
                *send = Send::Free;
                result.map(|()| 1)
            }
        }
    }

    /// The first message, if one has arrived.
    pub(crate) fn poll(&mut self) -> Option<Arrival> {
        if self.first.is_none() {
            let incoming = self.device.poll();
            if let Some(incoming) = incoming {
                let Envelope { length, tag, data, flags } = incoming.envelope;
                let peer = self.replier(incoming.sender);
                self.first = Some((incoming, Arrival { length, tag, data, peer, kind: flags.into() }));
            }
        }
        if self.under_way > 0 {
            self.drive();
        }
        self.first.map(|(_, arrival)| arrival)
    }

    /// The peer that a sender is.
    fn replier(&mut self, sender: u16) -> i32 {
        if let Some(&Some(peer)) = self.repliers.get(sender as usize) {
            return peer;
        }
        let peer = self.device.sender(sender).and_then(|address| self.device.connect(address).ok());
        let peer = peer.map_or(-1, |peer| peer as i32);
        if let Some(place) = self.repliers.get_mut(sender as usize) {
            *place = Some(peer);
        }
        peer
    }

    /// Moves the first message into memory; its length.
    pub(crate) fn receive(&mut self, room: Span) -> Result<i64, Code> {
        self.poll().ok_or(Code::Again)?;
        let (Incoming { sender, envelope, body }, _) = self.first.expect("a message");
        let length = envelope.length as usize;
        if length > room.length {
            return Err(Code::TooLong);
        }
        let room = Span { length, ..room };
        let result = match body {
            Body::Line(line) => {
                evb_velo_device::copy_out(&[room], 0, &line[..length.min(line.len())]);
                Ok(())
            }
            Body::Block(index) => {
                let there = self.device.deliver_block(sender, index, length, &[room]);
                if there { Ok(()) } else { Err(Code::Gone) }
            }
            Body::Note(index) => self.fetch(sender, index, room),
        };
        if result != Err(Code::Again) {
            self.forget_first();
        }
        result.map(|()| length as i64)
    }

    /// Fetches the message of a note, at once or block by block.
    fn fetch(&mut self, sender: u16, index: u16, room: Span) -> Result<(), Code> {
        let Some(mut done) = self.pulled else {
            let whole = self.device.fetch_note(sender, index, &[room])?;
            self.pulled = Some(0);
            return if whole { Ok(()) } else { Err(Code::Again) };
        };
        while done < room.length {
            let more = self.device.pull(sender, index, &[room], done, room.length)?;
            if more == 0 {
                let alive = self.device.is_sender_alive(sender);
                return Err(if alive { Code::Again } else { Code::Gone });
            }
            done += more;
            self.pulled = Some(done);
        }
        Ok(())
    }

    /// Ends the first message. Its sender gets the room at once: the program may not look again for long.
    fn forget_first(&mut self) {
        (self.first, self.pulled) = (None, None);
        self.device.release();
    }

    /// Throws the first message away.
    pub(crate) fn discard(&mut self) -> Result<i32, Code> {
        self.poll().ok_or(Code::Again)?;
        let (incoming, _) = self.first.expect("a message");
        self.forget_first();
        match incoming.body {
            Body::Line(_) => {}
            Body::Block(index) => drop(self.device.deliver_block(incoming.sender, index, 0, &[])),
            Body::Note(index) => self.device.refuse(incoming.sender, index),
        }
        Ok(0)
    }

    /// Drives the sends under way.
    fn drive(&mut self) {
        for send in &mut self.sends {
            if let Send::UnderWay(note) = send
                && self.device.serve(note)
            {
                *send = Send::Over(Ok(()));
                self.under_way -= 1;
                self.news = true;
            }
        }
    }

    /// Looks now and then at the processes of peers. True if one has ended since.
    fn look(&mut self) -> bool {
        if self.looked.elapsed() < LOOK {
            return false;
        }
        self.looked = Instant::now();
        let living = |peer: &usize| self.ended.get(*peer) != Some(&true);
        let ended: Vec<_> =
            (0..self.device.peers()).filter(living).filter(|peer| !self.device.is_alive(*peer)).collect();
        ended.iter().for_each(|peer| self.bury(*peer));
        !ended.is_empty()
    }

    /// Ends everything that is under way to a peer that has ended.
    fn bury(&mut self, peer: Peer) {
        self.ended.resize(self.ended.len().max(peer + 1), false);
        self.ended[peer] = true;
        for send in &mut self.sends {
            if let Send::UnderWay(note) = send
                && self.device.peer_of(note) == peer
            {
                self.device.abandon(note);
                *send = Send::Over(Err(Code::Gone));
                self.under_way -= 1;
                self.news = true;
            }
        }
        self.device.bury(peer);
    }

    /// 1 if a message is there or a send is over since the last wait, 0 at the end of the time.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Result<i32, Code> {
        let end = Instant::now() + timeout;
        for spin in 0_u32.. {
            if self.poll().is_some() || std::mem::take(&mut self.news) {
                return Ok(1);
            }
            if spin < SPINS {
                std::hint::spin_loop();
                continue;
            }
            if self.look() {
                self.news = false;
                return Err(Code::Gone);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.device.wait(left.min(if self.under_way > 0 { NAP } else { LOOK }));
        }
        Ok(0)
    }

    /// Waits until peers have received everything. 1 if they have, 0 at the end of the time.
    pub(crate) fn flush(&mut self, timeout: Duration) -> Result<i32, Code> {
        let end = Instant::now() + timeout;
        loop {
            self.drive();
            self.look();
            if self.device.is_idle() {
                return Ok(1);
            }
            if Instant::now() >= end {
                return Ok(0);
            }
            std::thread::sleep(NAP.min(end.saturating_duration_since(Instant::now())));
        }
    }
}

/// No more sends are under way than a device has notes, so their numbers fit C's `int`.
const _: () = assert!(NOTES < i32::MAX as usize);
