//! The service: drives a session turn by turn, carries out the requests of operators, and keeps the registry of runs.
//!
//! A run begins in the registry when run control says that it runs, and is shown as running only then. So a service
//! that is killed at any moment leaves a run that is known to be interrupted.

use crate::{
    disk,
    hooks::{Hook, Hooks},
    journal::Level,
    rates::{Rates, slowest},
    registry::{Backlog, Begun, Ended, NodeOfRun, RegistryError},
    service_state::{Answer, OperatorRequest, Refusal, Request, ServiceState, now},
    status::{NodeStatus, Problem, RunStatus, Status, word},
};
use evb::{
    Command, Keep, Live, NodeError, NodeId, NodeMachine, NodePresence, Observer, Plan, Progress, RunError, RunState,
    Sample, Session, Turn,
};
use evb_record::{Histogram, Record};
use evb_report::explain_running;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, mpsc::Receiver},
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// Time between two looks at a run, and so between two statuses.
const LOOK: Duration = Duration::from_millis(400);
/// Time over which rates are taken: the nodes report a few times in it.
const WINDOW: Duration = Duration::from_millis(1200);
/// Longest time between two statuses when nothing changes: pages take a longer silence for a broken connection.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// An experiment that can be run: the plan of each point of its sweep, with its resolved file.
#[derive(Clone)]
pub struct Loaded {
    /// The file as people wrote it.
    pub text: String,
    /// The points, one without a sweep.
    pub points: Vec<(Plan, String)>,
}

/// Reads an experiment from its text, and checks that this service can run it.
pub type Load<'a> = dyn Fn(&str) -> Result<Loaded, Problem> + 'a;

/// An error that ends a service.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Run control cannot go on.
    #[error(transparent)]
    Session(#[from] RunError),
    /// The registry of runs cannot be used.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The file of samples cannot be written.
    #[error("cannot write samples to {}: {source}", path.display())]
    Samples {
        /// The file.
        path: std::path::PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The address cannot be listened at.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The reason.
        source: std::io::Error,
    },
    /// The system has no thread or file left.
    #[error("cannot start: {0}")]
    Start(std::io::Error),
}

/// Run control with the state that it shares with the web side.
pub(crate) struct Service<'a> {
    shared: &'a ServiceState,
    load: &'a Load<'a>,
    hooks: &'a Hooks,
    host: String,
    loaded: Loaded,
    /// The point of the sweep that runs next, or goes on.
    point: usize,
    run: Option<CurrentRun>,
    last: Option<LastRun>,
    start: Option<Starting>,
    /// Type and comment of the run that follows the present one without a stop; an empty type is that of the present one.
    next: Option<(String, String)>,
    after: Vec<Hook>,
    /// Changes of the registry that wait.
    backlog: Backlog<'a>,
    error: Option<Problem>,
    /// The state that run control was last said to be in: what it entails is done.
    state: RunState,
    /// The latest looks at the run that goes on, as far as rates need them.
    looks: VecDeque<(Instant, Arc<Live>)>,
    shown: Option<(Instant, RunState, Vec<NodeStatus>)>,
    quitting: bool,
}

/// A start that waits for its hook.
struct Starting {
    hook: Option<Hook>,
    run_type: String,
    comment: String,
}

/// The run that goes on or is being prepared.
struct CurrentRun {
    status: RunStatus,
    stop_comment: String,
    /// The operator ended it: a scan does not go on.
    is_stopped: bool,
    /// The run as it was noted when it began.
    noted: Option<Arc<Begun>>,
    started: Instant,
}

/// The run before.
struct LastRun {
    status: RunStatus,
    /// Its record without the histograms.
    record: Arc<Record>,
    histograms: Arc<Vec<Histogram>>,
}

/// What the session tells in a turn.
struct Notes<'a> {
    shared: &'a ServiceState,
    run: Option<u64>,
    states: Vec<RunState>,
}

