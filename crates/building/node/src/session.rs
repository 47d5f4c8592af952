//! A session: run control, which moves its nodes through any number of runs and makes a record of each.
//!
//! All decisions are those of [`evb_control::Control`]. A session passes it time, commands and notices, carries out its
//! orders, and keeps the account of the nodes' reports.

use crate::control::{Notice, Order};
use crate::error::{NodeError, RunError};
use crate::machine::NodeMachine;
use crate::node::Clock;
use crate::node_group::{Blueprint, NodeGroup};
use crate::observer::Observer;
use crate::processes::{ProcessNodes, ProcessOptions};
use crate::run_info::{RunInfo, system_time};
use crate::run_number::RunNumbers;
use crate::threads::ThreadNodes;
use configuration::{Configuration, Entered, config};
use evb_control::{Command, Config, Event, Loss, RunState};
use evb_core::NodeId;
use evb_experiment::{Plan, Rejoin, StageLink};
use evb_record::Record;
use evb_unit::Live;
use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

mod configuration;
#[cfg(test)]
mod tests;

/// Longest wait for a notice of a node.
const TICK: Duration = Duration::from_millis(20);
/// Longest wait for the answer whether a node could take another experiment.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for run control to receive a signal that has already ended one of its nodes.
const STOP_GRACE: Duration = Duration::from_millis(200);

/// The result of a turn of a session.
pub enum Turn {
    /// Nothing ended.
    Nothing,
    /// A run has ended.
    Ended(Box<Record>),
    /// The configuration failed or was given up: there will be no run.
    NotBegun(NodeError),
}

/// The presence of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodePresence {
    /// It takes orders.
    Here,
    /// It has not joined.
    Absent,
    /// It is lost to the run.
    Lost,
}

/// Run control and its nodes.
pub struct Session<'a> {
    nodes: Box<dyn NodeGroup + 'a>,
    clock: Clock,
    configured: Option<Configuration>,
    numbers: RunNumbers,
    /// Type and comment of the next runs.
    description: RunInfo,
    /// Number of questions whether nodes could take an experiment.
    questions: u64,
    /// Runs may begin by themselves for nodes that are there again: the driver of the session takes any number of runs.
    rejoins: bool,
}

impl<'a> Session<'a> {
    /// A session whose nodes are threads of this process.
    pub fn threads() -> Self {
        Self::new(Box::new(ThreadNodes::default()))
    }

    /// A session whose nodes are processes. Run control starts them, or they join by themselves. They use the transport
    /// of the plan; TCP if the plan is for threads.
    ///
    /// # Errors
    /// Run control cannot listen at its address.
    pub fn processes(options: ProcessOptions<'a>) -> Result<Self, RunError> {
        Ok(Self::new(Box::new(ProcessNodes::listen(options)?)))
    }

    fn new(nodes: Box<dyn NodeGroup + 'a>) -> Self {
        Self {
            nodes,
            clock: Clock::start(),
            configured: None,
            numbers: RunNumbers::default(),
            description: RunInfo::default(),
            questions: 0,
            rejoins: false,
        }
    }

    /// The same session, whose runs have this number. It is one of several sessions of a run.
    #[must_use]
    pub(crate) fn with_run_number(mut self, number: u64) -> Self {
        self.numbers = RunNumbers::fixed(number);
        self
    }

    /// Builds events until the run ends, by itself or by a command of the observer. `text` is the resolved experiment.
    /// The nodes stay for the next run. Another plan configures them anew.
    ///
    /// # Errors
    /// [`RunError`] if nodes do not join or cannot open their source, endpoint or files. The record has later errors.
    pub fn run(&mut self, plan: &Plan, text: &str, observer: &mut dyn Observer) -> Result<Record, RunError> {
        self.take_plan(plan, text)?;
        self.command(Command::Start);
        loop {
            if let Some(record) = self.drain(observer)? {
                return Ok(record);
            }
            self.step(observer)?;
        }
    }

    /// Builds events by the commands of the observer until [`Command::Shutdown`], and passes the record of each run to
    /// `take`. An error of a configuration is noted, and the observer may command another configuration.
    ///
    /// # Errors
    /// The error of `take`, or run control cannot receive notices any more.
    pub fn operate<E: From<RunError>>(
        &mut self,
        plan: &Plan,
        text: &str,
        observer: &mut dyn Observer,
        mut take: impl FnMut(Record) -> Result<(), E>,
    ) -> Result<(), E> {
        self.rejoins = true;
        self.take_plan(plan, text)?;
        while self.configured.as_ref().is_some_and(|configured| !configured.has_shut_down) {
            match self.turn(observer)? {
                Turn::Ended(record) => take(*record)?,
                Turn::Nothing => {}
                Turn::NotBegun(error) => observer.note(&error.with_hint()),
            }
        }
        Ok(())
    }

