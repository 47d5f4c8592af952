//! An endpoint in another process as a transport of this one, for the tests of transports that connect processes.
//!
//! The process with the endpoint calls [`serve`], and a test uses it through a [`Remote`]. A call is a line with a word
//! and numbers, followed by bytes; so is its answer. The waker is called over its own connection, since other calls
//! wait.

use crate::{HEAD_BYTES, Message, Received, SendError, Transport, Waker};
use evb_core::NodeId;
use std::{
    io::{self, BufRead, BufReader, ErrorKind, Read, Write},
    net::TcpStream,
    process::Child,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

/// Time between two things that a waiting process does meanwhile.
const MEANWHILE: Duration = Duration::from_millis(1);

/// One side of a connection.
pub struct Wire(BufReader<TcpStream>);

impl Wire {
    /// Takes a connection.
    ///
    /// # Errors
    /// It is closed.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::with_capacity(1 << 16, stream)))
    }

    /// Sends a line, which begins with a word and has numbers behind it.
    ///
    /// # Errors
    /// The other side is gone.
    pub fn put(&mut self, line: &str) -> io::Result<()> {
        self.put_with(line, &[])
    }

    /// The next line: its word and its numbers.
    ///
    /// # Errors
    /// The other side is gone.
    pub fn line(&mut self) -> io::Result<(String, Vec<usize>)> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let mut words = line.split_whitespace();
        let word = words.next().unwrap_or_default().to_owned();
        Ok((word, words.filter_map(|word| word.parse().ok()).collect()))
    }

    /// Waits for the next line or the end, and does something meanwhile.
    ///
    /// # Errors
    /// The connection cannot be used.
    pub fn wait(&mut self, mut meanwhile: impl FnMut()) -> io::Result<()> {
        if !self.0.buffer().is_empty() {
            return Ok(());
        }
        let stream = self.0.get_mut();
        stream.set_read_timeout(Some(MEANWHILE))?;
        while stream.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
            meanwhile();
        }
        stream.set_read_timeout(None)
    }

    fn put_with(&mut self, line: &str, blocks: &[&[u8]]) -> io::Result<()> {
        let bytes = [&[line.as_bytes(), b"\n"], blocks].concat().concat();
        self.0.get_mut().write_all(&bytes)
    }

    fn put_message(&mut self, line: &str, message: &Message) -> io::Result<()> {
        self.put_with(&format!("{line} {}", message.body.len()), &[&message.head, &message.body])
    }

    fn block(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut block = vec![0; length];
        self.0.read_exact(&mut block)?;
        Ok(block)
    }

    fn message(&mut self, length: usize) -> io::Result<Message> {
        let mut head = [0; HEAD_BYTES];
        self.0.read_exact(&mut head)?;
        Ok(Message { head, body: self.block(length)?.into() })
    }

    fn put_received(&mut self, item: &Received) -> io::Result<()> {
        match item {
            Received::Message { from, message } => self.put_message(&format!("message {}", from.0), message),
            Received::Lost { peer, reason } => {
                self.put_with(&format!("lost {} {}", peer.0, reason.len()), &[reason.as_bytes()])
            }
        }
    }

    fn received(&mut self) -> io::Result<Received> {
        let (word, numbers) = self.line()?;
        let (node, length) = (NodeId(numbers[0] as u16), numbers[1]);
        Ok(match word.as_str() {
            "lost" => Received::Lost { peer: node, reason: String::from_utf8_lossy(&self.block(length)?).into_owned() },
            _ => Received::Message { from: node, message: self.message(length)? },
        })
    }
}

/// An endpoint in another process. Dropping it drops that endpoint, too, and waits for the end of the process.
pub struct Remote {
    local: NodeId,
    calls: Wire,
    wakes: Arc<Mutex<Wire>>,
    process: Option<Child>,
}

impl Remote {
    /// The endpoint of node `local`, which is served at the other ends of `calls` and `wakes`; and the process, if it
    /// ends with its endpoint.
    #[must_use]
    pub fn new(local: NodeId, calls: Wire, wakes: Wire, process: Option<Child>) -> Self {
        Self { local, calls, wakes: Arc::new(Mutex::new(wakes)), process }
    }

    /// Kills the process.
    ///
    /// # Panics
    /// If there is none, or it has ended.
    pub fn kill(&mut self) {
        let process = self.process.as_mut().expect("there is a process");
        process.kill().expect("it lives");
        process.wait().expect("it ends");
    }

