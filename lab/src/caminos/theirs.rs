//! The side of CAMINOS: its installation, a configuration for each case, and the result file.

use super::{
    Programs,
    cases::{Case, Network},
};
use std::{fs, path::PathBuf, process::Command, time::Duration};
use xtask::{
    processes::Limited,
    workspace::{Workspace, cargo, run},
};

/// The version of CAMINOS.
const VERSION: &str = "0.6.3";
/// Longest time of a simulation.
const LIMIT: Duration = Duration::from_secs(600);
/// Most messages that wait at a sender: more than any simulation here makes, so that none is refused.
const QUEUE: u64 = 1_000_000;

/// Installs the program unless it is installed. Returns its path.
pub(super) fn install(workspace: &Workspace) -> Result<PathBuf, String> {
    let root = workspace.target.join(format!("caminos-{VERSION}"));
    let program = root.join("bin").join("caminos").with_extension(std::env::consts::EXE_EXTENSION);
    if !program.is_file() {
        eprintln!("lab: installing CAMINOS {VERSION}, which takes minutes");
        let mut command = cargo(&workspace.root, &["install", "caminos", "--locked", "--version", VERSION, "--root"]);
        run(command.arg(&root))?;
    }
    Ok(program)
}

/// The accepted load in per cent, or the mean wait in cycles.
pub(super) fn measure(programs: &Programs, index: usize, case: &Case, seed: u64) -> Result<f64, String> {
    let [configuration, result] = ["cfg", "result"].map(|end| programs.scratch.join(format!("{index}-{seed}.{end}")));
    let failed = |path: &PathBuf, error| format!("{}: {error}", path.display());
    fs::write(&configuration, configure(case, seed)).map_err(|error| failed(&configuration, error))?;
    let mut command = Command::new(&programs.caminos);
    command.arg(&configuration).arg(format!("--results={}", result.display())).current_dir(&programs.scratch);
    let mut process = Limited::start(&mut command, LIMIT).map_err(|error| format!("CAMINOS: {error}"))?;
    let (status, _) = process.wait().map_err(|error| format!("CAMINOS: {error}"))?;
    if !status.success() {
        return Err(format!("CAMINOS: {status}"));
    }
    read(&fs::read_to_string(&result).map_err(|error| failed(&result, error))?, case)
}

/// The configuration of a case. A delay of one cycle is that of the phit itself.
fn configure(case: &Case, seed: u64) -> String {
    format!(
        "Configuration
{{
	random_seed: {seed},
	warmup: {warmup},
	measured: {measured},
	topology: {topology},
	traffic: HomogeneousTraffic {{ pattern: {pattern}, tasks: {tasks}, load: {load}, message_size: {phits} }},
	maximum_packet_size: {phits},
	server_queue_size: {QUEUE},
	router: Basic
	{{
		virtual_channels: 1,
		virtual_channel_policies: [ EnforceFlowControl, Random ],
		buffer_size: {buffer},
		bubble: {bubble},
		flit_size: {phits},
		intransit_priority: false,
		allow_request_busy_port: true,
		output_buffer_size: 0,
		output_prioritize_lowest_label: false,
	}},
	routing: {routing},
	link_classes: [ {links} ],
}}
",
        warmup = case.warmup(),
        measured = case.measured(),
        topology = topology(case.network),
        pattern = pattern(case.network),
        tasks = case.network.senders(),
        load = case.load.unwrap_or(1.0),
        phits = case.phits,
        buffer = case.buffer(),
        bubble = matches!(case.network, Network::Torus { .. }),
        routing = routing(case.network),
        links = ["LinkClass { delay: 1 }"; 3][..link_classes(case.network)].join(", "),
    )
}

fn topology(network: Network) -> String {
    match network {
        Network::Crossbar { .. } => format!("Hamming {{ sides: [1], servers_per_router: {} }}", network.hosts()),
        Network::Mesh { side } => format!("Mesh {{ sides: [{side},{side}], servers_per_router: 1 }}"),
        Network::Torus { side } => format!("Torus {{ sides: [{side},{side}], servers_per_router: 1 }}"),
        Network::Clos { side } => {
            format!("XGFT {{ height: 1, down: [{side}], up: [{side}], servers_per_leaf: {side} }}")
        }
        Network::FatTree { radix } => {
            let half = radix / 2;
            format!("XGFT {{ height: 2, down: [{half},{radix}], up: [{half},{half}], servers_per_leaf: {half} }}")
        }
    }
}

