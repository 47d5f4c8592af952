//! Two stages: the event builders of both run at the same time, each in a separate session.
//!
//! The second stage begins first, since its readout units listen for the builders of the first. The operator stops the first
//! stage only: the end of its data ends the second.

use crate::error::{NodeError, RunError};
use crate::observer::Observer;
use crate::run_number::RunNumbers;
use crate::session::Session;
use evb_control::{Command, RunState};
use evb_experiment::Plan;
use evb_record::Record;
use evb_unit::Progress;
use std::{
    sync::mpsc::{self, Receiver, Sender},
    thread::{self, Scope},
    time::Duration,
};

/// Longest wait for news of the event builders.
const TICK: Duration = Duration::from_millis(20);

/// Opens the session of one event builder.
pub type OpenSession<'a> = dyn Fn() -> Result<Session<'a>, RunError> + Sync + 'a;

/// Builds events in the two stages of a plan, until the run ends by itself or by a command of the observer. `open` opens the
/// session of each event builder; `text` is the resolved experiment. On this machine only: the stages meet at sockets in a
/// folder.
///
/// # Errors
/// [`RunError`] if the plan has no stages, or an event builder cannot begin its run. The record has later errors.
pub fn run_stages(
    plan: &Plan,
    text: &str,
    open: &OpenSession<'_>,
    observer: &mut dyn Observer,
) -> Result<Record, RunError> {
    let stages = plan.stages.as_ref().ok_or_else(|| NodeError::new("the experiment has no first stage"))?;
    let folder = tempfile::Builder::new().prefix("evb-").tempdir();
    let folder =
        folder.map_err(|error| NodeError::new(format!("no folder for the sockets between the stages: {error}")))?;
    let stages = stages.in_folder(folder.path());
    let number = RunNumbers::default().next(plan);
    let run = |plan: &Plan, observer: &mut StageObserver| open()?.with_run_number(number).run(plan, text, observer);
    let names = |letter| (0..).map(move |index| format!("{letter}{index}"));
    let first = stages.groups.iter().zip(names('g')).map(|(plan, name)| Member::new(plan, name, true));
    let second = stages.slices.iter().zip(names('s')).map(|(plan, name)| Member::new(plan, name, false));
    let (sender, news) = mpsc::channel();
    let mut stages = Members { all: first.chain(second).collect(), news, sender, error: None };
    thread::scope(|scope| stages.run(scope, &run, observer));
    stages.record(&plan.name)
}

/// Runs one event builder.
type Run<'a> = dyn Fn(&Plan, &mut StageObserver) -> Result<Record, RunError> + Sync + 'a;

/// The event builders of both stages.
struct Members<'a> {
    all: Vec<Member<'a>>,
    news: Receiver<(usize, News)>,
    sender: Sender<(usize, News)>,
    /// The first error that kept one of them from its run.
    error: Option<RunError>,
}

struct Member<'a> {
    plan: &'a Plan,
    name: String,
    is_first: bool,
    /// Takes its commands, once it has begun.
    commands: Option<Sender<Command>>,
    has_run: bool,
    has_ended: bool,
    progress: Progress,
    record: Option<Record>,
}

/// News of an event builder.
enum News {
    Progress(Progress),
    Note(String),
    Running,
    Ended(Box<Result<Record, RunError>>),
}

impl<'a> Member<'a> {
    fn new(plan: &'a Plan, name: String, is_first: bool) -> Self {
        let progress = Progress::default();
        Self { plan, name, is_first, commands: None, has_run: false, has_ended: false, progress, record: None }
    }

    /// True for an event builder that has begun and not ended.
    fn is_active(&self) -> bool {
        self.commands.is_some() && !self.has_ended
    }
}

