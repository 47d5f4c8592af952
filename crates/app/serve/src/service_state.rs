//! The state that run control and the web side of a service share.

use crate::{
    history::History,
    journal::{Entry, Journal, Level},
    registry::{Registry, RunRow},
    samples::SampleFile,
    status::{Problem, Status},
};
use evb::{Live, RunState, Sample};
use serde::Serialize;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::sync::{broadcast, oneshot, watch};

/// Most messages that a slow reader may fall behind before it misses some.
const BACKLOG: usize = 256;

/// Time in seconds since 1970.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Something that an operator wants.
#[derive(Debug)]
pub(crate) enum OperatorRequest {
    /// A command to run control. Type and comment are for a start, the comment also for a stop.
    Command { command: evb::Command, run_type: String, comment: String },
    /// Another experiment, from this text.
    Load { text: String },
    /// The end of the service, after its run.
    Quit,
}

/// The reason why a request is rejected.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It means nothing in this state.
    Now(Problem),
    /// The experiment is wrong.
    Experiment(Problem),
}

/// The answer to a request.
pub(crate) type Answer = Result<RunState, Refusal>;

/// A request of an operator, and the channel of its answer.
pub(crate) struct Request {
    pub(crate) action: OperatorRequest,
    /// The name of the operator, for the log.
    pub(crate) by: String,
    pub(crate) reply: oneshot::Sender<Answer>,
}

/// News for all pages.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// An entry of the log.
    Log(Entry),
    /// A run has begun or ended.
    Run(Box<RunRow>),
}

/// An event of a run, for those who monitor it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sampled {
    pub(crate) run: u64,
    pub(crate) size: u64,
    #[serde(flatten)]
    pub(crate) sample: Sample,
}

/// Most samples that a slow reader may fall behind before it misses some.
const MOST_SAMPLES: usize = 16;

/// What all parts of the service share.
pub(crate) struct ServiceState {
    status: watch::Sender<Arc<Status>>,
    news: broadcast::Sender<News>,
    requests: mpsc::SyncSender<Request>,
    journal: Mutex<Journal>,
    history: Mutex<History>,
    live: Mutex<Option<Arc<Live>>>,
    registry: Mutex<Registry>,
    samples: broadcast::Sender<Arc<Sampled>>,
    sample: Mutex<Option<Arc<Sampled>>>,
    /// The samples in shared memory, if they are wanted there.
    shared: Mutex<Option<SampleFile>>,
    experiment: Mutex<(String, String)>,
}

/// Most requests of operators that may wait.
const MOST_REQUESTS: usize = 16;

impl ServiceState {
    /// The state, and the queue of requests of operators.
    pub(crate) fn new(registry: Registry, shared: Option<SampleFile>) -> (Self, mpsc::Receiver<Request>) {
        let (requests, taken) = mpsc::sync_channel(MOST_REQUESTS);
        let state = Self {
            status: watch::Sender::default(),
            news: broadcast::Sender::new(BACKLOG),
            requests,
            journal: Mutex::default(),
            history: Mutex::default(),
            live: Mutex::default(),
            registry: Mutex::new(registry),
            samples: broadcast::Sender::new(MOST_SAMPLES),
            sample: Mutex::default(),
            shared: Mutex::new(shared),
            experiment: Mutex::default(),
        };
        (state, taken)
    }

    // ---- for the service

    /// Shows another status.
    pub(crate) fn show(&self, status: Status, live: Option<Arc<Live>>) {
        if let Some(rates) = &status.now_rates {
            lock(&self.history).note(status.now, rates);
        }
        if live.is_some() {
            *lock(&self.live) = live;
        }
        self.status.send_replace(Arc::new(status));
    }

    /// Writes to the log: that of the page, and that of the process.
    pub(crate) fn log(&self, level: Level, run: Option<u64>, node: Option<String>, text: impl Into<String>) {
        let text = text.into();
        match level {
            Level::Info => tracing::info!(run, node, "{text}"),
            Level::Warning => tracing::warn!(run, node, "{text}"),
            Level::Error => tracing::error!(run, node, "{text}"),
        }
        let entry = Entry { seq: 0, time: now(), level, node, run, text };
        let entry = lock(&self.journal).write(entry);
        let _without_readers = self.news.send(News::Log(entry));
    }

    /// Tells that a run has begun or ended.
    pub(crate) fn tell_run(&self, run: RunRow) {
        let _without_readers = self.news.send(News::Run(Box::new(run)));
    }

    /// Shows a sample to those who are there to see it.
    pub(crate) fn show_sample(&self, run: u64, sample: &Sample) {
        let size = sample.fragments.iter().map(|fragment| u64::from(fragment.size)).sum();
        let sampled = Arc::new(Sampled { run, size, sample: sample.clone() });
        self.share(run, &sampled);
        *lock(&self.sample) = Some(sampled.clone());
        let _without_readers = self.samples.send(sampled);
    }

    /// Writes a sample to shared memory. When that fails, for example because its file system is full, no more follow.
    fn share(&self, run: u64, sampled: &Sampled) {
        let mut shared = lock(&self.shared);
        let Some(file) = shared.as_mut() else { return };
        let line = serde_json::to_vec(sampled).unwrap_or_default();
        if let Err(error) = file.write(&line) {
            *shared = None;
            drop(shared);
            self.log(Level::Warning, Some(run), None, format!("no more samples in shared memory: {error}"));
        }
    }

    /// Notes the name and the text of the experiment.
    pub(crate) fn note_experiment(&self, name: &str, text: &str) {
        *lock(&self.experiment) = (name.to_owned(), text.to_owned());
    }

    // ---- for the pages

    /// The status.
    pub(crate) fn status(&self) -> Arc<Status> {
        self.status.borrow().clone()
    }

    /// Tells each change of the status.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Status>> {
        self.status.subscribe()
    }

    /// Subscribes to the news from now on.
    pub(crate) fn news(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }

    /// The latest sample.
    pub(crate) fn sample(&self) -> Option<Arc<Sampled>> {
        lock(&self.sample).clone()
    }

    /// Tells samples from now on.
    pub(crate) fn samples(&self) -> broadcast::Receiver<Arc<Sampled>> {
        self.samples.subscribe()
    }

    /// Hands a request to run control and waits for its answer.
    pub(crate) async fn request(&self, action: OperatorRequest, by: &str) -> Answer {
        let (reply, answer) = oneshot::channel();
        let busy = || Problem::new("run control is busy with other requests", "try again in a moment");
        let request = Request { action, by: by.to_owned(), reply };
        self.requests.try_send(request).map_err(|_| Refusal::Now(busy()))?;
        answer.await.unwrap_or_else(|_| Err(Refusal::Now(Problem::new("the service ends", "start it again"))))
    }

    /// Does something with the registry of runs.
    pub(crate) fn with_registry<T>(&self, work: impl FnOnce(&mut Registry) -> T) -> T {
        work(&mut lock(&self.registry))
    }

    /// Does something with the log.
    pub(crate) fn entries(&self, after: u64, level: Level) -> Vec<Entry> {
        lock(&self.journal).after(after, level)
    }

    /// The history as JSON.
    pub(crate) fn history(&self) -> History {
        lock(&self.history).clone()
    }

    /// The latest look at the run that goes on, or at the last one.
    pub(crate) fn live(&self) -> Option<Arc<Live>> {
        lock(&self.live).clone()
    }

    /// Name and text of the experiment.
    pub(crate) fn experiment(&self) -> (String, String) {
        lock(&self.experiment).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
