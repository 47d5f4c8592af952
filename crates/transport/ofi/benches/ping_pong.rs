//! The message layer against libfabric without it: its own `fi_pingpong`, and a plain loop in C with the same calls.
//! The three take turns, so that a busy machine affects them alike; medians and minima of one way are printed.
//!
//! The program starts itself again as the other side: `serve` and the provider are its arguments then.

use evb_core::NodeId;
use evb_transport::{Connect, EndpointOptions, MessageLayer, Refused, Token};
use evb_transport_ofi::{OfiLayer, OfiOptions, providers};
use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Instant,
};

const SIZES: [usize; 4] = [8, 64, 1024, 65536];
const ROUNDS: usize = 9;
/// The port on which `fi_pingpong` meets its other side.
const CONTROL_PORT: &str = "47593";

/// A provider, its name for `fi_pingpong`, and the number of round trips of a measurement at the smallest size.
const PROVIDERS: [(&str, &str, usize); 2] = [("tcp", "tcp;ofi_rxm", 10_000), ("shm", "shm", 100_000)];

fn main() {
    let arguments: Vec<_> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match &arguments[..] {
        [word, provider] if word == "serve" => serve(provider),
        [word, provider, size, count] if word == "ours" => {
            let number = |text: &String| text.parse().expect("a number");
            println!("{:.0}", Ours::measure(provider, number(size), number(count)));
        }
        _ => compare(),
    }
}

fn options(provider: &str) -> OfiOptions {
    OfiOptions { provider: provider.into(), ..OfiOptions::new(EndpointOptions::new(2, Token::new([1; Token::BYTES]))) }
}

/// Exchanges the addresses of both sides, one per line.
fn join(layer: &mut OfiLayer, peer: u16, mut to: impl Write, from: &mut impl BufRead) {
    writeln!(to, "{}", evb_transport::Connect::address(layer)).expect("the other side reads");
    let mut line = String::new();
    from.read_line(&mut line).expect("the other side writes");
    layer.connect(&[(NodeId(peer), line.trim().to_owned())]).expect("the other side is there");
}

/// Returns every message until an empty line is read.
fn serve(provider: &str) {
    let mut layer = OfiLayer::open(NodeId(1), options(provider)).expect("an endpoint");
    join(&mut layer, 0, std::io::stdout(), &mut std::io::stdin().lock());
    let mut buffer = vec![0; layer.max_bytes()];
    loop {
        let length = receive(&mut layer, &mut buffer);
        if length == 1 {
            return;
        }
        send(&mut layer, NodeId(0), &buffer[..length]);
    }
}

fn send(layer: &mut OfiLayer, to: NodeId, bytes: &[u8]) {
    while let Err(refused) = layer.send(to, bytes) {
        assert_eq!(refused, Refused::Full);
        layer.flush();
    }
}

fn receive(layer: &mut OfiLayer, buffer: &mut [u8]) -> usize {
    let mut length = 0;
    let mut take = |_: NodeId, bytes: &[u8]| {
        length = bytes.len();
        buffer[..length].copy_from_slice(bytes);
    };
    while layer.receive(1, &mut take) == 0 {}
    length
}

/// The layer with its other side in another process.
struct Ours {
    layer: OfiLayer,
    other: Child,
    buffer: Vec<u8>,
}

