//! A transport that stands for an endpoint in another process, and the process. Calls are frames over a socket: a length,
//! the number of the call, and its arguments; the answer is a length and the result. Calls of the waker have a socket of
//! their own, because they come while another call is waiting.

use bytes::Bytes;
use evb_core::NodeId;
use evb_transport::{Connect, HEAD_BYTES, Message, Received, SendError, Transport, Waker};
use evb_transport_ofi::{Ofi, OfiOptions};
use std::{
    env,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

const VARIABLE: &str = "EVB_TEST_PARENT";

const ADDRESS: u8 = 0;
const CONNECT: u8 = 1;
const SEND: u8 = 2;
const FLUSH: u8 = 3;
const RECEIVE: u8 = 4;
const WAIT: u8 = 5;

fn write_frame(mut stream: &TcpStream, parts: &[&[u8]]) -> std::io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut frame = (length as u64).to_le_bytes().to_vec();
    parts.iter().for_each(|part| frame.extend_from_slice(part));
    stream.write_all(&frame)
}

fn read_frame(mut stream: &TcpStream) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let mut frame = vec![0; u64::from_le_bytes(length) as usize];
    stream.read_exact(&mut frame)?;
    Ok(frame)
}

/// Numbers and texts off the front of a frame.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn number(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes(8).try_into().expect("eight bytes"))
    }

    fn node(&mut self) -> NodeId {
        NodeId(self.number() as u16)
    }

    fn block(&mut self) -> &'a [u8] {
        let length = self.number() as usize;
        self.bytes(length)
    }

    fn text(&mut self) -> String {
        String::from_utf8(self.block().to_vec()).expect("a text")
    }

    fn message(&mut self) -> Message {
        let head = self.bytes(HEAD_BYTES).try_into().expect("a head");
        Message { head, body: Bytes::copy_from_slice(self.block()) }
    }
}

fn put_block(frame: &mut Vec<u8>, bytes: &[u8]) {
    frame.extend((bytes.len() as u64).to_le_bytes());
    frame.extend_from_slice(bytes);
}

fn put_node(frame: &mut Vec<u8>, node: NodeId) {
    frame.extend(u64::from(node.0).to_le_bytes());
}

/// The endpoint's process, seen from its parent.
pub(crate) struct Remote {
    local: NodeId,
    child: Child,
    calls: TcpStream,
    wakes: Arc<TcpStream>,
}

impl Remote {
    /// Starts this program again, as the test of this name.
    pub(crate) fn start(test: &str, provider: &str, local: NodeId, nodes: u16, peer_timeout: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let mut command = Command::new(env::current_exe().expect("this program has a path"));
        command.args(["--exact", test, "--nocapture"]).stdout(Stdio::null());
        command.env(VARIABLE, listener.local_addr().expect("an address").to_string());
        let child = command.spawn().expect("this program starts");
        let accept = || {
            let (stream, _) = listener.accept().expect("the child connects");
            stream.set_nodelay(true).expect("a setting");
            stream
        };
        let (calls, wakes) = (accept(), Arc::new(accept()));
        let mut arguments = Vec::new();
        put_block(&mut arguments, provider.as_bytes());
        put_node(&mut arguments, local);
        arguments.extend(u64::from(nodes).to_le_bytes());
        arguments.extend((peer_timeout.as_millis() as u64).to_le_bytes());
        write_frame(&calls, &[&arguments]).expect("the child listens");
        Self { local, child, calls, wakes }
    }

    pub(crate) fn address(&mut self) -> String {
        String::from_utf8(self.call(ADDRESS, &[])).expect("a text")
    }

    /// Lets the other process join these peers, without waiting for it.
    pub(crate) fn begin_connect(&mut self, peers: &[(NodeId, String)]) {
        let mut arguments = (peers.len() as u64).to_le_bytes().to_vec();
        for (peer, address) in peers {
            put_node(&mut arguments, *peer);
            put_block(&mut arguments, address.as_bytes());
        }
        write_frame(&self.calls, &[&[CONNECT], &arguments]).expect("the child listens");
    }

    pub(crate) fn end_connect(&mut self) {
        let answer = read_frame(&self.calls).expect("an answer");
        assert!(answer.is_empty(), "{}: {}", self.local, String::from_utf8_lossy(&answer));
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it lives");
        self.child.wait().expect("it ends");
    }

    fn call(&self, call: u8, arguments: &[u8]) -> Vec<u8> {
        write_frame(&self.calls, &[&[call], arguments]).expect("the child listens");
        read_frame(&self.calls).expect("an answer")
    }
}

impl Transport for Remote {
    fn local(&self) -> NodeId {
        self.local
    }