    /// Takes the plan of the next configuration, if all nodes that are here could take it. Nodes of another plan then drop
    /// what they had. Nothing changes if it is the previous one.
    ///
    /// # Errors
    /// A run is in progress, or nodes are being configured for one. A node cannot take the plan, or does not answer: all keep what
    /// they have.
    pub fn load(&mut self, plan: &Plan, text: &str) -> Result<(), RunError> {
        match self.state() {
            state if state.is_active() || state == RunState::Configuring => {
                let message = format!("run control is {state}: another experiment can be taken between runs only");
                Err(NodeError::new(message).hint("stop the run first").into())
            }
            _ => {
                self.rejoins = true;
                self.consult(plan, text)?;
                self.take_plan(plan, text)
            }
        }
    }

    /// Carries out the orders of run control, waits a moment for a notice, and passes it and the commands of the observer to
    /// run control. [`load`](Self::load) must have been called before. A driver that has more to do than
    /// [`operate`](Self::operate) calls this again and again.
    ///
    /// # Errors
    /// Run control cannot receive notices any more.
    pub fn turn(&mut self, observer: &mut dyn Observer) -> Result<Turn, RunError> {
        let turn = match self.drain(observer) {
            Ok(Some(record)) => Turn::Ended(Box::new(record)),
            Ok(None) => Turn::Nothing,
            Err(RunError { error }) => Turn::NotBegun(error),
        };
        self.step(observer)?;
        Ok(turn)
    }

    /// The state of run control.
    pub fn state(&self) -> RunState {
        self.configured.as_ref().map_or(RunState::Initial, |configured| configured.control.state())
    }

    /// Number of the run that is prepared or in progress.
    pub fn run_number(&self) -> Option<u64> {
        self.configured.as_ref()?.number()
    }

    /// The files of the next runs carry this type and this comment.
    pub fn describe_runs(&mut self, run_type: &str, comment: &str) {
        let (run_type, comment) = (run_type.to_owned(), comment.to_owned());
        self.description = RunInfo { run_type, comment, ..RunInfo::default() };
    }

    /// The number of the next run of this plan, before the run. Another plan may store elsewhere, and then has another number.
    pub fn reserve_run_number(&mut self, plan: &Plan) -> u64 {
        self.numbers.reserve(plan)
    }

    /// The next run gets a number beyond this one.
    pub fn number_beyond(&mut self, latest: u64) {
        self.numbers.number_beyond(latest);
    }

    /// The run in progress; `None` between runs.
    pub fn live(&self) -> Option<Live> {
        let configured = self.configured.as_ref().filter(|configured| configured.is_running)?;
        let plan = &configured.blueprint.plan;
        let seconds = configured.control.elapsed(self.clock.now()).as_secs_f64();
        Some(configured.outcome.live(plan, self.nodes.transport(plan), seconds))
    }

    /// The nodes of the plan, in the order of their numbers.
    pub fn presence(&self) -> Vec<NodePresence> {
        let Some(Configuration { control, blueprint, .. }) = &self.configured else { return Vec::new() };
        let absent = control.absent();
        let presence = |node| match (control.is_lost(node), absent.contains(&node)) {
            (true, _) => NodePresence::Lost,
            (false, true) => NodePresence::Absent,
            (false, false) => NodePresence::Here,
        };
        (0..blueprint.plan.building.nodes()).map(NodeId).map(presence).collect()
    }

    /// The machines of the nodes of the plan, in the order of their numbers; `None` for nodes in threads of this process.
    pub fn machines(&self) -> Vec<Option<NodeMachine>> {
        let nodes = self.configured.as_ref().map_or(0, |configured| configured.blueprint.plan.building.nodes());
        (0..nodes).map(|node| self.nodes.machine(NodeId(node))).collect()
    }

    /// Asks the nodes of the present plan whether they could take another one, and waits for their answers.
    fn consult(&mut self, plan: &Plan, text: &str) -> Result<(), RunError> {
        let Some(configured) = self.configured.as_mut().filter(|configured| !configured.has(plan, text)) else {
            return Ok(());
        };
        self.questions += 1;
        let question = self.questions;
        let mut asked = self.nodes.ask(&Blueprint { plan: plan.clone(), text: text.to_owned() }, question);
        let until = Instant::now() + CHECK_TIMEOUT;
        while let Some(first) = asked.first() {
            if Instant::now() >= until {
                let message =
                    format!("{first} does not say whether it could take the experiment, which is not changed");
                return Err(NodeError::new(message)
                    .hint("see what the node does; `abort` and `configure` gather all nodes anew")
                    .into());
            }
            let Some((node, notice)) = self.nodes.notice(TICK, &mut ())? else { continue };
            let name = configured.blueprint.plan.building.node_name(node);
            match notice {
                // Answers to earlier questions come late: the first refusal suffices, and the others are not awaited.
                Notice::Checked { question: of, .. } if of != question => {}
                Notice::Checked { against: None, .. } => _ = asked.remove(&name),
                Notice::Checked { against: Some(error), .. } => return Err(error.into()),
                notice => {
                    if matches!(notice, Notice::Gone { .. }) {
                        asked.remove(&name);
                    }
                    configured.handle_notice(self.clock.now(), node, notice, self.nodes.as_mut());
                }
            }
        }
        Ok(())
    }

