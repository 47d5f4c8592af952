//! Sweeps on a cluster: the daemons of Slurm on this machine, whose two processors are the cluster. Tasks of a sweep are killed,
//! requeued and cancelled, and the tables must be those of a sweep on one machine.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::{self, Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use xtask::{
    processes::Limited,
    workspace::{Profile, Workspace, is_installed},
};

/// The programs of Slurm that are needed.
const NEEDED: [&str; 6] = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol"];
/// Time until the cluster must be up, and a task must have come so far.
const SOON: Duration = Duration::from_secs(30);
/// Time for a command of evb, which may wait for all tasks.
const LONG: Duration = Duration::from_secs(240);

/// 24 points, of which each takes about a second.
const EXPERIMENT: &str = r#"
name = "cluster"
[network]
preset = "myrinet-oct-sw8"
[workload]
type = "random"
messages = 100_000
[readout]
units = 8
source = { type = "log-normal", mean = "2 kB", rms = "500 B" }
[builder]
units = 8
[sweep]
"readout.source.mean" = ["500 B", "1 kB", "2 kB", "4 kB"]
"run.seed" = [1, 2, 3, 4, 5, 6]
"#;

/// Builds the command and sends sweeps to a cluster of this machine.
pub(crate) fn test() -> Result<(), String> {
    let workspace = Workspace::find(Profile::Dev)?;
    workspace.cargo(&["build", "--locked", "--quiet", "--package", "evb-cli"])?;
    run(&workspace, Cluster::start()?)
}

/// The same if Slurm is installed and its daemons run here.
pub(crate) fn run_if_possible(workspace: &Workspace) -> Result<(), String> {
    if let Some(program) = NEEDED.iter().find(|program| !is_installed(program)) {
        return crate::tools::skip_without(program);
    }
    match Cluster::start() {
        Ok(cluster) => run(workspace, cluster),
        Err(why) => {
            say(&format!("skipped: Slurm does not run here: {why}"));
            Ok(())
        }
    }
}

fn run(workspace: &Workspace, cluster: Cluster) -> Result<(), String> {
    let site = Site { evb: workspace.evb(), cluster };
    fs::write(site.path("experiment.toml"), EXPERIMENT).map_err(|error| error.to_string())?;
    site.evb("simulate experiment.toml --out whole --quiet", 0)?;
    site.kill_and_requeue()?;
    site.cancel_and_submit_again()?;
    let refused = site.evb("sweep submit experiment.toml --slurm --out refused -- --partition=nowhere", 2)?;
    if !refused.contains("invalid partition") {
        return Err(format!("sbatch refused a partition, and this was told: {refused}"));
    }
    say("a partition that is not there is told in the words of sbatch");
    Ok(())
}

fn say(text: &str) {
    println!("  {text}");
}

/// The cluster and the command.
struct Site {
    evb: PathBuf,
    cluster: Cluster,
}

impl Site {
    /// A folder or file. Its folder has a space, as some have.
    fn path(&self, name: &str) -> PathBuf {
        self.cluster.folder.join("a home").join(name)
    }

    /// Runs the command, which must end with a status. Returns what it says.
    fn evb(&self, line: &str, status: i32) -> Result<String, String> {
        let mut command = self.cluster.command(&self.evb);
        command.args(line.split(' ')).current_dir(self.path(""));
        let mut shell = merged(&command);
        let mut running = Limited::start(&mut shell, LONG).map_err(|error| error.to_string())?;
        let (ended, output) = running.wait().map_err(|error| format!("evb {line}: {error}"))?;
        if ended.code() == Some(status) { Ok(output) } else { Err(format!("evb {line}: {ended}\n{output}")) }
    }

    /// A task whose evb is killed goes on in its place, and one that is requeued goes on later; neither loses a point.
    fn kill_and_requeue(&self) -> Result<(), String> {
        let job = self.submit("killed")?;
        let [killed, requeued] = [1, 2].map(|part| self.path(&format!("killed/part-{part}/records.jsonl")));
        let lines = |path: &Path| fs::read_to_string(path).map_or(0, |text| text.lines().count());
        soon("two tasks have a point", || Ok(lines(&killed) > 0 && lines(&requeued) > 0))?;
        let before = [&killed, &requeued].map(|path| first_line(path));
        let pid = evb_of(1).ok_or("the first task has no evb")?;
        call(Command::new("kill").args(["-9", &pid.to_string()]))?;
        call(self.cluster.command("scontrol").args(["requeue", &format!("{job}_2")]))?;
        self.evb("sweep collect killed", 0)?;
        let after = [&killed, &requeued].map(|path| first_line(path));
        if before != after {
            return Err("a point that was there was simulated again".into());
        }
        let log = fs::read_to_string(self.path("killed/part-1.log")).unwrap_or_default();
        if !log.contains("Killed") {
            return Err(format!("the evb of the first task was not killed: {log}"));
        }
        self.compare("killed")?;
        say(
            "24 points in 6 parts, of which one was killed and one requeued: all tables and plots equal those of one machine",
        );
        Ok(())
    }

