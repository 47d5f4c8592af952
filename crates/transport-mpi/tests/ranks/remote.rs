//! The conformance suite across processes: rank 0 runs it, and reaches the endpoints of the other ranks by calls over
//! sockets.
//!
//! A call is a line with numbers, followed by messages; so is its answer. The waker of an endpoint is called over a
//! connection of its own, since its other calls wait. While no call comes, the other ranks let MPI work: nothing moves by
//! itself there.

use bytes::Bytes;
use evb_core::NodeId;
use evb_transport::{
    HEAD_BYTES, Message, Received, SendError, Transport, Waker,
    conformance::{Subject, run_all},
};
use evb_transport_mpi::{Endpoint, Mpi, MpiOptions};
use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Result, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

/// One side of a connection.
struct Wire(BufReader<TcpStream>);

impl Wire {
    fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("a connection");
        Self(BufReader::with_capacity(1 << 16, stream))
    }

    /// Sends a line, and a message after it.
    fn put(&mut self, line: &str, message: Option<&Message>) -> Result<()> {
        let mut bytes = format!("{line}\n").into_bytes();
        if let Some(message) = message {
            bytes.extend_from_slice(&message.head);
            bytes.extend_from_slice(&message.body);
        }
        self.0.get_mut().write_all(&bytes)
    }

    /// The next line: a word and numbers. No word at the end.
    fn line(&mut self) -> Result<(String, Vec<usize>)> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let mut words = line.split_whitespace().map(str::to_owned);
        let word = words.next().unwrap_or_default();
        Ok((word, words.filter_map(|word| word.parse().ok()).collect()))
    }

    /// Waits for the next line, and does something meanwhile.
    fn wait(&mut self, mut meanwhile: impl FnMut()) {
        if !self.0.buffer().is_empty() {
            return;
        }
        let stream = self.0.get_mut();
        stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a connection");
        while stream.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
            meanwhile();
        }
        stream.set_read_timeout(None).expect("a connection");
    }

    fn message(&mut self, length: usize) -> Result<Message> {
        let (mut head, mut body) = ([0; HEAD_BYTES], vec![0; length]);
        self.0.read_exact(&mut head)?;
        self.0.read_exact(&mut body)?;
        Ok(Message { head, body: Bytes::from(body) })
    }
}

/// An endpoint in another process.
struct Remote {
    local: NodeId,
    /// With the server for the next endpoint.
    wire: Arc<Mutex<Wire>>,
    waker: Arc<Mutex<Wire>>,
}

impl Remote {
    /// Calls, and gives the numbers of the answer and what reads the rest of it.
    fn call<T>(&self, line: &str, message: Option<&Message>, read: impl FnOnce(&mut Wire, &[usize]) -> Result<T>) -> T {
        let mut wire = self.wire.lock().expect("a wire");
        let result = wire.put(line, message).and_then(|()| {
            let (_, numbers) = wire.line()?;
            read(&mut wire, &numbers)
        });
        result.unwrap_or_else(|error| panic!("{} does not answer: {error}", self.local))
    }
}

impl Transport for Remote {
    fn local(&self) -> NodeId {
        self.local
    }

    fn send(&mut self, to: NodeId, message: Message) -> std::result::Result<(), SendError> {
        let line = format!("send {} {}", to.0, message.body.len());
        let answer = self.call(&line, Some(&message), |_, numbers| Ok(numbers.to_vec()));
        match answer[..] {
            [0] => Ok(()),
            [1] => Err(SendError::Full(message)),
            [2] => Err(SendError::Lost),
            [3, length, limit] => Err(SendError::TooLarge { length, limit }),
            _ => panic!("{answer:?} is no answer"),
        }
    }

    fn flush(&mut self) -> bool {
        self.call("flush", None, |_, numbers| Ok(numbers == [1]))
    }

    fn receive(&mut self, limit: usize, sink: &mut Vec<Received>) -> usize {
        self.call(&format!("receive {limit}"), None, |wire, numbers| {
            for _ in 0..numbers[0] {
                let (word, numbers) = wire.line()?;
                let node = NodeId(numbers[0] as u16);
                sink.push(match word.as_str() {
                    "lost" => Received::Lost { peer: node, reason: "as the endpoint says".into() },
                    _ => Received::Message { from: node, message: wire.message(numbers[1])? },
                });
            }
            Ok(numbers[0])
        })
    }

    fn wait(&mut self, timeout: Duration) {
        self.call(&format!("wait {}", timeout.as_nanos()), None, |_, _| Ok(()));
    }

    fn waker(&self) -> Waker {
        let waker = Arc::clone(&self.waker);
        Arc::new(move || {
            let mut wire = waker.lock().expect("a wire");
            let called = wire.put("wake", None).and_then(|()| wire.line());
            called.expect("the waker is called");
        })
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.call("drop", None, |_, _| Ok(()));
    }
}