    fn send(&mut self, to: NodeId, message: Message) -> Result<(), SendError> {
        let mut arguments = Vec::new();
        put_node(&mut arguments, to);
        arguments.extend(message.head);
        put_block(&mut arguments, &message.body);
        let answer = self.call(SEND, &arguments);
        let mut answer = Reader(&answer);
        match answer.number() {
            0 => Ok(()),
            1 => Err(SendError::Full(answer.message())),
            2 => Err(SendError::Lost),
            _ => Err(SendError::TooLarge { length: answer.number() as usize, limit: answer.number() as usize }),
        }
    }

    fn flush(&mut self) -> bool {
        self.call(FLUSH, &[]) == [1]
    }

    fn receive(&mut self, limit: usize, sink: &mut Vec<Received>) -> usize {
        let answer = self.call(RECEIVE, &(limit as u64).to_le_bytes());
        let mut answer = Reader(&answer);
        let count = answer.number() as usize;
        for _ in 0..count {
            let (is_loss, from) = (answer.number() == 1, answer.node());
            sink.push(if is_loss {
                Received::Lost { peer: from, reason: answer.text() }
            } else {
                Received::Message { from, message: answer.message() }
            });
        }
        count
    }

    fn wait(&mut self, timeout: Duration) {
        self.call(WAIT, &(timeout.as_micros() as u64).to_le_bytes());
    }

    fn waker(&self) -> Waker {
        let wakes = Arc::clone(&self.wakes);
        Arc::new(move || drop((&*wakes).write(&[1])))
    }
}

impl Drop for Remote {
    /// Without its parent the child drops its endpoint and ends.
    fn drop(&mut self) {
        let _ = self.calls.shutdown(std::net::Shutdown::Both);
        let _ = self.child.wait();
    }
}

/// The other process: carries out calls until the parent is gone. Does nothing where there is no parent.
pub(crate) fn serve(options: impl Fn(String, NodeId, u16, Duration) -> OfiOptions) {
    let Ok(parent) = env::var(VARIABLE) else { return };
    let (calls, mut wakes) = (TcpStream::connect(&parent).unwrap(), TcpStream::connect(&parent).unwrap());
    calls.set_nodelay(true).unwrap();
    let arguments = read_frame(&calls).unwrap();
    let mut arguments = Reader(&arguments);
    let (provider, local) = (arguments.text(), arguments.node());
    let (nodes, timeout) = (arguments.number() as u16, Duration::from_millis(arguments.number()));
    let mut node = Ofi::open(local, options(provider, local, nodes, timeout)).unwrap();
    let waker = node.waker();
    thread::spawn(move || {
        while wakes.read(&mut [0]).is_ok_and(|count| count > 0) {
            waker();
        }
    });
    while let Ok(call) = read_frame(&calls) {
        let answer = carry_out(&mut node, call[0], Reader(&call[1..]));
        if write_frame(&calls, &[&answer]).is_err() {
            return;
        }
    }
}

fn carry_out(node: &mut Ofi, call: u8, mut arguments: Reader<'_>) -> Vec<u8> {
    match call {
        ADDRESS => node.address().into_bytes(),
        CONNECT => {
            let count = arguments.number();
            let peers: Vec<_> = (0..count).map(|_| (arguments.node(), arguments.text())).collect();
            node.connect(&peers).map_or_else(|error| error.to_string().into_bytes(), |()| Vec::new())
        }
        SEND => answer_to_send(node.send(arguments.node(), arguments.message())),
        FLUSH => vec![u8::from(node.flush())],
        RECEIVE => {
            let mut sink = Vec::new();
            node.receive(arguments.number() as usize, &mut sink);
            received(&sink)
        }
        _ => {
            node.wait(Duration::from_micros(arguments.number()));
            Vec::new()
        }
    }
}

fn answer_to_send(result: Result<(), SendError>) -> Vec<u8> {
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    match result {
        Ok(()) => words(&[0]),
        Err(SendError::Full(message)) => {
            let mut answer = words(&[1]);
            answer.extend(message.head);
            put_block(&mut answer, &message.body);
            answer
        }
        Err(SendError::Lost) => words(&[2]),
        Err(SendError::TooLarge { length, limit }) => words(&[3, length as u64, limit as u64]),
    }
}

fn received(items: &[Received]) -> Vec<u8> {
    let mut answer = (items.len() as u64).to_le_bytes().to_vec();
    for item in items {
        match item {
            Received::Message { from, message } => {
                answer.extend(0u64.to_le_bytes());
                put_node(&mut answer, *from);
                answer.extend(message.head);
                put_block(&mut answer, &message.body);
            }
            Received::Lost { peer, reason } => {
                answer.extend(1u64.to_le_bytes());
                put_node(&mut answer, *peer);
                put_block(&mut answer, reason.as_bytes());
            }
        }
    }
    answer
}
