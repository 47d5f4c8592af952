//! The writer with a file that stops and breaks when a test wants it.

use super::*;
use evb_core::EventId;
use evb_protocol::{Fragment, Region};
use std::{
    io,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::Instant,
};

/// Longest wait of a test.
const PATIENCE: Duration = Duration::from_secs(30);

/// The control of a test over its file, and its view of the file.
struct Hand {
    /// Steps that each let one event be written; without a sender all events may be written.
    steps: Option<Sender<Step>>,
    /// Number of events whose writing has begun.
    begun: Arc<AtomicUsize>,
    written: Arc<Mutex<Vec<u64>>>,
    /// Number of events that are not flushed.
    unflushed: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
    wakes: Arc<AtomicUsize>,
}

enum Step {
    Go,
    Fail,
    Panic,
}

struct Fake {
    steps: Option<Receiver<Step>>,
    begun: Arc<AtomicUsize>,
    written: Arc<Mutex<Vec<u64>>>,
    unflushed: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
}

impl EventFile for Fake {
    type Place = usize;

    fn append(&mut self, _stream: StreamId, event: &Built<Bytes>) -> Result<(), WriteError> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        match self.steps.as_ref().map(|steps| steps.recv_timeout(PATIENCE).expect("the test takes the next step")) {
            Some(Step::Fail) => Err(WriteError::Write {
                path: Path::new("fake").into(),
                needed: 1,
                lost: 0,
                source: io::ErrorKind::StorageFull.into(),
            }),
            Some(Step::Panic) => panic!("on purpose"),
            Some(Step::Go) | None => {
                self.unflushed.fetch_add(1, Ordering::SeqCst);
                self.written.lock().unwrap().push(event.event.0);
                Ok(())
            }
        }
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.unflushed.store(0, Ordering::SeqCst);
        Ok(())
    }

    fn place(&self) -> usize {
        self.written.lock().unwrap().len()
    }

    fn go_back(&mut self, place: usize) -> Result<bool, WriteError> {
        self.written.lock().unwrap().truncate(place);
        Ok(true)
    }

    fn by_stream(&self) -> Vec<WriteSummary> {
        let events = self.place() as u64;
        vec![WriteSummary { files: 1, events, bytes: 1000 * events }]
    }

    fn finish(self) -> Result<Vec<WriteSummary>, WriteError> {
        self.closed.fetch_add(1, Ordering::SeqCst);
        Ok(self.by_stream())
    }
}

fn storage(stepwise: bool, rate: Option<Bandwidth>, lease: Option<Duration>) -> (Storage, Hand) {
    let (sender, receiver) = channel();
    let (begun, written, closed) = (Arc::default(), Arc::default(), Arc::default());
    let (wakes, unflushed) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let steps = stepwise.then_some(receiver);
    let fake = Fake {
        steps,
        begun: Arc::clone(&begun),
        written: Arc::clone(&written),
        unflushed: Arc::clone(&unflushed),
        closed: Arc::clone(&closed),
    };
    let bell = wakes.clone();
    let waker: Waker = Arc::new(move || _ = bell.fetch_add(1, Ordering::SeqCst));
    let writer = WriterHandle::start(0, fake, waker, rate.map(Pace::new), lease).unwrap();
    let (streams, file_name) = (vec!["physics".into()], "fake".into());
    let writer = Some(writer);
    let storage = Storage {
        keep: Keep::All,
        builder: 0,
        writer,
        sender: None,
        is_orphaned: false,
        file_name,
        streams,
        own_streams: 1,
        quarantine: None,
        filter: None,
    };
    (storage, Hand { steps: stepwise.then_some(sender), begun, written, unflushed, closed, wakes })
}

impl Hand {
    fn step(&self, step: Step) {
        self.steps.as_ref().unwrap().send(step).unwrap();
    }

    /// Waits until the writer is at the given event, counted from 1.
    fn begun(&self, event: usize) {
        wait_until("the event is being written", || self.begun.load(Ordering::SeqCst) == event);
    }