pub(crate) fn ranks(mpi: &Mpi) {
    assert_eq!(evb_transport_mpi::launched(), Some(mpi.size()));
    if mpi.rank() == 0 { client(mpi) } else { serve(mpi) }
}

/// Runs the suite: node 0 is here, the others are on the other ranks.
fn client(mpi: &Mpi) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    assert_eq!(mpi.share(address.as_bytes()), address.as_bytes());
    let mut wires: Vec<_> = (0..mpi.size()).map(|_| [None, None]).collect();
    for _ in 0..2 * (mpi.size() - 1) {
        let mut wire = Wire::new(listener.accept().expect("a rank").0);
        let (_, numbers) = wire.line().expect("who it is");
        wires[numbers[0]][numbers[1]] = Some(Arc::new(Mutex::new(wire)));
    }
    let wire = |rank: usize, kind: usize| Arc::clone(wires[rank][kind].as_ref().expect("each rank has come"));
    let connect = |nodes: usize| {
        let tell = |line: &str| {
            (1..mpi.size()).for_each(|rank| wire(rank, 0).lock().expect("a wire").put(line, None).expect("a server"));
        };
        tell(&format!("open {nodes}"));
        let mut boxed: Vec<Box<dyn Transport>> = Vec::new();
        boxed.push(Box::new(open(mpi, nodes).expect("node 0 is here")));
        for rank in 1..mpi.size() {
            wire(rank, 0).lock().expect("a wire").line().expect("it is open");
            if rank < nodes {
                boxed.push(Box::new(Remote { local: NodeId(rank as u16), wire: wire(rank, 0), waker: wire(rank, 1) }));
            }
        }
        boxed
    };
    run_all(&Subject { connect: &connect, max_body: super::MAX_BODY });
}

fn open(mpi: &Mpi, nodes: usize) -> Option<Endpoint> {
    let placement: Vec<_> = (0..nodes).collect();
    let options = MpiOptions { max_body: super::MAX_BODY };
    mpi.endpoints(&placement, &options).expect("there are as many ranks").pop()
}

/// Does what rank 0 says until it closes the connection.
fn serve(mpi: &Mpi) {
    let address = String::from_utf8(mpi.share(&[])).expect("an address");
    let connect = |kind: usize| {
        let mut wire = Wire::new(TcpStream::connect(&address).expect("rank 0"));
        wire.put(&format!("rank {} {kind}", mpi.rank()), None).expect("rank 0");
        wire
    };
    let waker = Arc::new(Mutex::new(None::<Waker>));
    let (mut calls, mut wakes, theirs) = (connect(0), connect(1), Arc::clone(&waker));
    thread::spawn(move || {
        while wakes.line().is_ok_and(|(word, _)| !word.is_empty()) {
            theirs.lock().expect("a waker").iter().for_each(|waker| waker());
            if wakes.put("done", None).is_err() {
                return;
            }
        }
    });
    let mut endpoint = None;
    loop {
        calls.wait(|| mpi.progress());
        let Ok((word, numbers)) = calls.line() else { break };
        match word.as_str() {
            "" => break,
            "open" => {
                endpoint = open(mpi, numbers[0]);
                *waker.lock().expect("a waker") = endpoint.as_ref().map(Transport::waker);
            }
            "drop" => endpoint = None,
            _ => {
                let endpoint = endpoint.as_mut().expect("an endpoint is open");
                serve_one(endpoint, &mut calls, &word, &numbers).expect("rank 0");
                continue;
            }
        }
        calls.put("done", None).expect("rank 0");
    }
}

fn serve_one(endpoint: &mut Endpoint, wire: &mut Wire, word: &str, numbers: &[usize]) -> Result<()> {
    match word {
        "send" => {
            let message = wire.message(numbers[1])?;
            match endpoint.send(NodeId(numbers[0] as u16), message) {
                Ok(()) => wire.put("done 0", None),
                Err(SendError::Full(_)) => wire.put("done 1", None),
                Err(SendError::Lost) => wire.put("done 2", None),
                Err(SendError::TooLarge { length, limit }) => wire.put(&format!("done 3 {length} {limit}"), None),
            }
        }
        "flush" => wire.put(&format!("done {}", u8::from(endpoint.flush())), None),
        "wait" => {
            endpoint.wait(Duration::from_nanos(numbers[0] as u64));
            wire.put("done", None)
        }
        _ => {
            let mut sink = Vec::new();
            endpoint.receive(numbers[0], &mut sink);
            wire.put(&format!("done {}", sink.len()), None)?;
            sink.iter().try_for_each(|item| match item {
                Received::Message { from, message } => {
                    wire.put(&format!("message {} {}", from.0, message.body.len()), Some(message))
                }
                Received::Lost { peer, .. } => wire.put(&format!("lost {}", peer.0), None),
            })
        }
    }
}
