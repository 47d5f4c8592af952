//! A front end that hears run control: it gets its settings and the run before the run begins, and the stop at its end.
//!
//! Nothing here waits. The node asks in every turn whether the front end has answered, because other nodes share its
//! worker, and a silent board must not hold them up.

use crate::{control::Order, error::NodeError, run_info::RunInfo};
use connection::{Connection, Heard};
use evb_core::SourceId;
use evb_record::{Finding, FindingKind, FrontEndRecord};
use evb_sources::{ControlLink, ControlSpec};
use lines::Said;
use std::{
    collections::VecDeque,
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

mod connection;
mod lines;

/// Most texts about a front end that are kept in a run.
const MOST_TEXTS: usize = 8;

pub(super) struct FrontEnd {
    unit: SourceId,
    spec: ControlSpec,
    connection: Connection,
    run: String,
    opened: Instant,
    /// It has sent its first line, and was sent its settings.
    has_greeted: bool,
    /// The connection has ended.
    has_ended: bool,
    /// The start was sent, and no stop.
    is_armed: bool,
    /// The run has begun: what goes wrong is a finding.
    is_running: bool,
    orders: u64,
    /// Orders without an answer: the number, the name, and the time at which the answer is late.
    open: VecDeque<(u64, &'static str, Instant)>,
    busy_since: Option<Instant>,
    record: FrontEndRecord,
    /// What went wrong.
    faults: Vec<String>,
    /// Problems that the front end has reported.
    problems: Vec<String>,
    /// Texts for the operator.
    notes: VecDeque<String>,
}

impl FrontEnd {
    /// Begins to connect to the front end of a readout unit.
    pub(super) fn open(
        spec: &ControlSpec,
        unit: SourceId,
        run: &RunInfo,
        waker: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<Self, NodeError> {
        Ok(Self {
            unit,
            connection: Connection::open(&spec.link, waker).map_err(|error| error.of(&format!("ru{unit}")))?,
            spec: spec.clone(),
            run: lines::run(run.number, &run.run_type),
            opened: Instant::now(),
            has_greeted: false,
            has_ended: false,
            is_armed: false,
            is_running: false,
            orders: 0,
            open: VecDeque::new(),
            busy_since: None,
            record: FrontEndRecord::default(),
            faults: Vec::new(),
            problems: Vec::new(),
            notes: VecDeque::new(),
        })
    }

    fn name(&self) -> String {
        format!("ru{} ({})", self.unit, self.spec.link.place())
    }

    fn timeout(&self) -> Duration {
        self.spec.timeout.as_duration()
    }

    /// Takes an order of run control.
    pub(super) fn order(&mut self, order: Order) {
        match order {
            Order::Arm => {
                self.is_armed = true;
                let run = self.run.clone();
                self.send("start", Some(&run));
            }
            Order::Start => self.is_running = true,
            Order::Pause => self.send("pause", None),
            Order::Resume => self.send("resume", None),
            Order::Stop => self.stop(),
            _ => {}
        }
    }

    /// Lets a front end that has started stop, once.
    fn stop(&mut self) {
        if mem::take(&mut self.is_armed) {
            self.send("stop", None);
        }
    }

    fn send(&mut self, name: &'static str, arguments: Option<&str>) {
        if !self.has_ended {
            self.orders += 1;
            self.open.push_back((self.orders, name, Instant::now() + self.timeout()));
            self.connection.send(lines::order(self.orders, name, arguments));
        }
    }

    /// Takes what the front end has said, and sees what is late.
    pub(super) fn listen(&mut self) {
        while let Some((at, heard)) = self.connection.next() {
            match heard {
                Heard::Said(said) => self.take(at, said),
                Heard::Ended(why) => self.end(&why),
            }
        }
        if !self.open.is_empty() {
            self.look_for_late_answers(Instant::now());
        }
    }

    fn take(&mut self, at: Instant, said: Said) {
        match said {
            Said::Greeting if !mem::replace(&mut self.has_greeted, true) => {
                self.send("configure", Some(&lines::settings(&self.spec.settings)));
                // The connection and the settings share one wait.
                let late = self.opened + self.timeout();
                self.open.back_mut().into_iter().for_each(|order| order.2 = late);
            }
            Said::Greeting => {}
            Said::Done(id) => _ = self.answered(id),
            Said::Refused(id, why) => {
                if let Some(name) = self.answered(id) {
                    self.fault(format!("refused {name}: {why}"));
                }
            }
            Said::Busy if self.busy_since.is_none() => {
                self.busy_since = Some(at);
                self.record.vetoes += 1;
            }
            Said::Busy => {}
            Said::Ready => self.record.busy_s += self.busy_since.take().map_or(0.0, |since| (at - since).as_secs_f64()),
            Said::Problem(what) => self.take_problem(&what),
        }
    }

    /// The name of the order with this number, which is open no more; none for an answer that comes too late.
    fn answered(&mut self, id: u64) -> Option<&'static str> {
        let at = self.open.iter().position(|order| order.0 == id)?;
        self.open.remove(at).map(|order| order.1)
    }

    fn take_problem(&mut self, what: &str) {
        self.record.problems += 1;
        if self.problems.len() < MOST_TEXTS {
            let text = format!("{} reports a problem: {what}", self.name());
            self.notes.push_back(text.clone());
            self.problems.push(text);
        }
    }

    fn end(&mut self, why: &str) {
        self.has_ended = true;
        let open = self.open.front().map(|order| order.1);
        self.open.clear();
        match open {
            Some(name) => self.fault(format!("{why} before it answered {name}")),
            // A front end may leave when its run is over.
            None if self.is_armed || !self.is_running => self.fault(why.to_owned()),
            None => {}
        }
    }

    fn look_for_late_answers(&mut self, now: Instant) {
        while let Some(at) = self.open.iter().position(|order| order.2 <= now)
            && let Some((_, name, _)) = self.open.remove(at)
        {
            self.fault(format!("did not answer {name} within {}", self.spec.timeout));
        }
    }

    fn fault(&mut self, what: String) {
        if self.faults.len() < MOST_TEXTS {
            let text = format!("{} {what}", self.name());
            if self.is_running {
                self.notes.push_back(text.clone());
            }
            self.faults.push(text);
        }
    }

    /// Returns true if the front end has its settings, and has started if it was to start.
    ///
    /// # Errors
    /// It refused, is gone, or did not answer in time.
    pub(super) fn is_ready(&mut self) -> Result<bool, NodeError> {
        self.listen();
        if !self.has_greeted && !self.has_ended && self.opened.elapsed() >= self.timeout() {
            self.fault(self.absence());
        }
        match self.faults.first() {
            Some(fault) => {
                Err(NodeError::new(fault)
                    .hint("`timeout` in `control` of the source is how long the front end may take"))
            }
            None => Ok(self.has_greeted && self.open.is_empty()),
        }
    }

    /// Why there is no front end after the wait.
    fn absence(&self) -> String {
        let timeout = self.spec.timeout;
        match (self.connection.is_connected(), self.connection.obstacle(), &self.spec.link) {
            (true, ..) => format!("did not begin with \"{}\" within {timeout}", lines::GREETING),
            (false, Some(why), ControlLink::Connect(_)) => format!("could not be connected to within {timeout}: {why}"),
            _ => format!("did not connect within {timeout}"),
        }
    }

    /// Goes over to the run that follows without a stop.
    pub(super) fn next_run(&mut self, run: &RunInfo) {
        self.record = FrontEndRecord::default();
        self.busy_since = self.busy_since.map(|_| Instant::now());
        self.faults.clear();
        self.problems.clear();
        self.send("next", Some(&lines::run(run.number, &run.run_type)));
    }

    /// Stops the front end; returns true when nothing is to be awaited any more.
    pub(super) fn finish(&mut self) -> bool {
        self.stop();
        self.listen();
        self.open.is_empty()
    }

    /// Awaits no answers any more.
    pub(super) fn hurry(&mut self) {
        self.stop();
        self.open.clear();
    }

    /// The next text for the operator.
    pub(super) fn note(&mut self) -> Option<String> {
        self.notes.pop_front()
    }

    pub(super) fn record(&self) -> FrontEndRecord {
        let busy = self.busy_since.map_or(0.0, |since| since.elapsed().as_secs_f64());
        FrontEndRecord { busy: self.busy_since.is_some(), busy_s: self.record.busy_s + busy, ..self.record.clone() }
    }

    pub(super) fn findings(&self) -> impl Iterator<Item = Finding> {
        let subject = format!("ru{}", self.unit);
        let of = move |kind| {
            let subject = subject.clone();
            move |text: &String| Finding::new(kind, subject.clone(), text.clone())
        };
        let faults = self.faults.iter().map(of(FindingKind::FrontEndSilent));
        faults.chain(self.problems.iter().map(of(FindingKind::FrontEndProblem)))
    }
}

/// A run that ends early stops the front ends that have started for it.
impl Drop for FrontEnd {
    fn drop(&mut self) {
        self.stop();
    }
}
