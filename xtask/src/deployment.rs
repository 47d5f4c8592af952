//! A deployment on five machines: network namespaces, each with its own address, folder and clock. A service, its nodes, a
//! filter and Prometheus run in them while links are shaped and cut. Needs root, `ip`, `tc` and `unshare`.

mod disturbances;

use crate::tools;
use disturbances::Disturbances;
pub(crate) use disturbances::Options;
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use xtask::{
    api::{Api, PATIENCE},
    namespaces::{Namespace, Namespaces, call, ip},
    workspace::{Workspace, is_installed},
};

const BRIDGE: &str = "evb-deploy";
const NETWORK: &str = "10.77.0";
const TOKEN: &str = "operator-of-the-deployment-test";

/// The roles of the nodes and their machines.
const NODES: [(&str, usize); 5] = [("evm", 0), ("ru0", 1), ("ru1", 2), ("bu0", 3), ("bu1", 4)];
/// The machine of `ru0`. Its link is shaped and cut.
const FAR: usize = 1;
/// The machine of the filter. It is not the one behind the slow link, which would delay the verdicts and so the builders.
const FILTERS: usize = 2;
/// Seconds by which the clocks of the machine of `bu0` differ from the others.
const OTHER_TIME: &str = "100000";

const EXPERIMENT: &str = r#"
name = "deployment"
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
encrypt = "on"
[run]
peer_timeout = "2 s"
[filter]
listen = "0.0.0.0:9000"
[storage]
keep = { one_in = 100 }
"#;

const FILTER: &str = "import evb_filter; evb_filter.run(lambda event: len(event[0]) > 1000)\n";

/// Builds the command and runs the deployment.
pub(crate) fn test(options: Options) -> Result<(), String> {
    run(&Workspace::with_evb()?, options)
}

/// Runs the deployment with the built command if namespaces can be created.
pub(crate) fn run_if_possible(workspace: &Workspace, options: Options) -> Result<(), String> {
    let can =
        |line: &str| Command::new("sh").args(["-c", line]).stderr(Stdio::null()).status().is_ok_and(|it| it.success());
    if !can("ip netns add evb-try && ip netns del evb-try && tc -V && unshare --time --fork --monotonic 1 true") {
        say("skipped: this needs root, `ip`, `tc` and `unshare` with namespaces of time");
        return Ok(());
    }
    run(workspace, options)
}

fn run(workspace: &Workspace, options: Options) -> Result<(), String> {
    let network = Namespaces::create(BRIDGE, NETWORK, (0..5).map(|machine| format!("evb-d{machine}")))?;
    let site = Site::start(workspace, network.nodes())?;
    let api = Api { address: format!("{}:8080", network.nodes()[0].address), token: TOKEN };
    api.wait("the service", |status| status["state"] == "initial")?;
    say("the service answers");

    api.command("start")?;
    api.wait("a run with a filter", |status| {
        status["state"] == "running" && status["record"]["filter"]["accepted"].as_u64() > Some(100)
    })?;
    say("a run over five machines builds events, and a filter in a separate process selects them");
    site.prometheus_knows("evb_run_number", "1")?;
    say("Prometheus reads its metrics");

    let machine = &network.nodes()[FAR];
    machine.call("tc qdisc add dev e0 root tbf rate 20mbit burst 32kb latency 200ms")?;
    api.wait("the slow link", |status| {
        [&status["slowest"]["node"], &status["limit"]["what"]].iter().any(|name| *name == "ru0")
    })?;
    say("behind a link of 20 Mbit/s, ru0 is named as the slowest unit");
    machine.call("tc qdisc del dev e0 root")?;

    ip(&format!("link set {} down", machine.name))?;
    let since = Instant::now();
    api.wait("the cut link", |status| status["state"] == "degraded" && node(status, "ru0") == "lost")?;
    say(&format!("a cut link degrades the run: ru0 is named after {:.1} s", since.elapsed().as_secs_f64()));
    ip(&format!("link set {} up", machine.name))?;
    api.command("stop")?;
    api.wait("the end of the run", |status| status["state"] == "stopped")?;

    api.command_again("start")?;
    api.wait("all nodes", |status| {
        status["state"] == "running" && NODES.iter().all(|(name, _)| node(status, name) == "up")
    })?;
    say("after its link is back, ru0 takes part in the next run");
    thread::sleep(Duration::from_secs(2));
    api.command("stop")?;
    api.wait("the end of the run", |status| status["state"] == "stopped")?;
    check_registry(&api)?;
    // In the first run a machine was disconnected.
    site.check_files(&[2])?;
    say("the registry has both runs, and the files on both machines are complete");
    Disturbances::run(options, &api, &site, network.nodes())
}