    /// Calls, and gives the numbers of the answer.
    fn call(&mut self, line: &str) -> io::Result<Vec<usize>> {
        self.calls.put(line)?;
        Ok(self.calls.line()?.1)
    }

    fn try_send(&mut self, to: NodeId, message: &Message) -> io::Result<Result<(), SendError>> {
        self.calls.put_message(&format!("send {}", to.0), message)?;
        let (word, numbers) = self.calls.line()?;
        Ok(match (word.as_str(), &numbers[..]) {
            ("done", []) => Ok(()),
            ("full", &[length]) => Err(SendError::Full(self.calls.message(length)?)),
            ("lost", []) => Err(SendError::Lost),
            ("large", &[length, limit]) => Err(SendError::TooLarge { length, limit }),
            _ => panic!("{word} {numbers:?} is not an answer"),
        })
    }

    fn try_receive(&mut self, limit: usize, sink: &mut Vec<Received>) -> io::Result<usize> {
        let count = self.call(&format!("receive {limit}"))?[0];
        for _ in 0..count {
            sink.push(self.calls.received()?);
        }
        Ok(count)
    }

    fn expect<T>(&self, result: io::Result<T>) -> T {
        result.unwrap_or_else(|error| panic!("{} does not answer: {error}", self.local))
    }
}

impl Transport for Remote {
    fn local(&self) -> NodeId {
        self.local
    }

    fn send(&mut self, to: NodeId, message: Message) -> Result<(), SendError> {
        let result = self.try_send(to, &message);
        self.expect(result)
    }

    fn flush(&mut self) -> bool {
        let answer = self.call("flush");
        self.expect(answer) == [1]
    }

    fn receive(&mut self, limit: usize, sink: &mut Vec<Received>) -> usize {
        let result = self.try_receive(limit, sink);
        self.expect(result)
    }

    fn wait(&mut self, timeout: Duration) {
        let answer = self.call(&format!("wait {}", timeout.as_nanos()));
        self.expect(answer);
    }

    fn waker(&self) -> Waker {
        let wakes = Arc::clone(&self.wakes);
        Arc::new(move || {
            let mut wakes = wakes.lock().expect("a wire");
            wakes.put("wake").and_then(|()| wakes.line()).expect("the waker is called");
        })
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _gone = self.call("drop");
        if let Some(process) = &mut self.process {
            let _ended = process.wait();
        }
    }
}

/// Does with an endpoint what a [`Remote`] at the other ends of `calls` and `wakes` says, until it drops the endpoint.
/// `meanwhile` is called every now and then while nothing is to be done.
///
/// # Errors
/// The other side is gone.
pub fn serve(
    mut endpoint: impl Transport,
    calls: &mut Wire,
    mut wakes: Wire,
    mut meanwhile: impl FnMut(),
) -> io::Result<()> {
    let waker = endpoint.waker();
    thread::spawn(move || {
        while wakes.line().is_ok() {
            waker();
            if wakes.put("done").is_err() {
                return;
            }
        }
    });
    loop {
        calls.wait(&mut meanwhile)?;
        let (word, numbers) = calls.line()?;
        if word == "drop" {
            drop(endpoint);
            return calls.put("done");
        }
        serve_one(&mut endpoint, calls, &word, &numbers)?;
    }
}

fn serve_one(endpoint: &mut impl Transport, wire: &mut Wire, word: &str, numbers: &[usize]) -> io::Result<()> {
    match (word, numbers) {
        ("send", &[to, length]) => {
            let message = wire.message(length)?;
            match endpoint.send(NodeId(to as u16), message) {
                Ok(()) => wire.put("done"),
                Err(SendError::Full(message)) => wire.put_message("full", &message),
                Err(SendError::Lost) => wire.put("lost"),
                Err(SendError::TooLarge { length, limit }) => wire.put(&format!("large {length} {limit}")),
            }
        }
        ("flush", []) => wire.put(&format!("done {}", u8::from(endpoint.flush()))),
        ("receive", &[limit]) => {
            let mut sink = Vec::new();
            endpoint.receive(limit, &mut sink);
            wire.put(&format!("done {}", sink.len()))?;
            sink.iter().try_for_each(|item| wire.put_received(item))
        }
        ("wait", &[nanoseconds]) => {
            endpoint.wait(Duration::from_nanos(nanoseconds as u64));
            wire.put("done")
        }
        _ => panic!("{word} {numbers:?} is not a call"),
    }
}