impl Observer for Notes<'_> {
    fn progress(&mut self, _: &Progress) {}

    fn note(&mut self, text: &str) {
        self.shared.log(Level::Warning, self.run, node_in(text), text);
    }

    fn state(&mut self, state: RunState) {
        self.states.push(state);
    }

    fn sample(&mut self, _: NodeId, sample: &Sample) {
        if let Some(run) = self.run {
            self.shared.show_sample(run, sample);
        }
    }
}

/// The node at the beginning of a note, as in "ru1 is gone: its process was killed".
fn node_in(text: &str) -> Option<String> {
    let first = text.split([' ', ':']).next()?;
    let is_unit = |prefix: &str| {
        first
            .strip_prefix(prefix)
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    (first == "evm" || is_unit("ru") || is_unit("bu")).then(|| first.to_owned())
}

impl<'a> Service<'a> {
    pub(crate) fn new(
        shared: &'a ServiceState,
        loaded: Loaded,
        load: &'a Load<'a>,
        hooks: &'a Hooks,
    ) -> Result<Self, ServeError> {
        let interrupted = shared.with_registry(|registry| registry.close_interrupted());
        let interrupted = interrupted.map_err(RegistryError::with_holders)?;
        shared.with_registry(|registry| registry.be_brief())?;
        if interrupted > 0 {
            let text = format!("{interrupted} run without an end in the registry: it was interrupted");
            shared.log(Level::Warning, None, None, text);
        }
        let host = evb::host();
        let service = Self {
            shared,
            load,
            hooks,
            host,
            loaded,
            point: 0,
            run: None,
            last: None,
            start: None,
            next: None,
            after: Vec::new(),
            backlog: Backlog::new(shared),
            error: None,
            state: RunState::Initial,
            looks: VecDeque::new(),
            shown: None,
            quitting: false,
        };
        service.note_experiment();
        Ok(service)
    }

    /// Takes the experiment, and shows the first status.
    pub(crate) fn prepare(&mut self, session: &mut Session<'_>) -> Result<(), ServeError> {
        self.take_point(session)?;
        self.publish(session);
        Ok(())
    }

    /// Serves until the end is wished for, and no run goes on.
    pub(crate) fn serve(
        &mut self,
        session: &mut Session<'_>,
        requests: &Receiver<Request>,
        signals: &dyn Fn() -> u32,
    ) -> Result<(), ServeError> {
        let mut heard = 0;
        while !(self.quitting && self.is_at_rest(session)) {
            if heard < signals() {
                heard += 1;
                self.quit(session);
            }
            while let Ok(Request { action, by, reply }) = requests.try_recv() {
                self.carry_out(session, action, &by, reply);
            }
            self.look_after_hooks(session)?;
            self.backlog.look_after();
            self.turn(session)?;
            self.publish(session);
        }
        Ok(())
    }

    fn is_at_rest(&self, session: &Session<'_>) -> bool {
        let state = session.state();
        let is_between = !state.is_active() && state != RunState::Configuring;
        is_between && self.start.is_none() && self.run.is_none()
    }

    fn plan(&self) -> &Plan {
        &self.loaded.points[self.point].0
    }

    fn note_experiment(&self) {
        self.shared.note_experiment(&self.plan().name, &self.loaded.text);
    }

    /// Gives the session the plan of the present point.
    fn take_point(&self, session: &mut Session<'_>) -> Result<(), RunError> {
        let (plan, text) = &self.loaded.points[self.point];
        session.load(plan, text)
    }

    fn number(&self) -> Option<u64> {
        self.run.as_ref().filter(|run| run.noted.is_some()).map(|run| run.status.number)
    }

    // ---- requests of operators

    fn carry_out(
        &mut self,
        session: &mut Session<'_>,
        action: OperatorRequest,
        by: &str,
        reply: oneshot::Sender<Answer>,
    ) {
        let answer = match action {
            OperatorRequest::Command { command, run_type, comment } => {
                self.command(session, command, run_type, comment, by)
            }
            OperatorRequest::Load { text } => self.take_text(session, &text, by),
            OperatorRequest::Quit => {
                self.shared.log(Level::Info, self.number(), None, format!("{by}: quit"));
                self.quit(session);
                Ok(session.state())
            }
        };
        let _nobody_waits = reply.send(answer);
    }

    fn command(
        &mut self,
        session: &mut Session<'_>,
        command: Command,
        run_type: String,
        comment: String,
        by: &str,
    ) -> Answer {
        let state = session.state();
        let is_starting = self.start.is_some();
        let ends = matches!(command, Command::Stop | Command::Abort);
        if !(state.accepts(command) && !is_starting || is_starting && ends) || self.quitting && !ends {
            let message = format!("run control is {state}: {:?} means nothing now", command.name());
            return Err(Refusal::Now(Problem { message, hint: None }));
        }
        self.shared.log(Level::Info, self.number(), None, format!("{by}: {}", command.name()));
        match command {
            Command::Start => {
                self.point = 0;
                self.begin(session, run_type, comment);
            }
            Command::Split => {
                let of_run = self.run.as_ref().map(|run| run.status.run_type.as_str()).filter(|_| run_type.is_empty());
                session.describe_runs(of_run.unwrap_or(&run_type), &comment);
                self.next = Some((run_type, comment));
                session.command(command);
            }
            Command::Stop | Command::Abort if is_starting => self.start = None,
            Command::Stop | Command::Abort => self.stop(session, command, comment),
            command => {
                self.error = None;
                session.command(command);
            }
        }
        Ok(session.state())
    }

    /// Ends the service after its run.
    fn quit(&mut self, session: &mut Session<'_>) {
        self.quitting = true;
        if !self.is_at_rest(session) {
            self.stop(session, Command::Stop, String::new());
        }
    }

    fn stop(&mut self, session: &mut Session<'_>, command: Command, comment: String) {
        self.start = None;
        if let Some(run) = &mut self.run {
            run.is_stopped = true;
            if !comment.is_empty() {
                run.stop_comment = comment;
            }
        }
        session.command(command);
    }

    fn take_text(&mut self, session: &mut Session<'_>, text: &str, by: &str) -> Answer {
        if !self.is_at_rest(session) {
            let message =
                format!("run control is {}: another experiment can be taken between runs only", session.state());
            return Err(Refusal::Now(Problem::new(message, "stop the run first")));
        }
        let loaded = (self.load)(text).map_err(Refusal::Experiment)?;
        let before = (std::mem::replace(&mut self.loaded, loaded), std::mem::take(&mut self.point));
        if let Err(RunError { error }) = self.take_point(session) {
            (self.loaded, self.point) = before;
            return Err(Refusal::Now(problem(error)));
        }
        self.error = None;
        self.note_experiment();
        self.shared.log(Level::Info, None, None, format!("{by}: the experiment is {:?} now", self.plan().name));
        Ok(session.state())
    }

    // ---- runs

    /// Begins a run: first its hook.
    fn begin(&mut self, session: &mut Session<'_>, run_type: String, comment: String) {
        self.error = None;
        // A registry that cannot be read has no number that is not known from an earlier run.
        let latest = self.shared.with_registry(|registry| registry.latest()).unwrap_or_default();
        session.number_beyond(latest);
        let variables = [
            ("EVB_RUN", session.reserve_run_number(self.plan()).to_string()),
            ("EVB_EXPERIMENT", self.plan().name.clone()),
            ("EVB_TYPE", run_type.clone()),
            ("EVB_COMMENT", comment.clone()),
        ];
        let hook = self.hooks.before_start.as_ref();
        match hook.map(|program| Hook::start(program, &variables, self.hooks.timeout)).transpose() {
            Ok(hook) => self.start = Some(Starting { hook, run_type, comment }),
            Err(why) => self.refuse_start(why),
        }
    }

    fn refuse_start(&mut self, why: String) {
        self.start = None;
        self.shared.log(Level::Error, None, None, format!("no run begins: {why}"));
        self.error = Some(Problem::new(why, "the hook before the start must succeed; its output is in the service's"));
    }

    fn look_after_hooks(&mut self, session: &mut Session<'_>) -> Result<(), ServeError> {
        self.after.retain_mut(|hook| match hook.outcome() {
            None => true,
            Some(Ok(())) => false,
            Some(Err(why)) => {
                self.shared.log(Level::Error, None, None, format!("after the run: {why}"));
                false
            }
        });
        let Some(start) = &mut self.start else { return Ok(()) };
        match start.hook.as_mut().map_or(Some(Ok(())), Hook::outcome) {
            None => {}
            Some(Err(why)) => self.refuse_start(why),
            Some(Ok(())) => {
                let Some(Starting { run_type, comment, .. }) = self.start.take() else { return Ok(()) };
                self.take_point(session)?;
                session.describe_runs(&run_type, &comment);
                let status = RunStatus { run_type, comment, ..RunStatus::default() };
                let started = Instant::now();
                self.run =
                    Some(CurrentRun { status, stop_comment: String::new(), is_stopped: false, noted: None, started });
                self.next = None;
                session.command(Command::Start);
            }
        }
        Ok(())
    }

    fn turn(&mut self, session: &mut Session<'_>) -> Result<(), ServeError> {
        let mut notes = Notes { shared: self.shared, run: self.number(), states: Vec::new() };
        let turn = session.turn(&mut notes)?;
        for state in notes.states {
            self.state = state;
            self.shared.log(Level::Info, self.number(), None, format!("run control: {state}"));
            if state == RunState::Running {
                self.note_begin(session);
            }
        }
        match turn {
            Turn::Nothing => {}
            Turn::Ended(record) => self.note_end(session, *record)?,
            Turn::NotBegun(error) => {
                self.run = None;
                self.shared.log(Level::Error, None, None, error.to_string());
                self.error = Some(problem(error));
            }
        }
        Ok(())
    }

    /// Notes the run that has begun.
    fn note_begin(&mut self, session: &Session<'_>) {
        let (plan, text) = &self.loaded.points[self.point];
        let names = (0..plan.building.nodes()).map(|node| plan.building.node_name(NodeId(node)));
        let nodes = names.zip(session.machines()).map(|(name, machine)| match machine {
            Some(NodeMachine { host, clock_ahead_s }) => NodeOfRun { name, host, clock_ahead_s },
            None => NodeOfRun { name, host: self.host.clone(), clock_ahead_s: 0.0 },
        });
        let nodes = nodes.collect();
        let Some(run) = self.run.as_mut().filter(|run| run.noted.is_none()) else { return };
        run.started = Instant::now();
        run.status.started = now();
        run.status.number = session.run_number().unwrap_or_default();
        let begun = Begun {
            number: run.status.number,
            run_type: run.status.run_type.clone(),
            experiment: plan.name.clone(),
            comment: run.status.comment.clone(),
            started: run.status.started,
            host: self.host.clone(),
            version: evb::VERSION.into(),
            seed: plan.run.seed,
            experiment_text: text.clone(),
            nodes,
        };
        let begun = Arc::new(begun);
        run.noted = Some(begun.clone());
        self.backlog.begin(begun);
    }

    /// Notes the run that has ended, and goes on with a scan.
    fn note_end(&mut self, session: &mut Session<'_>, record: Record) -> Result<(), ServeError> {
        let Some(mut run) = self.run.take() else { return Ok(()) };
        let state = if session.state() == RunState::Failed { "failed" } else { "stopped" };
        run.status.seconds = run.started.elapsed().as_secs_f64();
        let number = run.status.number;
        let verdict = record.outcome().name();
        let level = if record.good { Level::Info } else { Level::Warning };
        self.shared.log(
            level,
            Some(number),
            None,
            format!("run {number} {state}: {} events built, {verdict}", record.events.built),
        );
        let end = Ended { state, ended: now(), comment: run.stop_comment, record };
        self.start_after_hook(number, &end);
        let (record, histograms) = parted(end.record.clone());
        if let Some(begun) = run.noted {
            self.backlog.end(begun, end);
        }
        let RunStatus { run_type, comment, .. } = run.status.clone();
        self.last = Some(LastRun { status: run.status, record, histograms });
        self.looks.clear();
        if session.state().is_active() || session.state() == RunState::Configuring {
            self.follow(session, (run_type, comment), run.is_stopped);
            return Ok(());
        }
        self.next = None;
        if !run.is_stopped && state == "stopped" && self.point + 1 < self.loaded.points.len() {
            self.point += 1;
            self.begin(session, run_type, comment);
        }
        Ok(())
    }

    /// Goes on with the run that follows the one before by itself: it goes on already, or nodes connect for it. It has the
    /// type and the comment of the one before unless the operator has given others.
    fn follow(&mut self, session: &Session<'_>, before: (String, String), is_stopped: bool) {
        let (run_type, comment) = match self.next.take() {
            Some((run_type, comment)) if run_type.is_empty() => (before.0, comment),
            Some(wished) => wished,
            None => before,
        };
        let status = RunStatus { run_type, comment, ..RunStatus::default() };
        let (stop_comment, started) = (String::new(), Instant::now());
        self.run = Some(CurrentRun { status, stop_comment, is_stopped, noted: None, started });
        if session.state().is_active() {
            self.note_begin(session);
        }
    }

    fn start_after_hook(&mut self, number: u64, end: &Ended) {
        let Some(program) = &self.hooks.after_stop else { return };
        let variables = [
            ("EVB_EXPERIMENT", end.record.experiment.clone()),
            ("EVB_RUN", number.to_string()),
            ("EVB_STATE", end.state.to_owned()),
            ("EVB_GOOD", end.record.good.to_string()),
            ("EVB_VERDICT", end.record.outcome().key().to_owned()),
            ("EVB_COMMENT", end.comment.clone()),
        ];
        match Hook::start(program, &variables, self.hooks.timeout) {
            Ok(hook) => self.after.push(hook),
            Err(why) => self.shared.log(Level::Error, Some(number), None, format!("after the run: {why}")),
        }
    }

    // ---- the status

    /// Shows the status when it is time for it, or when something has changed.
    fn publish(&mut self, session: &Session<'_>) {
        let state = self.state;
        let nodes = self.nodes(session);
        let wait = if state.is_active() { LOOK } else { HEARTBEAT };
        let is_due = self
            .shown
            .as_ref()
            .is_none_or(|(at, was, before)| at.elapsed() >= wait || *was != state || *before != nodes);
        if !is_due {
            return;
        }
        self.shown = Some((Instant::now(), state, nodes.clone()));
        let status = self.status(session, nodes);
        self.shared.show(status, self.live().cloned());
    }

    fn nodes(&self, session: &Session<'_>) -> Vec<NodeStatus> {
        let config = &self.plan().building;
        let reasons = self.reasons();
        let node = |(number, presence): (u16, NodePresence)| {
            let (node, name) = (NodeId(number), config.node_name(NodeId(number)));
            let kind = match node {
                node if config.readout_nodes().contains(node) => "readout",
                node if config.builder_nodes().contains(node) => "builder",
                _ => "manager",
            };
            let reason = reasons.get(&name).filter(|_| presence != NodePresence::Here).cloned();
            NodeStatus { name, kind, state: word(presence), reason }
        };
        (0_u16..).zip(session.presence()).map(node).collect()
    }

    /// The findings about nodes that were lost, by node.
    fn reasons(&self) -> BTreeMap<String, String> {
        let live = self.live().map(|live| &live.record);
        let record = live.or(self.last.as_ref().map(|last| &*last.record));
        let findings = record.map(|record| record.findings.as_slice()).unwrap_or_default();
        findings.iter().map(|finding| (finding.subject.clone(), finding.message.clone())).collect()
    }

    fn status(&mut self, session: &Session<'_>, nodes: Vec<NodeStatus>) -> Status {
        let state = self.state;
        let live = session.live().filter(|_| state.is_active());
        let rates = live.and_then(|live| self.rates(live));
        let plan = self.plan();
        let commands = Command::ALL.into_iter().filter(|&command| command != Command::Shutdown);
        let commands = match self.start {
            Some(_) => vec![Command::Stop.name(), Command::Abort.name()],
            None => commands.filter(|&command| state.accepts(command)).map(Command::name).collect(),
        };
        let current = self.run.as_ref().filter(|run| run.noted.is_some());
        let run = current.map(|run| RunStatus { seconds: run.started.elapsed().as_secs_f64(), ..run.status.clone() });
        let live = self.live().filter(|_| run.is_some());
        let stored = rates.as_ref().map_or(0.0, |rates| rates.stored_bytes_per_s);
        let last = || self.last.as_ref().map(|last| (last.record.clone(), last.histograms.clone()));
        let (record, histograms) = live.map(|live| parted(live.record.clone())).or_else(last).unzip();
        Status {
            now: now(),
            state: if self.start.is_some() { RunState::Configuring.name() } else { state.name() },
            commands,
            experiment: plan.name.clone(),
            version: evb::VERSION,
            transport: plan.transport.info().name.into(),
            protocol: plan.building.protocol.name().into(),
            waiting: live.map(|live| live.waiting.clone()).unwrap_or_default(),
            slowest: live.and_then(|live| slowest(live)),
            limit: live.and_then(|live| explain_running(&live.record).into_iter().next()),
            record,
            histograms: histograms.unwrap_or_default(),
            run: run.or_else(|| self.last.as_ref().map(|last| last.status.clone())),
            nodes,
            now_rates: rates,
            disk: (plan.storage.keep != Keep::None).then(|| disk::look(&plan.storage.directory, stored)).flatten(),
            error: self.error.as_ref().or(self.backlog.problem()).cloned(),
        }
    }

    /// The latest look at the run that goes on.
    fn live(&self) -> Option<&Arc<Live>> {
        self.looks.back().map(|(_, live)| live)
    }

    /// The rates since the oldest look that is not too old.
    fn rates(&mut self, live: Live) -> Option<Rates> {
        let at = Instant::now();
        while self.looks.get(1).is_some_and(|(time, _)| at - *time >= WINDOW) {
            self.looks.pop_front();
        }
        let rates = self
            .looks
            .front()
            .filter(|(since, _)| at - *since >= LOOK / 2)
            .map(|(since, before)| Rates::between(self.plan(), before, &live, (at - *since).as_secs_f64()));
        self.looks.push_back((at, Arc::new(live)));
        rates
    }
}

/// A record without its histograms, and these.
fn parted(mut record: Record) -> (Arc<Record>, Arc<Vec<Histogram>>) {
    let histograms = std::mem::take(&mut record.histograms);
    (Arc::new(record), Arc::new(histograms))
}

fn problem(error: NodeError) -> Problem {
    Problem { message: error.message, hint: error.hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_about_a_node_begin_with_its_name() {
        assert_eq!(node_in("ru12 is gone: killed"), Some("ru12".into()));
        assert_eq!(node_in("evm: broken"), Some("evm".into()));
        assert_eq!(node_in("run control is running"), None);
        assert_eq!(node_in("bu is not a unit"), None);
    }
}