    /// A part whose task was cancelled is named, and the same command simulates it alone.
    fn cancel_and_submit_again(&self) -> Result<(), String> {
        let job = self.submit("cancelled")?;
        let records = self.path("cancelled/part-1/records.jsonl");
        soon("a task has begun", || Ok(records.exists()))?;
        call(self.cluster.command("scancel").arg(format!("{job}_1")))?;
        let told = self.evb("sweep collect cancelled", 2)?;
        if !(told.contains("part 1/6: ") && told.contains("are missing, CANCELLED; see cancelled/part-1.log")) {
            return Err(format!("task 1 was cancelled, and this was told: {told}"));
        }
        self.evb("sweep submit experiment.toml --slurm --out cancelled --wait", 0)?;
        let script = fs::read_to_string(self.path("cancelled/submit.sh")).unwrap_or_default();
        if !script.contains("--array=1\n") {
            return Err(format!("more than the missing part was submitted: {script}"));
        }
        self.compare("cancelled")?;
        say("a part whose task was cancelled is named, and the same command simulates it alone");
        Ok(())
    }

    /// Submits the sweep in six parts. Returns the number of the job.
    fn submit(&self, out: &str) -> Result<String, String> {
        let said = self.evb(&format!("sweep submit experiment.toml --slurm --parts 6 --out {out}"), 0)?;
        let number = said.lines().find(|line| line.parse::<u32>().is_ok());
        number.map(str::to_owned).ok_or_else(|| format!("no job is named: {said}"))
    }

    /// The tables and plots of a folder are those of one machine.
    fn compare(&self, folder: &str) -> Result<(), String> {
        let [whole, other] = [tables(&self.path("whole"))?, tables(&self.path(folder))?];
        if whole.is_empty() || !whole.keys().eq(other.keys()) {
            return Err(format!("{folder} has {:?}, and not {:?}", other.keys(), whole.keys()));
        }
        match whole.iter().find(|(name, bytes)| other[*name] != **bytes) {
            Some((name, _)) => Err(format!("{folder}/{name} differs from that of one machine")),
            None => Ok(()),
        }
    }
}

/// The command with its standard error among its output.
fn merged(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" 2>&1", "sh"]).arg(command.get_program()).args(command.get_args());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(command.get_current_dir().unwrap_or(Path::new(".")));
    shell
}

fn first_line(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()?.lines().next().map(str::to_owned)
}

/// The process of evb that simulates a part.
fn evb_of(part: usize) -> Option<u32> {
    let wanted = format!("\0--points\0{part}/6\0");
    let pids = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut found = pids.filter(|pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&wanted)
    });
    found.next()
}

/// The tables and plots of a folder.
fn tables(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names = names.filter(|name| [".csv", ".parquet", ".svg"].iter().any(|end| name.ends_with(end)));
    names.map(|name| Ok((name.clone(), fs::read(folder.join(name)).map_err(|error| error.to_string())?))).collect()
}

