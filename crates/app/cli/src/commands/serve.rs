//! `evb serve`: run control as a service.

use crate::{
    ExperimentArgs, failure::Failure, hosts::address, nodes::NodeArgs, progress::say, signals::Signals, token,
};
use clap::Args;
use evb::{Diagnostics, Experiment, Plan, Workload, check_runnable};
use evb_record::Outcome;
use evb_serve::{
    Access, AccessError, Hooks, Loaded, Options, Problem, ServeError, Tls, TlsError, registry::RegistryError, serve,
};
use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

#[derive(Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    #[command(flatten)]
    nodes: NodeArgs,
    /// Address of the page
    #[arg(long, value_name = "HOST:PORT", value_parser = address, default_value = "127.0.0.1:8080")]
    http: SocketAddr,
    /// Serve the page by TLS, with the chain of certificates in this file (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Let the page be read from other machines, although nothing hides what goes over the network; behind a proxy that
    /// does, or on its own network
    #[arg(long, conflicts_with = "tls_cert")]
    without_tls: bool,
    /// A file with the operators, a line each: name, role (watch, operate or admin) and token. Without it there is one
    /// operator, whose token is made at each start and printed
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// The registry of runs; runs.db beside the event files by default
    #[arg(long, value_name = "FILE")]
    registry: Option<PathBuf>,
    /// Show samples of events to programs on this machine, too, in this file of shared memory, such as /dev/shm/evb-samples
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// Run this program before each run; when it fails, the run does not start
    #[arg(long, value_name = "PROGRAM")]
    before_start: Option<PathBuf>,
    /// Run this program after each run
    #[arg(long, value_name = "PROGRAM")]
    after_stop: Option<PathBuf>,
    /// Longest time for these programs, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    hook_timeout: u64,
}

/// Events per second that each builder shows on the page, if the experiment does not say how many.
const SAMPLES: u16 = 2;

pub(crate) fn run(args: &ServeArgs) -> Result<Outcome, Failure> {
    let tls = args.tls_cert.as_deref().zip(args.tls_key.as_deref());
    let tls = tls.map(|(certificate, key)| Tls::load(certificate, key)).transpose()?;
    if !args.http.ip().is_loopback() && !args.without_tls && tls.is_none() {
        return Err(Failure::with_hint(
            format!("{} can be reached from other machines, and tokens would cross the network in clear", args.http),
            "give `--tls-cert` and `--tls-key`, or listen on 127.0.0.1 and use `ssh -L`; `--without-tls` does it all the same",
        ));
    }
    let experiment = args.experiment.load()?;
    let transport = args.nodes.transport(experiment.plans());
    let text = std::fs::read_to_string(&args.experiment.file)?;
    let overrides: Vec<_> = args.experiment.overrides().into_iter().chain(transport).collect();
    let file = args.experiment.file.display().to_string();
    let name = file.clone();
    let first = prepare(&text, &name, &overrides)?;
    let plans: Vec<_> = first.points.iter().map(|(plan, _)| plan.clone()).collect();
    let in_processes = args.nodes.in_processes(&plans);
    let load = |text: &str| {
        let loaded = prepare(text, &file, &overrides).map_err(problem)?;
        let plans: Vec<_> = loaded.points.iter().map(|(plan, _)| plan.clone()).collect();
        match args.nodes.in_processes(&plans) == in_processes {
            true => Ok(loaded),
            false => Err(Problem::new(
                "this transport cannot carry the nodes of this service: they are threads here, or processes",
                "start the service with it: `--processes` has nodes in processes, and no option has them in threads",
            )),
        }
    };
    let (access, token) = access(args)?;
    let registry = args.registry.clone().unwrap_or_else(|| plans[0].storage.directory.join("runs.db"));
    let hooks = Hooks {
        before_start: args.before_start.clone(),
        after_stop: args.after_stop.clone(),
        timeout: Duration::from_secs(args.hook_timeout),
    };
    let signals = Signals::listen()?;
    args.nodes.with_sessions(&plans, &mut |open| {
        let options = Options {
            listen: args.http,
            tls: tls.clone(),
            access: access.clone(),
            registry: registry.clone(),
            samples: args.samples.clone(),
            hooks: hooks.clone(),
            loaded: first.clone(),
            load: &load,
            ready: &mut |address| say(&greeting(address, tls.is_some(), token.as_deref())),
            signals: &|| signals.count(),
        };
        serve(&mut open()?, options).map_err(Failure::from)
    })?;
    Ok(Outcome::Good)
}