/// Classes of links: those of each dimension or layer, and those of the hosts.
fn link_classes(network: Network) -> usize {
    match network {
        Network::Crossbar { .. } | Network::Clos { .. } => 2,
        _ => 3,
    }
}

/// Destinations: any other host, or on a crossbar any host of the half that only receives.
fn pattern(network: Network) -> String {
    match network {
        Network::Crossbar { ports } => {
            let receivers = (ports..2 * ports).map(|host| host.to_string()).collect::<Vec<_>>().join(",");
            let map = format!("EmbeddedMap {{ map: [{receivers}] }}");
            format!("Composition {{ patterns: [ Uniform {{ allow_self: true }}, {map} ], middle_sizes: [{ports}] }}")
        }
        _ => "Uniform".into(),
    }
}

fn routing(network: Network) -> &'static str {
    match network {
        Network::Mesh { .. } | Network::Torus { .. } => "DOR { order: [0,1] }",
        _ => "Shortest",
    }
}

/// The value of a case from a result file.
fn read(text: &str, case: &Case) -> Result<f64, String> {
    match case.load {
        Some(_) => Ok(field(text, "average_message_delay")? - case.empty()),
        None => {
            // It is a mean over all hosts, also over those that only receive.
            let part = case.network.senders() as f64 / case.network.hosts() as f64;
            Ok(100.0 * field(text, "accepted_load")? / part)
        }
    }
}

/// A number of the outermost object of a result file: `Result { name: number, ... }`, in which a name and its number are
/// on separate lines. The same names may occur in inner objects.
fn field(text: &str, name: &str) -> Result<f64, String> {
    let mut lines = text.lines().map(str::trim);
    if lines.next() != Some("Result") {
        return Err("the file of CAMINOS is not a result".into());
    }
    let mut depth = 0;
    let is_it = |line: &str| line.strip_suffix(':') == Some(name);
    lines.by_ref().find(|line| {
        depth += nesting(line);
        depth == 1 && is_it(line)
    });
    let value = lines.next().ok_or_else(|| format!("the result of CAMINOS has no {name}"))?;
    match value.trim_end_matches(',').parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("the result of CAMINOS has no number for {name}: {value}")),
    }
}

/// Objects and lists that a line opens, less those that it closes.
fn nesting(line: &str) -> i64 {
    let count = |characters: [char; 2]| line.matches(characters).count() as i64;
    count(['{', '[']) - count(['}', ']'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = "Result
{
	cycle:
	220000,
	total_packet_per_hop_count:
	[
		62522,
	]
,
	temporal_statistics:
	TemporalStatistics
	{
		accepted_load:
		0.1,
	}
,
	accepted_load:
	0.25,
	average_message_delay:
	617.25,
	average_link_utilization:
	NaN,
	git_id:
	\"-\",
}
";

    fn case(load: Option<f64>) -> Case {
        Case { network: Network::Crossbar { ports: 8 }, phits: 16, load }
    }

    #[test]
    fn a_result_has_the_load_of_the_senders_and_the_wait() {
        assert_eq!(read(RESULT, &case(None)), Ok(50.0));
        assert_eq!(read(RESULT, &case(Some(0.1))), Ok(600.25));
    }

    #[test]
    fn invalid_numbers_are_rejected() {
        let nan = "the result of CAMINOS has no number for average_link_utilization: NaN,";
        assert_eq!(field(RESULT, "average_link_utilization"), Err(nan.into()));
        assert!(field(RESULT, "git_id").is_err());
        assert_eq!(field(RESULT, "missing"), Err("the result of CAMINOS has no missing".into()));
    }

    #[test]
    fn invalid_results_are_rejected() {
        assert_eq!(field("", "cycle"), Err("the file of CAMINOS is not a result".into()));
        let cut = "Result\n{\n\tcycle:";
        assert_eq!(field(cut, "cycle"), Err("the result of CAMINOS has no cycle".into()));
    }
}