impl<'a> Members<'a> {
    /// Runs all of them to their ends.
    fn run<'scope>(&mut self, scope: &'scope Scope<'scope, 'a>, run: &'scope Run<'scope>, observer: &mut dyn Observer)
    where
        'a: 'scope,
    {
        let (mut stops, mut begun) = (0, false);
        self.begin(scope, run, false);
        while self.all.iter().any(Member::is_active) {
            if let Ok((index, news)) = self.news.recv_timeout(TICK) {
                self.handle_notice(index, news, observer);
            }
            if !begun && self.error.is_none() && stops == 0 && self.all.iter().all(|one| one.is_first || one.has_run) {
                begun = true;
                self.begin(scope, run, true);
            }
            if let Some(command) = observer.command() {
                stops += usize::from(command == Command::Stop);
                self.pass_on(command, stops);
            }
            observer.progress(&self.progress());
        }
    }

    /// Begins the event builders of a stage.
    fn begin<'scope>(&mut self, scope: &'scope Scope<'scope, 'a>, run: &'scope Run<'scope>, is_first: bool)
    where
        'a: 'scope,
    {
        for (index, member) in self.all.iter_mut().enumerate().filter(|(_, member)| member.is_first == is_first) {
            let (commands, receiver) = mpsc::channel();
            member.commands = Some(commands);
            let (plan, mut observer) =
                (member.plan, StageObserver { index, news: self.sender.clone(), commands: receiver });
            scope.spawn(move || {
                let result = run(plan, &mut observer);
                observer.send(News::Ended(Box::new(result)));
            });
        }
    }

    fn handle_notice(&mut self, index: usize, news: News, observer: &mut dyn Observer) {
        let member = &mut self.all[index];
        match news {
            News::Progress(progress) => member.progress = progress,
            News::Note(text) => observer.note(&format!("{}: {text}", member.name)),
            News::Running => member.has_run = true,
            News::Ended(result) => {
                member.has_ended = true;
                match *result {
                    Ok(record) => member.record = Some(record),
                    Err(RunError { error }) => {
                        let message = format!("{}: {}", member.name, error.message);
                        self.error.get_or_insert(RunError { error: NodeError { message, ..error } });
                        self.tell_all(Command::Abort, |_| true);
                    }
                }
            }
        }
    }

    /// Passes on a command of the operator. The first stop is for the first stage, later ones are for both.
    fn pass_on(&self, command: Command, stops: usize) {
        let first_runs = self.all.iter().any(|member| member.is_first && member.is_active());
        self.tell_all(command, |member| command != Command::Stop || stops > 1 || !first_runs || member.is_first);
    }

    fn tell_all(&self, command: Command, to: impl Fn(&Member<'_>) -> bool) {
        for commands in self.all.iter().filter(|member| to(member)).filter_map(|member| member.commands.as_ref()) {
            let _has_ended = commands.send(command);
        }
    }

    /// The triggers of the first stage, and the events of the second.
    fn progress(&self) -> Progress {
        let mut all = Progress::default();
        for Member { progress, is_first, .. } in &self.all {
            all.seconds = all.seconds.max(progress.seconds);
            all.stopping |= progress.stopping;
            if *is_first {
                all.triggered = all.triggered.max(progress.triggered);
            } else {
                all.ended += progress.ended;
                all.incomplete += progress.incomplete;
                all.bytes += progress.bytes;
            }
        }
        all
    }

    fn record(self, experiment: &str) -> Result<Record, RunError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut stages = evb_record::Stages::default();
        for Member { is_first, record, .. } in self.all {
            if is_first { &mut stages.first } else { &mut stages.second }.extend(record);
        }
        stages.whole(experiment).ok_or_else(|| NodeError::stopped().into())
    }
}

/// The observer of one event builder.
struct StageObserver {
    index: usize,
    news: Sender<(usize, News)>,
    commands: Receiver<Command>,
}

impl StageObserver {
    fn send(&self, news: News) {
        // The members outlive their threads.
        let _ = self.news.send((self.index, news));
    }
}

impl Observer for StageObserver {
    fn progress(&mut self, progress: &Progress) {
        self.send(News::Progress(*progress));
    }

    fn note(&mut self, text: &str) {
        self.send(News::Note(text.to_owned()));
    }

    fn state(&mut self, state: RunState) {
        if state == RunState::Running {
            self.send(News::Running);
        }
    }

    fn command(&mut self) -> Option<Command> {
        self.commands.try_recv().ok()
    }
}
