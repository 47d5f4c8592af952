//! Runs in threads of this process.

use crate::{
    error::{failure, not_run, only_simulated},
    experiment::Experiment,
    report::json,
};
use evb::{Command, NodeId, Observer, Plan, Progress, Record, RunError, RunState, Sample, check_runnable};
use evb_record::Histogram;
use pyo3::prelude::*;
use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Samples that wait for a reader; the oldest ones make room.
const MOST_SAMPLES: usize = 1000;
/// Notes that wait for a reader.
const MOST_NOTES: usize = 1000;
/// Longest wait at once, so that Ctrl-C is noticed.
const TURN: Duration = Duration::from_millis(50);

/// What the run and its user tell each other.
#[derive(Default)]
struct Shared {
    progress: Progress,
    state: Option<RunState>,
    notes: VecDeque<String>,
    samples: VecDeque<Sample>,
    /// The latest histograms.
    histograms: Vec<Histogram>,
    commands: VecDeque<Command>,
    result: Option<Result<Record, RunError>>,
}

/// The shared state, and the notice that it changed.
#[derive(Default)]
struct Board {
    shared: Mutex<Shared>,
    changed: Condvar,
}

impl Board {
    /// Changes the state and tells those who wait. A thread that panicked has left the state whole: each change is one step.
    fn change(&self, change: impl FnOnce(&mut Shared)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The observer in the thread of the run.
struct Watcher<'a>(&'a Board);

impl Observer for Watcher<'_> {
    fn progress(&mut self, progress: &Progress) {
        self.0.change(|shared| shared.progress = *progress);
    }

    fn note(&mut self, text: &str) {
        self.0.change(|shared| push(&mut shared.notes, text.to_owned(), MOST_NOTES));
    }

    fn state(&mut self, state: RunState) {
        self.0.change(|shared| shared.state = Some(state));
    }

    fn sample(&mut self, _builder: NodeId, sample: &Sample) {
        self.0.change(|shared| push(&mut shared.samples, sample.clone(), MOST_SAMPLES));
    }

    fn histograms(&mut self, histograms: &[Histogram]) {
        self.0.change(|shared| shared.histograms = histograms.to_vec());
    }

    fn command(&mut self) -> Option<Command> {
        self.0.lock().commands.pop_front()
    }
}

fn push<T>(queue: &mut VecDeque<T>, item: T, most: usize) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(item);
}

/// A run in threads of this process.
#[pyclass(frozen, module = "evb._native")]
pub(crate) struct Run {
    board: Arc<Board>,
}

#[pymethods]
impl Run {
    /// Begins a run of a point of the sweep.
    #[new]
    #[pyo3(signature = (experiment, point=0))]
    fn new(experiment: &Bound<'_, Experiment>, point: usize) -> PyResult<Self> {
        let (plan, text) = (experiment.get().plan(point)?.clone(), experiment.get().text(point));
        check_runnable(std::slice::from_ref(&plan)).map_err(|error| only_simulated(&error))?;
        let board = Arc::new(Board::default());
        let of_thread = Arc::clone(&board);
        let thread = thread::Builder::new().name("evb run".into()).spawn(move || carry_out(&plan, &text, &of_thread));
        thread.map_err(|error| failure(format!("no thread for the run: {error}"), None::<&str>))?;
        Ok(Self { board })
    }

    /// Gives a command of run control: `pause`, `resume`, `stop` or `abort`.
    fn command(&self, command: &str) -> PyResult<()> {
        let command = match command {
            "pause" => Command::Pause,
            "resume" => Command::Resume,
            "stop" => Command::Stop,
            "abort" => Command::Abort,
            _ => return Err(failure(format!("no command {command}"), Some("one of: pause, resume, stop, abort"))),
        };
        self.board.change(|shared| push(&mut shared.commands, command, MOST_NOTES));
        Ok(())
    }

    /// State, seconds, events triggered, ended and incomplete, and payload bytes so far.
    fn progress(&self) -> (String, f64, u64, u64, u64, u64) {
        let shared = self.board.lock();
        let Progress { triggered, ended, incomplete, bytes, seconds, .. } = shared.progress;
        let state = match &shared.result {
            Some(_) => "ended".into(),
            None => shared.state.map_or_else(|| "starting".into(), |state| state.to_string()),
        };
        (state, seconds, triggered, ended, incomplete, bytes)
    }

    /// The texts for the user since the last call.
    fn notes(&self) -> Vec<String> {
        self.board.lock().notes.drain(..).collect()
    }

    /// The sampled events since the last call, as JSON.
    fn samples(&self) -> PyResult<Vec<String>> {
        let samples: Vec<_> = self.board.lock().samples.drain(..).collect();
        samples.iter().map(json).collect()
    }

    /// The histograms of the run so far, or of its record, as JSON.
    fn histograms(&self) -> PyResult<String> {
        let shared = self.board.lock();
        match &shared.result {
            Some(Ok(record)) => json(&record.histograms),
            _ => json(&shared.histograms),
        }
    }

    /// Waits until the run has ended, for at most this many seconds; returns false if it goes on.
    #[pyo3(signature = (seconds=None))]
    fn wait(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<bool> {
        let patience = seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
        let start = Instant::now();
        loop {
            let left = patience.map_or(TURN, |patience| patience.saturating_sub(start.elapsed()).min(TURN));
            if py.detach(|| self.has_ended_within(left)) {
                return Ok(true);
            }
            py.check_signals()?;
            if patience.is_some_and(|patience| start.elapsed() >= patience) {
                return Ok(false);
            }
        }
    }

    /// The record as JSON; none before the end of the run.
    fn record(&self) -> PyResult<Option<String>> {
        match &self.board.lock().result {
            None => Ok(None),
            Some(Ok(record)) => json(record).map(Some),
            Some(Err(RunError { error })) => Err(not_run(RunError { error: error.clone() })),
        }
    }
}

impl Run {
    fn has_ended_within(&self, time: Duration) -> bool {
        let shared = self.board.lock();
        let waited = self.board.changed.wait_timeout_while(shared, time, |shared| shared.result.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.result.is_some()
    }
}

/// A run whose user is gone ends.
impl Drop for Run {
    fn drop(&mut self) {
        self.board.change(|shared| shared.commands = [Command::Abort, Command::Abort].into());
    }
}

fn carry_out(plan: &Plan, text: &str, board: &Board) {
    let result = evb::run_in_threads(plan, text, &mut Watcher(board));
    board.change(|shared| shared.result = Some(result));
}
