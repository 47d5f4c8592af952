//! The `evb` command: describe an event builder once, then simulate it and run it for real.

// The standard macros panic when they cannot write. That must not end a run: `main` reports it at the end.
macro_rules! print {
    ($($text:tt)*) => {
        $crate::output::print(format_args!($($text)*))
    };
}
macro_rules! println {
    ($($text:tt)*) => {{
        print!($($text)*);
        print!("\n");
    }};
}
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _reader_gone = writeln!(std::io::stderr(), $($text)*);
    }};
}

mod allocator;
mod commands;
mod console;
mod failure;
mod folder;
mod hosts;
mod launcher;
mod log;
mod members;
mod memory_watch;
mod nodes;
mod output;
mod progress;
mod results;
mod signals;
mod simulations;
mod terminal;
mod token;

use clap::{Args, Parser, Subcommand};
use evb_os::limits;
use evb_record::Outcome;
use failure::Failure;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Describe an event builder once, then simulate it and run it for real.
///
/// Results go to standard output, everything else to standard error. The exit status is 0 when all is good, 1 when the
/// result is not (events incomplete or lost, a file damaged, a published value missed, a benchmark slower), 2 when the
/// command could not do its work, and 3 when nothing is wrong but it cannot be told whether the result is good.
///
/// Tables have 80 columns, or as many as the terminal where it is wider: the least important columns make room, and JSON and CSV have
/// them all. Verdicts are in colour on a terminal, unless NO_COLOR is set.
#[derive(Parser)]
#[command(name = "evb", version = env!("EVB_VERSION"), max_term_width = 100)]
struct Cli {
    /// Log to standard error what this filter lets through, such as `info` or `evb_node=debug`; EVB_LOG sets it, too
    #[arg(long, global = true, value_name = "FILTER", env = log::VARIABLE, hide_env = true)]
    log: Option<String>,
    /// Form of the log; EVB_LOG_FORMAT sets it, too
    #[arg(long, global = true, value_name = "FORM", value_enum, default_value_t = log::Form::Text, env = log::FORM_VARIABLE, hide_env = true)]
    log_format: log::Form,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build events, or carry other traffic, for real: on this machine or on several
    Run(commands::run::RunArgs),
    /// Simulate the same file in virtual time, on the network that it names
    Simulate(commands::simulate::SimulateArgs),
    /// Join the parts of a sweep, and make its tables and plots again
    #[command(subcommand)]
    Sweep(commands::sweep::SweepCommand),
    /// Search the cheapest network that builds the events, and say why a cheaper one does not
    Plan(commands::plan::PlanArgs),
    /// Run and simulate the same file, and say whether both agree; fit what event building costs on this machine
    Twin(commands::twin::TwinArgs),
    /// Reproduce the tables and figures of published papers by simulation, ours beside theirs
    Paper(commands::paper::PaperArgs),
    /// Measure message layers on this machine with the communication benchmarks of ATLAS DAQ note 77 and others
    Bench(Box<commands::bench::BenchArgs>),
    /// Compare two results of `evb bench`, or runs and simulations, and fail when the new one is worse
    Compare(commands::compare::CompareArgs),
    /// Serve run control: a page, REST and metrics for one event builder that is configured, started and stopped again and
    /// again
    Serve(commands::serve::ServeArgs),
    /// Show the status of a service in a terminal
    Top(commands::top::TopArgs),
    /// List, show and compare the runs of a service
    #[command(subcommand)]
    Runs(commands::runs::RunsCommand),
    /// Say what limits a run or a simulation, or what a plan hangs on, how that is known, and what to try
    Explain(commands::explain::ExplainArgs),
    /// Be one node of a run that an `evb run` with --listen controls
    Node(commands::node::NodeArgs),
    /// Lend filter units to builders on other machines: join them, and run a program that decides about their events
    Filter(commands::filter::FilterArgs),
    /// Play a live front end: send the fragments of a source by TCP or UDP
    Feed(commands::feed::FeedArgs),
    /// Look at what live front ends send
    #[command(subcommand)]
    Sources(commands::sources::SourcesCommand),
    /// Verify, show or export event files
    #[command(subcommand)]
    Events(commands::events::EventsCommand),
    /// Decide about events with a shared library, as a filter unit of a builder
    #[command(hide = true)]
    FilterUnit(commands::filter_unit::FilterUnitArgs),
    /// Print an experiment file resolved, every default filled in
    Check(commands::check::CheckArgs),
    /// Write an experiment file to begin with
    New(commands::new::NewArgs),
    /// Print the JSON Schema of the experiment file, by which editors complete and check it
    Schema,
    /// Print the completions of a shell
    Completions(commands::shell::CompletionsArgs),
    /// Write manual pages
    Man(commands::shell::ManArgs),
}

