//! A watch on the memory of simulations. A plan whose queues grow without end would take that of the whole machine, and
//! slow down or kill other programs before it fails itself.

use evb::{ByteCount, SimulationProgress};
use evb_os::usage;
use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

/// Time between two looks. A simulation takes less than 2 GB per second.
const INTERVAL: Duration = Duration::from_millis(20);
/// Part of the memory of the machine that simulations may take by default.
const DEFAULT_PART: u64 = 2;

/// The watch, until it is dropped.
pub(crate) struct MemoryWatch {
    most: Arc<Most>,
    _end: Sender<()>,
}

/// The most that simulations have had under way at a time.
#[derive(Default)]
pub(crate) struct Most {
    events: AtomicU64,
    packets: AtomicU64,
    messages: AtomicU64,
}

impl Most {
    pub(crate) fn note(&self, now: &SimulationProgress) {
        self.events.fetch_max(now.planned_events, Ordering::Relaxed);
        self.packets.fetch_max(now.packets, Ordering::Relaxed);
        self.messages.fetch_max(now.messages, Ordering::Relaxed);
    }
}

impl MemoryWatch {
    /// Ends this process with an error when it has more memory than `limit`, by default half of that of the machine.
    pub(crate) fn begin(limit: Option<ByteCount>) -> Self {
        let (end, ended) = channel();
        let most = Arc::<Most>::default();
        let limit = limit.map(|limit| limit.0).or_else(|| Some(usage::installed()? / DEFAULT_PART));
        if let Some(limit) = limit {
            let most = Arc::clone(&most);
            let watch = move || {
                while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    if let Some(resident) = usage::resident().filter(|resident| *resident > limit) {
                        give_up(resident, limit, &most);
                    }
                }
            };
            // Without a thread for it there is no watch.
            let _watched = thread::Builder::new().name("memory".into()).spawn(watch);
        }
        Self { most, _end: end }
    }

    pub(crate) fn most(&self) -> Arc<Most> {
        Arc::clone(&self.most)
    }
}

fn give_up(resident: u64, limit: u64, most: &Most) -> ! {
    let [events, packets, messages] =
        [&most.events, &most.packets, &most.messages].map(|count| count.load(Ordering::Relaxed));
    eprintln!(
        "error: the simulation has {} of memory, of at most {}: up to {events} planned events, {packets} packets and \
         {messages} messages were under way",
        ByteCount(resident),
        ByteCount(limit)
    );
    eprintln!(
        "hint: what is offered may be more than the network carries; simulate fewer nodes or fewer points at once \
         (`--threads 1`), or allow more with `--memory SIZE`"
    );
    process::exit(2);
}
