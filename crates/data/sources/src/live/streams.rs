//! Datagrams that carry streams: a frame may go on in the next datagram of its sender.
//!
//! The datagrams of one flow are a stream, whose scanner finds its way back where one of them was lost. The checksum tells a
//! frame whose middle is missing, and the magic where the next one begins, so the framing has both.

use super::{
    RejectKind,
    link::Link,
    parser::{Parsed, Parser},
    readers::{drain, take},
};
use crate::capture::Flow;
use std::net::SocketAddr;

/// Most flows that are followed at a time. The one that was heard longest ago makes room for another.
pub(crate) const MOST_FLOWS: usize = 16;

/// The streams of a link of datagrams.
pub(super) struct Streams<'a> {
    link: &'a Link,
    /// The flow that was heard last is the last one.
    streams: Vec<Stream>,
}

struct Stream {
    flow: Flow,
    parser: Parser,
}

impl<'a> Streams<'a> {
    pub(super) const fn new(link: &'a Link) -> Self {
        Self { link, streams: Vec::new() }
    }

    /// Delivers the frames that a datagram ends, each of which `note` sees before.
    pub(super) fn take(&mut self, flow: Flow, datagram: &[u8], note: impl FnMut(&Parsed)) {
        let known = self.streams.iter().position(|stream| stream.flow == flow);
        let mut stream = known.map(|at| self.streams.remove(at)).unwrap_or_else(|| self.begin(flow));
        stream.parser.push(datagram);
        stream.drain(self.link, false, note);
        self.streams.push(stream);
    }

    fn begin(&mut self, flow: Flow) -> Stream {
        if self.streams.len() == MOST_FLOWS {
            self.streams.remove(0).end(self.link);
        }
        Stream { flow, parser: Parser::new(self.link) }
    }

    /// Delivers what can be told when nothing has come for a while.
    pub(super) fn settle(&mut self, mut note: impl FnMut(&Flow, &Parsed)) {
        for stream in self.streams.iter_mut().filter(|stream| !stream.parser.is_at_boundary()) {
            let flow = stream.flow;
            stream.drain(self.link, true, |parsed| note(&flow, parsed));
        }
    }

    /// Ends all streams: nothing more comes.
    pub(super) fn end(self) {
        let link = self.link;
        self.streams.into_iter().for_each(|stream| stream.end(link));
    }
}

impl Stream {
    /// The sender, for reports; none for a file.
    fn peer(&self, link: &Link) -> Option<SocketAddr> {
        (!link.is_file).then_some(self.flow.from)
    }

    fn drain(&mut self, link: &Link, settles: bool, mut note: impl FnMut(&Parsed)) {
        let peer = self.peer(link);
        drain(&mut self.parser, (link, peer), &[], settles, |parsed| {
            note(&parsed);
            take(parsed, peer, link)
        });
    }

    fn end(mut self, link: &Link) {
        self.drain(link, true, |_| ());
        if !self.parser.is_at_boundary() {
            link.reject(RejectKind::CutOff, self.peer(link), self.parser.unfinished());
        }
    }
}