/// The experiment, and what is changed about it.
#[derive(Args, Clone)]
struct ExperimentArgs {
    /// The experiment file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Set one key of the experiment, such as `trigger.events=1000`; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Set the seed of every random stream, as `--set run.seed=N` does
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl ExperimentArgs {
    /// All overrides, in the form of `--set`.
    fn overrides(&self) -> Vec<String> {
        let seed = self.seed.map(|seed| format!("run.seed={seed}"));
        self.set.iter().cloned().chain(seed).collect()
    }

    fn load(&self) -> Result<evb::Experiment, Failure> {
        self.parse(&evb::Experiment::read(&self.file)?)
    }

    /// The experiment with this text, which was read from the file.
    fn parse(&self, text: &str) -> Result<evb::Experiment, Failure> {
        let experiment = evb::Experiment::parse(text, &self.file.to_string_lossy(), &self.overrides())?;
        tracing::info!(file = %self.file.display(), points = experiment.plans().len(), "experiment loaded");
        Ok(experiment)
    }

    /// The experiment on the network of another file.
    fn load_on(&self, network: &Path) -> Result<evb::Experiment, Failure> {
        let experiment = evb::Experiment::load_on(&self.file, network, &self.overrides())?;
        tracing::info!(file = %self.file.display(), network = %network.display(), "experiment loaded");
        Ok(experiment)
    }
}

fn main() -> ExitCode {
    allocator::set_up();
    limits::raise_open_files();
    let result =
        limits::survive_the_file_size_limit().map_err(Failure::new).and_then(|()| parse()).and_then(|cli| match cli {
            Some(cli) => log::begin(cli.log.as_deref(), cli.log_format).and_then(|()| run(cli.command)),
            None => Ok(Outcome::Good),
        });
    match result.and_then(|outcome| output::check().map(|()| outcome)) {
        Ok(outcome) => exit_code(outcome),
        Err(failure) => {
            failure.print();
            ExitCode::from(2)
        }
    }
}

/// The exit status of a verdict; 2 is that of a command that failed.
fn exit_code(outcome: Outcome) -> ExitCode {
    match outcome {
        Outcome::Good => ExitCode::SUCCESS,
        Outcome::NotGood => ExitCode::from(1),
        Outcome::CannotTell => ExitCode::from(3),
    }
}

/// The parsed command line; `None` if it asked for help, which is printed.
fn parse() -> Result<Option<Cli>, Failure> {
    match Cli::try_parse() {
        Ok(cli) => Ok(Some(cli)),
        Err(error) if error.use_stderr() => error.exit(),
        Err(help) => {
            output::print_by(|| help.print());
            Ok(None)
        }
    }
}

fn run(command: Command) -> Result<Outcome, Failure> {
    match command {
        Command::Run(args) => commands::run::run(&args),
        Command::Simulate(args) => commands::simulate::run(&args),
        Command::Sweep(command) => commands::sweep::run(&command),
        Command::Plan(args) => commands::plan::run(&args),
        Command::Twin(args) => commands::twin::run(&args),
        Command::Paper(args) => commands::paper::run(&args),
        Command::Bench(args) => commands::bench::run(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Serve(args) => commands::serve::run(&args),
        Command::Top(args) => commands::top::run(&args),
        Command::Runs(command) => commands::runs::run(&command),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Node(args) => commands::node::run(&args),
        Command::Filter(args) => commands::filter::run(&args),
        Command::Feed(args) => commands::feed::run(&args),
        Command::Sources(command) => commands::sources::run(&command),
        Command::Events(command) => commands::events::run(&command),
        Command::FilterUnit(args) => commands::filter_unit::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::New(args) => commands::new::run(&args),
        Command::Schema => Ok(commands::shell::schema()),
        Command::Completions(args) => Ok(commands::shell::completions(&args)),
        Command::Man(args) => commands::shell::manual(&args),
    }
}