impl Ours {
    fn start(provider: &str) -> Self {
        let program = env::current_exe().expect("this program has a path");
        let mut command = Command::new(program);
        command.args(["serve", provider]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut other = command.spawn().expect("this program starts");
        let mut layer = OfiLayer::open(NodeId(0), options(provider)).expect("an endpoint");
        let (to, from) = (other.stdin.take().expect("a pipe"), other.stdout.take().expect("a pipe"));
        join(&mut layer, 1, to, &mut BufReader::new(from));
        let buffer = vec![0; layer.max_bytes()];
        Self { layer, other, buffer }
    }

    fn trips(&mut self, size: usize, count: usize) -> f64 {
        let start = Instant::now();
        let message = vec![7; size];
        for _ in 0..count {
            send(&mut self.layer, NodeId(1), &message);
            receive(&mut self.layer, &mut self.buffer);
        }
        start.elapsed().as_nanos() as f64 / count as f64 / 2.0
    }

    /// Nanoseconds of one way.
    fn measure(provider: &str, size: usize, count: usize) -> f64 {
        let mut ours = Self::start(provider);
        ours.trips(size, count / 10 + 1);
        let result = ours.trips(size, count);
        send(&mut ours.layer, NodeId(1), &[0]);
        ours.other.wait().expect("the other side ends");
        result
    }
}

/// One way of `fi_pingpong` in nanoseconds; `None` if it is not there.
fn fi_pingpong(provider: &str, size: usize, count: usize) -> Option<f64> {
    let (size, count) = (size.to_string(), count.to_string());
    let side = |more: &[&str]| {
        let mut command = Command::new("fi_pingpong");
        command.args(["-p", provider, "-e", "rdm", "-m", "tagged", "-I", &count, "-S", &size]).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().ok()
    };
    let mut server = side(&["-B", CONTROL_PORT])?;
    std::thread::sleep(std::time::Duration::from_millis(100));
    let client = side(&["-P", CONTROL_PORT, "127.0.0.1"])?.wait_with_output().ok()?;
    server.wait().ok()?;
    let text = String::from_utf8_lossy(&client.stdout).into_owned();
    // Its columns: bytes, sent, acknowledged, total, time, MB/s, microseconds of one way, messages per microsecond.
    let microseconds: f64 = text.lines().last()?.split_whitespace().nth(6)?.parse().ok()?;
    Some(microseconds * 1000.0)
}

/// The loop in C, if there are a compiler and headers.
fn compile(folder: &Path) -> Option<PathBuf> {
    let (source, program) = (concat!(env!("CARGO_MANIFEST_DIR"), "/benches/plain.c"), folder.join("plain"));
    let status = Command::new("cc").args(["-O2", source, "-lfabric", "-o"]).arg(&program).status().ok()?;
    status.success().then_some(program)
}

fn plain(program: &Path, provider: &str, size: usize, count: usize) -> Option<f64> {
    let interface = if provider == "tcp" { "127.0.0.1" } else { "-" };
    let output = Command::new(program).args([provider, interface, &size.to_string(), &count.to_string()]).output();
    // The mean, as of the others; then comes a median.
    String::from_utf8(output.ok()?.stdout).ok()?.split_whitespace().next()?.parse().ok()
}

fn compare() {
    let names = match providers() {
        Ok(names) => names,
        Err(error) => return println!("skipped: {error}"),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path());
    println!("one way in ns: median (minimum) of {ROUNDS} rounds\n");
    println!("provider   bytes          layer    fi_pingpong        plain C   layer/fi_pingpong   layer/C");
    for (provider, full, trips) in PROVIDERS {
        if !names.iter().any(|name| name == full) {
            println!("{provider}: skipped, libfabric does not have it here");
            continue;
        }
        for size in SIZES {
            let count = (trips / (1 + size / 4096)).max(200);
            let mut results: [Vec<f64>; 3] = Default::default();
            for _ in 0..ROUNDS {
                results[0].push(Ours::measure(provider, size, count));
                results[1].extend(fi_pingpong(full, size, count));
                results[2].extend(program.as_deref().and_then(|program| plain(program, provider, size, count)));
            }
            report(provider, size, &mut results);
        }
    }
}

fn report(provider: &str, size: usize, results: &mut [Vec<f64>; 3]) {
    let of = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        Some((*values.get(values.len() / 2)?, *values.first()?))
    };
    let [ours, theirs, plain] = results.each_mut().map(of);
    let text =
        |value: Option<(f64, f64)>| value.map_or("-".into(), |(median, least)| format!("{median:.0} ({least:.0})"));
    let ratio = |to: Option<(f64, f64)>| match (ours, to) {
        (Some(ours), Some(to)) => format!("{:.2} ({:.2})", ours.0 / to.0, ours.1 / to.1),
        _ => "-".into(),
    };
    let (first, second, third) = (text(ours), text(theirs), text(plain));
    println!("{provider:8} {size:7} {first:>14} {second:>14} {third:>14} {:>19} {:>9}", ratio(theirs), ratio(plain));
}