fn say(text: &str) {
    println!("  {text}");
}

/// The state of a node.
fn node<'a>(status: &'a Value, name: &str) -> &'a str {
    let nodes = status["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    nodes.iter().find(|node| node["name"] == name).and_then(|node| node["state"].as_str()).unwrap_or("")
}

fn check_registry(api: &Api<'_>) -> Result<(), String> {
    let runs = api.get("/api/runs")?;
    let of = |index: usize, key: &str| runs["runs"][index][key].to_string();
    let found = [of(1, "number"), of(1, "good"), of(0, "number"), of(0, "good"), of(0, "state")];
    if found == ["1", "false", "2", "true", "\"stopped\""] {
        Ok(())
    } else {
        Err(format!("the registry is wrong: {runs}"))
    }
}

/// All programs of the deployment. Dropping it kills them.
struct Site {
    evb: PathBuf,
    folder: PathBuf,
    programs: Vec<Child>,
    prometheus: Option<Api<'static>>,
}

impl Site {
    fn start(workspace: &Workspace, machines: &[Namespace]) -> Result<Self, String> {
        let folder = workspace.target.join("xtask-deployment");
        let _absent = fs::remove_dir_all(&folder);
        let mut site = Self { evb: workspace.evb(), folder, programs: Vec::new(), prometheus: None };
        site.write(0, "experiment.toml", EXPERIMENT)?;
        site.write(0, "tokens", &format!("tester admin {TOKEN}\n"))?;
        call("chmod", &format!("600 {}", site.path(0, "tokens").display()))?;
        let evb = workspace.evb().display().to_string();
        let first = &machines[0].address;
        let service = format!(
            "{evb} serve experiment.toml --listen {first}:7000 --http {first}:8080 --without-tls --tokens tokens"
        );
        site.spawn(&machines[0], 0, &service)?;
        for (role, machine) in NODES {
            let Namespace { address, .. } = &machines[machine];
            let node = format!("{evb} node --role {role} --join {first}:7000 --listen {address}:0 --quiet");
            // A node ends when run control dismisses it or dies, and is restarted, as by systemd.
            let line = format!("while true; do {node}; sleep 0.2; done");
            let clocks = format!("unshare --time --fork --monotonic {OTHER_TIME} --boottime {OTHER_TIME} ");
            let clocks = if role == "bu0" { clocks.as_str() } else { "" };
            site.write(machine, "node.sh", &line)?;
            site.spawn(&machines[machine], machine, &format!("{clocks}sh node.sh"))?;
        }
        site.write(FILTERS, "filter.py", FILTER)?;
        let module = workspace.root.join("filters/python/evb_filter.py");
        fs::copy(module, site.path(FILTERS, "evb_filter.py")).map_err(|error| error.to_string())?;
        let builders =
            [(3, 9000), (4, 9001)].map(|(machine, port)| format!("--join {}:{port}", machines[machine].address));
        let filter = format!("{evb} filter {} --patience 60 --quiet -- python3 filter.py", builders.join(" "));
        site.write(FILTERS, "filter.sh", &format!("while true; do {filter}; sleep 0.2; done"))?;
        site.spawn(&machines[FILTERS], FILTERS, "sh filter.sh")?;
        site.start_prometheus(workspace, &machines[0])?;
        Ok(site)
    }