/// Reads an experiment that can be served.
fn prepare(text: &str, file: &str, overrides: &[String]) -> Result<Loaded, Failure> {
    let experiment = Experiment::parse(text, file, overrides)?;
    check_runnable(experiment.plans())?;
    if experiment.plans().iter().any(|plan| plan.workload != Workload::EventBuilding || plan.stages.is_some()) {
        return Err(Failure::with_hint(
            "run control serves event builders of one stage",
            "`evb run FILE` runs traffic and two stages, without a page",
        ));
    }
    let points = |(index, plan): (usize, &Plan)| {
        let mut plan = plan.clone();
        if plan.run.samples == 0 {
            plan.run.samples = SAMPLES;
        }
        (plan, experiment.resolved_at(index).unwrap_or_default())
    };
    let points = experiment.plans().iter().enumerate().map(points).collect();
    Ok(Loaded { text: text.to_owned(), points })
}

/// A failure in the words of the page.
fn problem(failure: Failure) -> Problem {
    match failure {
        Failure::Experiment(diagnostics) => Problem { message: plain(&diagnostics), hint: None },
        Failure::Other { message, hint } => Problem { message, hint },
    }
}

/// The errors of an experiment without colours.
fn plain(diagnostics: &Diagnostics) -> String {
    let mut text = String::new();
    let theme = miette::GraphicalTheme::unicode_nocolor();
    let _never_fails =
        miette::GraphicalReportHandler::new_themed(theme).with_width(100).render_report(&mut text, diagnostics);
    text
}

/// The operators; and the token of the only one, without a file of operators.
fn access(args: &ServeArgs) -> Result<(Access, Option<String>), Failure> {
    match &args.tokens {
        Some(file) => Ok((Access::load(file)?, None)),
        None => {
            let token = token::fresh()?.to_hex();
            Ok((Access::admin(&token), Some(token)))
        }
    }
}

fn greeting(address: SocketAddr, has_tls: bool, token: Option<&str>) -> String {
    // A browser cannot open the address that means all addresses.
    let host = if address.ip().is_unspecified() { IpAddr::from([127, 0, 0, 1]) } else { address.ip() };
    let scheme = if has_tls { "https" } else { "http" };
    let page = format!("{scheme}://{}/", SocketAddr::new(host, address.port()));
    match token {
        Some(token) => format!("run control is at {page}#token={token}\nwho has this address may do everything"),
        None => format!("run control is at {page}"),
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Session(error) => error.into(),
            ServeError::Listen { .. } => {
                Self::with_hint(error, "`--http HOST:PORT` chooses another address; port 0 takes any free one")
            }
            ServeError::Registry(RegistryError::Locked { .. }) => Self::with_hint(
                error,
                "end the program that has it open, or its transaction, and start again; `--registry FILE` chooses another file",
            ),
            ServeError::Registry(_) => Self::with_hint(error, "`--registry FILE` chooses another file"),
            ServeError::Samples { .. } => {
                Self::with_hint(error, "`--samples FILE` names a file in a folder that is there, such as /dev/shm")
            }
            ServeError::Start(_) => Self::new(error),
        }
    }
}

impl From<TlsError> for Failure {
    fn from(error: TlsError) -> Self {
        Self::with_hint(
            error,
            "both files are PEM: the chain of certificates, the service's own first, and its private key",
        )
    }
}

impl From<AccessError> for Failure {
    fn from(error: AccessError) -> Self {
        Self::with_hint(error, "a line is `NAME ROLE TOKEN`, as in `anna operate $(openssl rand -hex 32)`")
    }
}
