//! The cost of a flood: a service runs over TCP in processes, and a stranger on the same machine opens connections to all of its
//! ports. Opening connections takes processor time from the run, too. So the same flood goes to a port without a listener for
//! comparison, and the difference is the work of the run itself.

use crate::spread;
use std::{
    collections::VecDeque,
    fs::{self, Permissions},
    io::Write as _,
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};
use xtask::{
    api::Api,
    processes::{Limited, listening},
    workspace::Workspace,
};

const HTTP: &str = "127.0.0.1:18080";
const TOKEN: &str = "operator-of-the-flood-test";
const EXPERIMENT: &str = r#"
[trigger]
type = "free-running"
events = 1000000000000
[readout]
units = 2
source = { type = "log-normal", mean = "2 kB", rms = "2 kB" }
[builder]
units = 2
[transport]
type = "tcp"
[storage]
keep = "none"
"#;
/// Time with or without a flood. The periods are short, so that the speed of the machine is the same in all of them.
const PERIOD: Duration = Duration::from_millis(500);
/// The beginning of a period, which is not measured.
const SETTLE: Duration = Duration::from_millis(50);
/// Connections that a flood holds open.
const HELD: usize = 200;
/// Bytes received over the loopback so far: at least 99 % of them are the data of the run.
const RECEIVED: &str = "/sys/class/net/lo/statistics/rx_bytes";

/// Measures what a flood costs.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds for each rate of the flood
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

pub(crate) fn measure(options: &Options) -> Result<(), String> {
    let workspace = Workspace::with_evb()?;
    let folder = workspace.target.join("flood");
    let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
    _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(wrong)?;
    fs::write(folder.join("run.toml"), EXPERIMENT).map_err(wrong)?;
    let tokens = folder.join("tokens");
    fs::write(&tokens, format!("tester admin {TOKEN}\n")).map_err(wrong)?;
    fs::set_permissions(&tokens, Permissions::from_mode(0o600)).map_err(wrong)?;
    let limit = Duration::from_secs(2 * options.seconds + 120);
    let service = Limited::start(&mut serve(&workspace, &folder), limit).map_err(|error| format!("evb: {error}"))?;
    let api = Api { address: HTTP.into(), token: TOKEN };
    api.wait("the service", |status| status["state"] == "initial")?;
    api.command("start")?;
    api.wait("a run", |status| status["state"] == "running")?;
    let own = listening(service.id());
    let closed = vec![closed_port()?];
    println!("2 x 2, log-normal 2 kB, TCP, processes; ports {own:?}");
    println!("{:<16} {:>16} {:>24} {:>24}", "connections/s", "opened/s", "rate, closed port", "rate, ports of the run");
    for rate in [Some(1000), None] {
        let [closed_port, run] = compare(options, rate, [&closed, &own])?;
        let asked = rate.map_or("unlimited".into(), |rate: u32| rate.to_string());
        println!("{asked:<16} {:>16.0} {closed_port:>24} {run:>24}", run.connections_per_second);
    }
    println!("\nRates are relative to the halves of a second around them without a flood: median, and its error.");
    api.command("abort")
}

fn serve(workspace: &Workspace, folder: &Path) -> Command {
    let mut command = Command::new(workspace.evb());
    command.current_dir(folder).args(["serve", "run.toml", "--processes", "--http", HTTP, "--tokens", "tokens"]);
    command.env("EVB_LOG", "error");
    command
}

/// A port without a listener: the system assigned it, and it is closed again.
fn closed_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}

/// The rate of the run during a flood, relative to that without.
struct Share {
    ratios: Vec<f64>,
    connections_per_second: f64,
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let median = spread::median(&self.ratios).unwrap_or(f64::NAN);
        let count = self.ratios.len() as f64;
        let mean = self.ratios.iter().sum::<f64>() / count;
        let variance = self.ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (count - 1.0);
        // The error of a median is 1.25 times that of a mean, for normal values.
        f.pad(&format!("{median:.3} +- {:.3}", 1.25 * (variance / count).sqrt()))
    }
}

/// Floods each of the two lists of ports in turns, with pauses between.
fn compare(options: &Options, rate: Option<u32>, ports: [&[u16]; 2]) -> Result<[Share; 2], String> {
    let turns = (Duration::from_secs(options.seconds).as_millis() / (4 * PERIOD).as_millis()).max(2);
    let mut shares = [(); 2].map(|()| Share { ratios: Vec::new(), connections_per_second: 0.0 });
    let mut before = period(&[], rate)?.0;
    for _ in 0..turns {
        for (share, ports) in shares.iter_mut().zip(ports) {
            let (during, connections) = period(ports, rate)?;
            let after = period(&[], rate)?.0;
            share.ratios.push(2.0 * during / (before + after));
            share.connections_per_second += f64::from(connections) / PERIOD.as_secs_f64() / turns as f64;
            before = after;
        }
    }
    Ok(shares)
}

/// The bytes per second of the run while these ports are flooded, and the number of connections.
fn period(ports: &[u16], rate: Option<u32>) -> Result<(f64, u32), String> {
    let begin = Instant::now();
    let ports = ports.to_vec();
    let flood = thread::spawn(move || flood(&ports, rate, begin + PERIOD));
    thread::sleep(SETTLE);
    let (first, since) = (received()?, Instant::now());
    thread::sleep((begin + PERIOD).saturating_duration_since(Instant::now()));
    let (last, time) = (received()?, since.elapsed());
    let connections = flood.join().map_err(|_| "the flood panicked")?;
    Ok(((last - first) as f64 / time.as_secs_f64(), connections))
}

fn received() -> Result<u64, String> {
    let text = fs::read_to_string(RECEIVED).map_err(|error| format!("{RECEIVED}: {error}"))?;
    text.trim().parse().map_err(|error| format!("{RECEIVED}: {error}"))
}

/// Opens connections until `end`, and sends nothing or an invalid request. Returns their number.
fn flood(ports: &[u16], rate: Option<u32>, end: Instant) -> u32 {
    let (mut held, mut count, begin) = (VecDeque::new(), 0, Instant::now());
    for &port in ports.iter().cycle() {
        let due = rate.map_or(begin, |rate| begin + Duration::from_secs(1) * count / rate);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if Instant::now() >= end {
            break;
        }
        count += 1;
        let Ok(mut stream) = TcpStream::connect_timeout(&([127, 0, 0, 1], port).into(), PERIOD) else { continue };
        if count % 2 == 0 {
            let _gone = stream.write_all(b"GET / HTTP/1.0\r\n\r\n");
        }
        held.push_back(stream);
        if held.len() > HELD {
            held.pop_front();
        }
    }
    count
}