    /// Takes a plan; nothing changes if it is the previous one.
    fn take_plan(&mut self, plan: &Plan, text: &str) -> Result<(), RunError> {
        if let Some(configured) = &self.configured {
            if configured.has(plan, text) {
                return Ok(());
            }
            for node in (0..configured.blueprint.plan.building.nodes()).map(NodeId) {
                self.nodes.order(node, Order::Reset, None)?;
            }
        }
        let blueprint = Arc::new(Blueprint { plan: plan.clone(), text: text.to_owned() });
        self.configured = Some(Configuration::new(blueprint, self.config(plan)));
        Ok(())
    }

    /// The configuration of run control for a plan.
    fn config(&self, plan: &Plan) -> Config {
        Config {
            // The stages of one run have one number.
            may_split: plan.link == StageLink::None,
            rejoin: self.rejoins && plan.run.rejoin == Rejoin::Split,
            ..config(plan, self.nodes.patience())
        }
    }

    /// Gives a command to run control, which notes one that means nothing in its state.
    pub fn command(&mut self, command: Command) {
        let now = self.clock.now();
        if let Some(configured) = &mut self.configured {
            configured.command(now, command);
        }
    }

    /// Waits for a notice, and passes all inputs that are due to the machine.
    fn step(&mut self, observer: &mut dyn Observer) -> Result<(), RunError> {
        let notice = match self.nodes.notice(TICK, observer) {
            Err(_) if is_stopping(observer) => return Err(NodeError::stopped().into()),
            notice => notice?,
        };
        let now = self.clock.now();
        let Some(configured) = &mut self.configured else { return Ok(()) };
        if let Some((_, Notice::Note(text))) = &notice {
            observer.note(text);
        }
        if let Some((node, Notice::Sample(sample))) = &notice {
            observer.sample(*node, sample);
        }
        if let Some((node, notice)) = notice {
            configured.handle_notice(now, node, notice, self.nodes.as_mut());
        }
        // One at a time: the observer receives the resulting state before it is asked for the next.
        if let Some(command) = observer.command() {
            configured.command(now, command);
        }
        configured.control.handle_timeout(now);
        if configured.is_running {
            let progress = configured.progress(now);
            observer.progress(&progress);
            if !progress.stopping {
                configured.outcome.note_sources(progress.seconds, observer);
                configured.outcome.show_histograms(progress.seconds, observer);
            }
            configured.outcome.note_fallback(observer);
            configured.outcome.note_dead_links(observer);
        }
        Ok(())
    }

    /// Carries out the orders of the machine. Returns the record of a run that has ended.
    fn drain(&mut self, observer: &mut dyn Observer) -> Result<Option<Record>, RunError> {
        let Self { nodes, clock, configured: Some(configured), numbers, description, .. } = self else {
            return Ok(None);
        };
        let mut record = None;
        loop {
            while let Some((node, order)) = configured.control.poll_order() {
                let plan = &configured.blueprint.plan;
                let begin = || RunInfo { number: numbers.next(plan), start: system_time(), ..description.clone() };
                let run = match order {
                    Order::Prepare => Some(&*configured.run.get_or_insert_with(begin)),
                    Order::Next => Some(&*configured.next.get_or_insert_with(begin)),
                    _ => None,
                };
                tracing::debug!(node = plan.building.node_name(node), ?order, "order");
                nodes.order(node, order, run)?;
            }
            let Some(event) = configured.control.poll_event() else { return Ok(record) };
            match event {
                Event::State(state) => {
                    tracing::info!(
                        ?state,
                        run = configured.number(),
                        experiment = configured.blueprint.plan.name,
                        "run control"
                    );
                    observer.state(state);
                    match configured.enter(state) {
                        Entered::Configuring => {
                            nodes.gather(&configured.blueprint, &configured.control.absent(), observer)?;
                        }
                        Entered::End => record = Some(configured.record(clock.now(), nodes.as_ref())),
                        Entered::NoRun(error) => return Err(error.into()),
                        Entered::Other => {}
                    }
                }
                Event::NextRun { elapsed, switched } => {
                    record = Some(configured.go_over(elapsed, switched, nodes.as_ref()));
                }
                event => {
                    configured.outcome.note_event(&event, observer);
                    if let Event::Lost { node, loss: Loss::Gone } = event
                        && configured.rejoins()
                    {
                        nodes.bring_back(node)?;
                    }
                }
            }
        }
    }
}

/// The end of a session ends its nodes.
impl Drop for Session<'_> {
    fn drop(&mut self) {
        let count = self.configured.as_ref().map_or(0, |configured| configured.blueprint.plan.building.nodes());
        for node in (0..count).map(NodeId) {
            let _already_gone = self.nodes.order(node, Order::Exit, None);
        }
    }
}

/// True if the user wants the run to stop. A signal for all processes at once may reach the others first.
fn is_stopping(observer: &mut dyn Observer) -> bool {
    let end = Instant::now() + STOP_GRACE;
    while Instant::now() < end {
        if matches!(observer.command(), Some(Command::Stop | Command::Abort)) {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    false
}