    fn start_prometheus(&mut self, workspace: &Workspace, machine: &Namespace) -> Result<(), String> {
        if !is_installed("prometheus") {
            return tools::skip_without("prometheus");
        }
        let address = &machine.address;
        let read = |name: &str| fs::read_to_string(workspace.root.join("docs/guides/monitoring").join(name));
        let text = read("prometheus.yml").map_err(|error| error.to_string())?;
        self.write(
            0,
            "prometheus.yml",
            &text.replace("127.0.0.1:8080", &format!("{address}:8080")).replace("5s", "1s"),
        )?;
        self.write(0, "alerts.yml", &read("alerts.yml").map_err(|error| error.to_string())?)?;
        self.write(0, "token", TOKEN)?;
        let options = "--config.file=prometheus.yml --storage.tsdb.path=series";
        self.spawn(machine, 0, &format!("prometheus {options} --web.listen-address={address}:9090"))?;
        self.prometheus = Some(Api { address: format!("{address}:9090"), token: "" });
        Ok(())
    }

    fn path(&self, machine: usize, name: &str) -> PathBuf {
        self.folder.join(format!("machine{machine}")).join(name)
    }

    fn write(&self, machine: usize, name: &str, text: &str) -> Result<(), String> {
        let path = self.path(machine, name);
        let folder = path.parent().unwrap_or(Path::new("."));
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, text));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Starts a program on a machine, in the machine's folder. Its standard error goes to `log` there.
    fn spawn(&mut self, machine: &Namespace, number: usize, line: &str) -> Result<(), String> {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.path(number, "log"));
        let log = log.map_err(|error| error.to_string())?;
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &machine.name]).args(line.split(' '));
        command.current_dir(self.path(number, "")).env("EVB_TOKEN", "5a".repeat(32));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.programs.push(command.spawn().map_err(|error| format!("{line}: {error}"))?);
        Ok(())
    }

    /// Waits until Prometheus reports this value of a metric.
    fn prometheus_knows(&self, metric: &str, value: &str) -> Result<(), String> {
        let Some(prometheus) = &self.prometheus else { return Ok(()) };
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let answer = prometheus.get(&format!("/api/v1/query?query={metric}")).unwrap_or_default();
            if answer["data"]["result"][0]["value"][1] == value {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(200));
        }
        Err(format!("Prometheus does not report that {metric} is {value}"))
    }

    /// Verifies the event files of these runs on the machines of both builders.
    fn check_files(&self, runs: &[u64]) -> Result<(), String> {
        runs.iter().try_for_each(|run| self.check_files_of(*run))
    }

    fn check_files_of(&self, run: u64) -> Result<(), String> {
        let mut files = Vec::new();
        for machine in [3, 4] {
            let entries = fs::read_dir(self.path(machine, "evb-data")).map_err(|error| error.to_string())?;
            let is_one = |path: &PathBuf| {
                path.extension().is_some_and(|it| it == "evb") && path.to_string_lossy().contains(&format!("-{run}-b"))
            };
            let before = files.len();
            files.extend(entries.flatten().map(|entry| entry.path()).filter(is_one));
            if files.len() == before {
                return Err(format!("machine {machine} has no files of run {run}"));
            }
        }
        let verified = Command::new(&self.evb).args(["events", "verify"]).args(&files).output();
        let verified = verified.map_err(|error| error.to_string())?;
        if verified.status.success() {
            return Ok(());
        }
        Err(format!("the files of run {run}: {files:?}\n{}", String::from_utf8_lossy(&verified.stdout)))
    }
}

/// Kills everything in the namespaces: a namespace that is deleted keeps its processes.
impl Drop for Site {
    fn drop(&mut self) {
        for machine in 0..5 {
            let pids = Command::new("ip").args(["netns", "pids", &format!("evb-d{machine}")]).output();
            let pids = pids.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
            let _gone = Command::new("kill").arg("-KILL").args(pids.split_whitespace()).stderr(Stdio::null()).status();
        }
        for program in &mut self.programs {
            let _gone = program.kill();
            let _reaped = program.wait();
        }
    }
}