/// Waits until something is so.
fn soon(what: &str, mut is_so: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    let end = Instant::now() + SOON;
    while !is_so()? {
        if Instant::now() > end {
            return Err(format!("not within {} s: {what}", SOON.as_secs()));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Runs a command that must succeed. Returns its output.
fn call(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// The daemons of Slurm. Dropping it ends all jobs and daemons, and removes their folder.
struct Cluster {
    folder: PathBuf,
    daemons: Vec<Child>,
}

impl Cluster {
    fn start() -> Result<Self, String> {
        // Slurm takes a host by its name, and a socket has a short path.
        let folder = env::temp_dir().join(format!("evb-slurm-{}", process::id()));
        let mut cluster = Self { folder: folder.clone(), daemons: Vec::new() };
        for name in ["state", "spool", "a home"] {
            fs::create_dir_all(folder.join(name)).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        cluster.configure().map_err(|error| format!("{}: {error}", folder.display()))?;
        let in_folder = |name: &str| folder.join(name).display().to_string();
        let munge: Vec<_> = [("socket", "munge.socket"), ("key-file", "munge.key"), ("log-file", "munge.log")]
            .into_iter()
            .chain([("pid-file", "munge.pid"), ("seed-file", "munge.seed")])
            .map(|(option, name)| format!("--{option}={}", in_folder(name)))
            .collect();
        cluster.spawn("munged", &[vec!["--foreground".into(), "--force".into()], munge].concat())?;
        soon("munged listens", || Ok(folder.join("munge.socket").exists()))?;
        cluster.spawn("slurmctld", &["-D".into()])?;
        cluster.spawn("slurmd", &["-D".into()])?;
        soon("a node is idle", || {
            let told = call(cluster.command("sinfo").args(["--noheader", "--format=%T"]));
            cluster.check_daemons().map(|()| told.is_ok_and(|told| told.trim() == "idle"))
        })?;
        Ok(cluster)
    }

    fn configure(&self) -> Result<(), String> {
        let told = |error: std::io::Error| error.to_string();
        let host = call(&mut Command::new("hostname"))?;
        let user = call(Command::new("id").arg("-un"))?;
        let (host, user, at) = (host.trim(), user.trim(), self.folder.display());
        // The address of a process is as good as random, and no other test has it.
        let port = 20_000 + process::id() % 10_000 * 2;
        // A requeued task waits for the end of its credential.
        let text = format!(
            "ClusterName=evb\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser={user}\nSlurmdUser={user}\n\
             AuthType=auth/munge\nAuthInfo=socket={at}/munge.socket,cred_expire=5\n\
             SlurmctldPort={port}\nSlurmdPort={}\nStateSaveLocation={at}/state\nSlurmdSpoolDir={at}/spool\n\
             SlurmctldPidFile={at}/slurmctld.pid\nSlurmdPidFile={at}/slurmd.pid\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nReturnToService=2\nKillWait=2\n\
             NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN\nPartitionName=all Nodes=ALL Default=YES\n",
            port + 1
        );
        fs::write(self.folder.join("slurm.conf"), text).map_err(told)?;
        fs::write(self.folder.join("cgroup.conf"), "CgroupPlugin=autodetect\n").map_err(told)?;
        fs::write(self.folder.join("munge.key"), format!("{:128}", process::id())).map_err(told)?;
        call(Command::new("chmod").arg("600").arg(self.folder.join("munge.key"))).map(drop)
    }

    /// A command for this cluster.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.folder.join("slurm.conf"));
        command
    }

    fn spawn(&mut self, program: &str, arguments: &[String]) -> Result<(), String> {
        let log = fs::File::create(self.folder.join(format!("{program}.out"))).map_err(|error| error.to_string())?;
        let also = log.try_clone().map_err(|error| error.to_string())?;
        let mut command = self.command(program);
        command.args(arguments).stdin(Stdio::null()).stdout(log).stderr(also);
        self.daemons.push(command.spawn().map_err(|error| format!("{program}: {error}"))?);
        Ok(())
    }

    /// Tells of a daemon that has ended.
    fn check_daemons(&mut self) -> Result<(), String> {
        for (daemon, name) in self.daemons.iter_mut().zip(["munged", "slurmctld", "slurmd"]) {
            if daemon.try_wait().is_ok_and(|ended| ended.is_some()) {
                let told = fs::read_to_string(self.folder.join(format!("{name}.out"))).unwrap_or_default();
                return Err(format!("{name} ends: {}", told.lines().last().unwrap_or_default()));
            }
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let is_empty =
            |cluster: &Self| call(cluster.command("squeue").arg("--noheader")).map(|jobs| jobs.trim().is_empty());
        // Without a controller nobody answers, and there are no jobs.
        if self.daemons.len() == 3 && call(self.command("scancel").args(["--me"])).is_ok() {
            let _at_most = soon("all jobs have ended", || is_empty(self));
        }
        for daemon in self.daemons.iter_mut().rev() {
            let _asked = call(Command::new("kill").arg(daemon.id().to_string()));
            let end = Instant::now() + Duration::from_secs(5);
            while Instant::now() < end && daemon.try_wait().is_ok_and(|ended| ended.is_none()) {
                thread::sleep(Duration::from_millis(20));
            }
            let _over = daemon.kill();
            let _reaped = daemon.wait();
        }
        let _removed = fs::remove_dir_all(&self.folder);
    }
}
