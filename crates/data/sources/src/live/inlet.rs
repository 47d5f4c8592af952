//! The inlet of a second stage: super-fragments come from one builder unit of the first stage over a Unix socket.

use super::{
    LiveItem, LiveSource, Outlet, counter_mask,
    link::Link,
    parser::{Frames, item},
    readers::{ACCEPT_POLL, POLL, passes},
    spawn,
};
use crate::{OpenOptions, SourceError, framing::FrameParser};
use std::{
    collections::VecDeque,
    fs,
    io::{self, Read as _},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::Arc,
    thread::{self, JoinHandle},
};

/// Width of the counter of super-fragments in bits.
pub const INLET_BITS: u8 = 64;
/// Bytes read at a time.
const READ_SIZE: usize = 1 << 18;

impl LiveSource {
    /// Listens at a path for the one builder unit that sends to it. The end of the connection is the end of the data, even
    /// without an end of run: a builder unit that is gone does not come back. `waker` is called as by [`LiveSource::start`].
    ///
    /// # Errors
    /// If the path cannot be listened at.
    pub fn inlet(path: &Path, options: &OpenOptions, waker: Arc<dyn Fn() + Send + Sync>) -> Result<Self, SourceError> {
        let error = |error| SourceError::Listen { address: path.display().to_string(), error };
        // A socket of the run before, by the same node.
        let _none = fs::remove_file(path);
        let listener = UnixListener::bind(path).map_err(error)?;
        listener.set_nonblocking(true).map_err(error)?;
        let max_fragment = options.max_fragment;
        let frames = Frames { framing: None, max_fragment, counter_mask: counter_mask(INLET_BITS)? };
        let (link, outlet) =
            (Link::new(frames, false, 1), Arc::new(Outlet::new(options.unit.into(), max_fragment, waker)));
        link.join(&outlet);
        let source = Self { taken: VecDeque::new(), slices: None, outlet, link };
        source.link.begin((start(listener, &source.link).map_err(error)?, None));
        Ok(source)
    }
}

fn start(listener: UnixListener, link: &Arc<Link>) -> io::Result<JoinHandle<()>> {
    let link = link.clone();
    spawn("inlet", move || {
        if let Some(stream) = accept(&listener, &link) {
            let _open = link.connected(None);
            let end = read(stream, &link);
            link.deliver(0, end);
            link.wake();
        }
    })
}

/// Waits for the connection; `None` if the source stops before.
fn accept(listener: &UnixListener, link: &Link) -> Option<UnixStream> {
    while !link.stopped() {
        match listener.accept() {
            Ok((stream, _)) => return Some(stream),
            Err(_) => thread::park_timeout(ACCEPT_POLL),
        }
    }
    None
}

/// Delivers all super-fragments, and returns the end of the data.
fn read(mut stream: UnixStream, link: &Link) -> LiveItem {
    let (mut parser, mut bytes) = (FrameParser::new(link.frames.max_fragment), vec![0; READ_SIZE]);
    let mut is_open = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(POLL))).is_ok();
    while is_open && !link.stopped() {
        match stream.read(&mut bytes) {
            Ok(read) => {
                parser.push(&bytes[..read]);
                is_open = read > 0;
            }
            Err(error) => is_open = passes(&error),
        }
        // Anything else ends the data: the other end is evb, too.
        while let Some(frame) = parser.pop().unwrap_or_else(|_| {
            is_open = false;
            None
        }) {
            let (is_end, counter) = (frame.end_of_run, frame.counter);
            let item = item(frame, counter);
            if is_end || !link.deliver(0, item.clone()) {
                return item;
            }
        }
        link.wake();
    }
    LiveItem::EndOfRun { counter: None, sent: None }
}