    fn written(&self) -> Vec<u64> {
        self.written.lock().unwrap().clone()
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "waited for: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn store(storage: &mut Storage, events: std::ops::RangeInclusive<u64>) {
    for event in events {
        let fragments = Vec::<Option<Fragment<Bytes>>>::new();
        let event = Built { event: EventId(event), opened: Time::ZERO, complete: true, asked: Region::ALL, fragments };
        assert_eq!(storage.store(Time::ZERO, Route::default(), event), None);
    }
    storage.hand_over();
}

/// The events stored since the last call.
fn taken(storage: &mut Storage) -> Vec<u64> {
    let mut sink = Vec::new();
    storage.take_stored(&mut sink).unwrap();
    sink.into_iter().map(|built| built.event.0).collect()
}

fn take(storage: &mut Storage, count: usize) -> Vec<u64> {
    let mut all = Vec::new();
    wait_until("events are stored", || {
        all.extend(taken(storage));
        all.len() >= count
    });
    all
}

fn finish(storage: &mut Storage) -> Result<(), NodeError> {
    let mut result = Ok(false);
    wait_until("the writer ends", || {
        result = storage.finish();
        result != Ok(false)
    });
    result.map(drop)
}

/// Waits for longer than a free writer needs to begin.
fn a_while() {
    std::thread::sleep(Duration::from_millis(30));
}

#[test]
fn events_are_written_in_order_and_come_back_and_the_node_is_woken() {
    let (mut storage, hand) = storage(false, None, None);
    store(&mut storage, 1..=3);
    store(&mut storage, 4..=9);
    assert_eq!(take(&mut storage, 9), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(hand.written(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    wait_until("the node is woken", || hand.wakes.load(Ordering::SeqCst) > 0);
    finish(&mut storage).unwrap();
    assert_eq!((hand.closed.load(Ordering::SeqCst), storage.stored().events), (1, 9));
}

/// Checks that no call of the node waits for the disk: all of them return while nothing can be written.
#[test]
fn a_stalled_disk_delays_no_node_and_finishing_waits_for_all() {
    let (mut storage, hand) = storage(true, None, None);
    store(&mut storage, 1..=2);
    a_while();
    assert!(taken(&mut storage).is_empty() && hand.written().is_empty());
    assert_eq!(storage.finish(), Ok(false));
    store(&mut storage, 3..=3);
    hand.step(Step::Go);
    a_while();
    assert_eq!(storage.finish(), Ok(false), "one event is still to be written");
    hand.step(Step::Go);
    finish(&mut storage).unwrap();
    assert_eq!(taken(&mut storage), [1, 2], "what came after the end is not stored");
    assert_eq!((hand.written(), hand.closed.load(Ordering::SeqCst)), (vec![1, 2], 1));
}

#[test]
fn an_error_of_the_writer_is_reported_once_by_the_node() {
    let (mut storage, hand) = storage(true, None, None);
    store(&mut storage, 1..=2);
    hand.step(Step::Go);
    hand.step(Step::Fail);
    let mut sink = Vec::new();
    let mut outcome = Ok(());
    wait_until("the error is outcome", || {
        outcome = storage.take_stored(&mut sink);
        outcome.is_err()
    });
    let error = outcome.unwrap_err();
    assert!(error.message.starts_with("builder unit 0: cannot store 1 bytes in fake"), "{error}");
    assert!(error.hint.unwrap().starts_with("free some space"));
    assert!(sink.is_empty(), "whether the first has reached the kernel is unknown");
    assert!(hand.written().is_empty(), "no event is in the file that is not reported");
    store(&mut storage, 3..=3);
    finish(&mut storage).unwrap();
    assert_eq!(hand.closed.load(Ordering::SeqCst), 1, "what was stored before is closed");
}

/// The node can report as stored what is in the file, before it fails.
#[test]
fn events_that_were_stored_before_an_error_are_returned_before_it() {
    let (mut storage, hand) = storage(true, None, None);
    store(&mut storage, 1..=1);
    hand.step(Step::Go);
    wait_until("the event is stored", || hand.wakes.load(Ordering::SeqCst) > 0);
    store(&mut storage, 2..=2);
    hand.step(Step::Fail);
    wait_until("the writer has ended", || hand.closed.load(Ordering::SeqCst) > 0);
    wait_until("the node is woken", || hand.wakes.load(Ordering::SeqCst) > 1);
    assert_eq!((taken(&mut storage), hand.written()), (vec![1], vec![1]));
    assert!(storage.take_stored(&mut Vec::new()).is_err());
}

#[test]
fn a_panic_of_the_writer_is_an_error_and_no_hang() {
    let (mut storage, hand) = storage(true, None, None);
    store(&mut storage, 1..=1);
    hand.step(Step::Panic);
    let error = finish(&mut storage).unwrap_err();
    assert!(error.message.contains("panicked"), "{error}");
}

#[test]
fn a_crash_closes_nothing_and_ends_the_writer() {
    let (mut storage, hand) = storage(true, None, None);
    store(&mut storage, 1..=2);
    let exchange = Arc::downgrade(&storage.writer.as_ref().unwrap().exchange);
    hand.begun(1);
    drop(storage);
    hand.step(Step::Go);
    hand.step(Step::Go);
    wait_until("the thread ends", || exchange.strong_count() == 0);
    assert_eq!(hand.closed.load(Ordering::SeqCst), 0);
}

#[test]
fn while_held_nothing_is_begun_and_nothing_is_called_stored() {
    let (mut storage, hand) = storage(true, None, None);
    store(&mut storage, 1..=1);
    storage.hold();
    hand.step(Step::Go);
    store(&mut storage, 2..=2);
    a_while();
    assert!(taken(&mut storage).is_empty() && storage.is_held());
    assert!(hand.written().len() <= 1, "the second is not begun");
    storage.release();
    hand.step(Step::Go);
    assert_eq!(take(&mut storage, 2), [1, 2]);
}

/// Events that are not flushed hold the memory of readout units.
#[test]
fn a_writer_that_waits_for_its_lease_has_flushed_its_events() {
    let (mut storage, hand) = storage(true, None, None);
    store(&mut storage, 1..=1);
    hand.begun(1);
    storage.hold();
    hand.step(Step::Go);
    wait_until("it is written", || hand.written() == [1]);
    wait_until("it is flushed", || hand.unflushed.load(Ordering::SeqCst) == 0);
    assert!(taken(&mut storage).is_empty(), "the lease is held");
}

/// Each event has 1000 bytes, and the disk does one in 1000 s.
#[test]
fn a_writer_that_waits_for_its_pace_has_flushed_its_events() {
    let (mut storage, hand) = storage(false, Some(Bandwidth(8)), None);
    store(&mut storage, 1..=1);
    wait_until("it is written", || hand.written() == [1]);
    wait_until("it is flushed", || hand.unflushed.load(Ordering::SeqCst) == 0);
    assert!(taken(&mut storage).is_empty(), "the disk is not ready");
}

#[test]
fn the_fence_removes_unconfirmed_events() {
    // The first is confirmed; the second is written and not taken back; the third is being written; the fourth is queued.
    let (mut storage, hand) = storage(true, None, None);
    store(&mut storage, 1..=1);
    hand.step(Step::Go);
    assert_eq!(take(&mut storage, 1), [1]);
    store(&mut storage, 2..=2);
    hand.step(Step::Go);
    wait_until("the second is stored", || storage.stored().events == 2);
    store(&mut storage, 3..=3);
    hand.begun(3);
    store(&mut storage, 4..=4);
    storage.fence();
    hand.step(Step::Go);
    store(&mut storage, 5..=5);
    finish(&mut storage).unwrap();
    assert_eq!((hand.written(), hand.closed.load(Ordering::SeqCst)), (vec![1], 1));
    assert!(taken(&mut storage).is_empty());
    assert_eq!(storage.stored().events, 1);
}

#[test]
fn the_fence_keeps_confirmed_events() {
    let (mut storage, hand) = storage(true, None, None);
    store(&mut storage, 1..=2);
    hand.step(Step::Go);
    hand.step(Step::Go);
    assert_eq!(take(&mut storage, 2), [1, 2]);
    store(&mut storage, 3..=3);
    hand.begun(3);
    storage.fence();
    hand.step(Step::Go);
    finish(&mut storage).unwrap();
    assert_eq!(hand.written(), [1, 2]);
}

/// The node stalls while its writer continues.
#[test]
fn a_node_that_is_away_has_nothing_stored_until_it_is_released() {
    let lease = Duration::from_millis(100);
    let (mut storage, hand) = storage(true, None, Some(lease));
    assert!(taken(&mut storage).is_empty());
    store(&mut storage, 1..=2);
    std::thread::sleep(2 * lease);
    hand.step(Step::Go);
    hand.step(Step::Go);
    wait_until("the writer finds its node away", || storage.is_held());
    a_while();
    assert!(taken(&mut storage).is_empty(), "it was away, and does not know for how long");
    let mut all = Vec::new();
    wait_until("events are stored", || {
        // On a busy machine this thread may be away again.
        storage.release();
        all.extend(taken(&mut storage));
        all.len() == 2
    });
    assert_eq!(all, [1, 2]);
}

#[test]
fn a_node_that_is_away_and_fenced_leaves_nothing_in_the_file() {
    let lease = Duration::from_millis(100);
    let (mut storage, hand) = storage(true, None, Some(lease));
    assert!(taken(&mut storage).is_empty());
    store(&mut storage, 1..=2);
    std::thread::sleep(2 * lease);
    hand.step(Step::Go);
    hand.step(Step::Go);
    wait_until("the writer finds its node away", || storage.is_held());
    assert!(taken(&mut storage).is_empty());
    storage.fence();
    finish(&mut storage).unwrap();
    assert!(hand.written().is_empty());
}

/// A lease that is held at the end stays held: nothing is left to release it.
#[test]
fn what_is_held_at_the_end_is_not_stored() {
    let (mut storage, hand) = storage(false, None, None);
    storage.hold();
    store(&mut storage, 1..=2);
    finish(&mut storage).unwrap();
    assert!(hand.written().is_empty() && taken(&mut storage).is_empty());
    assert_eq!(hand.closed.load(Ordering::SeqCst), 1);
}

/// Each event has 1000 bytes, and the disk does one in 5 ms.
#[test]
fn a_slow_disk_takes_its_time_and_can_be_left() {
    let (mut storage, hand) = storage(false, Some(Bandwidth(1_600_000)), None);
    let began = Instant::now();
    store(&mut storage, 1..=20);
    assert_eq!(take(&mut storage, 20).len(), 20);
    assert!(began.elapsed() >= Duration::from_millis(100), "{:?}", began.elapsed());
    let exchange = Arc::downgrade(&storage.writer.as_ref().unwrap().exchange);
    store(&mut storage, 21..=100_000);
    wait_until("it writes", || hand.written().len() > 20);
    drop(storage);
    wait_until("the thread ends", || exchange.strong_count() == 0);
}
