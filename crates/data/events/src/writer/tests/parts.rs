//! Fragments that are copied and fragments that are not, on a disk that takes parts of parts and runs full anywhere.

use super::*;
use crate::{
    layout::{
        EventHeader, FileHeader, Footer, FragmentHeader, FragmentIdentity, Tag, encode_trailer, padded, seal_event_head,
    },
    waiting::{BUFFER_BYTES, SHARED_BYTES},
};
use proptest::prelude::*;

/// One step of a test.
#[derive(Clone, Debug)]
enum Step {
    /// Append an event with payloads of these lengths.
    Append(Vec<usize>),
    Flush,
    /// Remove this number of events.
    Back(usize),
}

/// The bytes of a file, made in one piece, and the offset at which each event ends.
struct Plain {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

fn payload(id: u64, source: usize, length: usize) -> Bytes {
    (0..length).map(|i| (id as usize * 31 + source * 7 + i + i / 251) as u8).collect()
}

fn event_payloads(id: u64, lengths: &[usize]) -> Vec<Bytes> {
    lengths.iter().enumerate().map(|(source, length)| payload(id, source, *length)).collect()
}

impl Plain {
    fn new(events: &[(u64, Vec<usize>)]) -> Self {
        let metadata = metadata(&options(u64::MAX), 0).unwrap();
        let header = FileHeader::encode(&metadata);
        let tag = FileHeader::decode(&header).unwrap().tag;
        let mut bytes = [&header[..], &metadata].concat();
        bytes.resize(padded(bytes.len() as u64) as usize, 0);
        let (mut index, mut ends) = (crate::index::Index::default(), Vec::new());
        for (id, lengths) in events {
            index.push(EventId(*id), bytes.len() as u64);
            put_event(&mut bytes, tag, *id, lengths);
            ends.push(bytes.len());
        }
        let index_offset = bytes.len() as u64;
        bytes.extend_from_slice(&index.header(tag).encode());
        bytes.extend_from_slice(index.bytes());
        bytes.extend_from_slice(&Footer { index_offset, tag }.encode());
        Self { bytes, ends }
    }

    /// Number of events that are whole in the first `length` bytes.
    fn whole_in(&self, length: usize) -> usize {
        self.ends.iter().filter(|end| **end <= length).count()
    }

    /// The bytes up to the end of these events.
    fn until(&self, events: usize) -> &[u8] {
        let start = crate::Reader::new(Cursor::new(&self.bytes), "memory").unwrap().events().next();
        let Some(Ok(Found::Event(first))) = start else { panic!("there is an event") };
        &self.bytes[..events.checked_sub(1).map_or(first.offset as usize, |last| self.ends[last])]
    }
}

fn put_event(bytes: &mut Vec<u8>, tag: Tag, id: u64, lengths: &[usize]) {
    let (payloads, at) = (event_payloads(id, lengths), bytes.len());
    let length = 56 + 32 * lengths.len() as u64 + lengths.iter().map(|l| padded(*l as u64)).sum::<u64>();
    EventHeader::encode(EventId(id), length, tag, lengths.len() as u16, true, bytes);
    for (source, bytes_of) in payloads.iter().enumerate() {
        let (source, checksum) = (SourceId(source as u16), checksum(bytes_of));
        let (length, stored_checksum) = (bytes_of.len() as u32, checksum);
        FragmentHeader { source, status: Status::Good, length, checksum, stored_checksum }.encode(bytes);
    }
    let head_checksum = seal_event_head(&mut bytes[at..]);
    for payload in &payloads {
        bytes.extend_from_slice(payload);
        bytes.resize(padded(bytes.len() as u64) as usize, 0);
    }
    let identities = lengths.iter().map(|_| FragmentIdentity::default());
    encode_trailer(EventId(id).into(), head_checksum, identities, bytes);
}

/// What is left of the events after all steps, with their numbers.
fn events_of(steps: &[Step]) -> Vec<(u64, Vec<usize>)> {
    let (mut events, mut id) = (Vec::new(), 0);
    for step in steps {
        match step {
            Step::Append(lengths) => {
                id += 1;
                events.push((id, lengths.clone()));
            }
            Step::Back(count) => events.truncate(events.len().saturating_sub(*count)),
            Step::Flush => {}
        }
    }
    events
}

/// Does all steps and closes the file. After an error: the error, the amount stored, and the number of earlier events.
fn write(disk: &SmallDisk, steps: &[Step]) -> Result<(), (WriteError, WriteSummary, u64)> {
    let none = |error| (error, WriteSummary::default(), 0);
    let mut writer = Writer::create_on(Box::new(disk.clone()), options(u64::MAX)).map_err(none)?;
    let (mut id, mut places) = (0, Vec::new());
    for step in steps {
        let place = writer.place();
        let done = match step {
            Step::Append(lengths) => {
                id += 1;
                append_bytes(&mut writer, id, &event_payloads(id, lengths)).map(|()| places.push(place))
            }
            Step::Flush => writer.flush(),
            Step::Back(count) => go_back(&mut writer, &mut places, *count),
        };
        done.map_err(|error| (error, writer.stored(), places.len() as u64))?;
    }
    writer.close().map_err(|error| (error, writer.stored(), places.len() as u64))
}

/// Removes the last `count` events, which begin at `places`.
fn go_back(writer: &mut Writer, places: &mut Vec<Place>, count: usize) -> Result<(), WriteError> {
    let removed = places.split_off(places.len().saturating_sub(count));
    removed.first().map_or(Ok(()), |place| writer.go_back(*place).map(|is_done| assert!(is_done)))
}

/// Writes on a disk of this size that cuts its first calls.
fn check_full_disk(steps: &[Step], plain: &Plain, capacity: usize, cuts: &[usize]) {
    let disk = SmallDisk::new(capacity);
    disk.0.lock().unwrap().cuts = cuts.to_vec();
    let Err((error, stored, earlier)) = write(&disk, steps) else { panic!("it does not fit into {capacity}") };
    let WriteError::Write { lost, needed, .. } = error else { panic!("{error}") };
    let whole = plain.whole_in(capacity);
    if capacity < plain.until(0).len() {
        return assert!(disk.files().is_empty(), "a file without its header is of no use");
    }
    let file = &disk.files()[0];
    assert!(*file == plain.until(whole), "capacity {capacity}: {} instead of {}", file.len(), plain.until(whole).len());
    assert_eq!((stored.events, stored.bytes), (whole as u64, file.len() as u64), "capacity {capacity}");
    assert!(file.len() as u64 + needed > capacity as u64, "{needed} bytes would have fitted at {capacity}");
    assert_eq!(stored.events + lost, earlier, "capacity {capacity}");
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => 0..40usize,
        6 => SHARED_BYTES - 9..SHARED_BYTES + 20,
        3 => SHARED_BYTES..9 * SHARED_BYTES,
        1 => BUFFER_BYTES - 100_000..BUFFER_BYTES + 100_000,
    ]
}

fn append_step() -> impl Strategy<Value = Step> {
    prop::collection::vec(length(), 0..5).prop_map(Step::Append)
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1..100usize, 1..3 * SHARED_BYTES], 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_has_the_same_bytes_whatever_is_copied_and_wherever_a_call_ends(
        first in append_step(),
        others in prop::collection::vec(
            prop_oneof![6 => append_step(), 1 => Just(Step::Flush), 1 => (0..4usize).prop_map(Step::Back)], 0..16),
        cuts in cuts(),
    ) {
        let steps = [vec![first], others].concat();
        let disk = SmallDisk::new(usize::MAX);
        disk.0.lock().unwrap().cuts = cuts;
        prop_assert!(write(&disk, &steps).is_ok());
        prop_assert!(disk.files()[0] == Plain::new(&events_of(&steps)).bytes);
    }

    #[test]
    fn a_full_disk_ends_with_the_last_whole_event_whatever_is_copied(
        first in append_step(),
        others in prop::collection::vec(prop_oneof![6 => append_step(), 1 => Just(Step::Flush)], 0..10),
        cuts in cuts(),
        part in 0.0..1.0f64,
    ) {
        let steps = [vec![first], others].concat();
        let plain = Plain::new(&events_of(&steps));
        check_full_disk(&steps, &plain, (plain.bytes.len() as f64 * part) as usize, &cuts);
    }
}

/// Mixed events that are handed over in two calls; the disk is full at each byte around the borders of parts and at some
/// in between.
#[test]
fn a_disk_that_runs_full_in_any_part_leaves_the_same_events() {
    let (large, odd) = (SHARED_BYTES, SHARED_BYTES + 3);
    let lengths = [vec![odd, large, 5], vec![], vec![1, 2], vec![large, large], vec![7, odd, 9], vec![odd]];
    let mut steps: Vec<_> = lengths.into_iter().map(Step::Append).collect();
    steps.insert(3, Step::Flush);
    let plain = Plain::new(&events_of(&steps));
    let near = |capacity: usize| plain.ends.iter().any(|end| (end.abs_diff(capacity) % SHARED_BYTES) < 120);
    for capacity in (0..plain.bytes.len()).filter(|capacity| near(*capacity) || capacity % 97 == 0) {
        check_full_disk(&steps, &plain, capacity, &[]);
    }
}

#[test]
fn large_fragments_are_held_until_the_kernel_has_them_and_small_ones_are_not() {
    let disk = SmallDisk::new(usize::MAX);
    let mut writer = Writer::create_on(Box::new(disk.clone()), options(u64::MAX)).unwrap();
    let payloads = event_payloads(1, &[SHARED_BYTES - 1, SHARED_BYTES]);
    append_bytes(&mut writer, 1, &payloads).unwrap();
    assert_eq!((payloads[0].is_unique(), payloads[1].is_unique()), (true, false));
    writer.flush().unwrap();
    assert!(payloads[1].is_unique(), "flushed");
    let place = writer.place();
    append_bytes(&mut writer, 2, &payloads).unwrap();
    writer.go_back(place).unwrap();
    assert!(payloads[1].is_unique(), "removed");
    disk.set_capacity(0);
    append_bytes(&mut writer, 2, &payloads).unwrap();
    writer.flush().unwrap_err();
    assert!(payloads[1].is_unique(), "lost");
}

/// As many large fragments as wait at most, each with padding, and small ones between them.
#[test]
fn whatever_waits_is_handed_over_by_one_call_and_bounded() {
    let disk = SmallDisk::new(usize::MAX);
    let mut writer = Writer::create_on(Box::new(disk.clone()), options(u64::MAX)).unwrap();
    let lengths = [SHARED_BYTES + 1, 3].repeat(BUFFER_BYTES / (SHARED_BYTES + 1 + 64));
    disk.0.lock().unwrap().calls.clear();
    append_bytes(&mut writer, 1, &event_payloads(1, &lengths)).unwrap();
    assert_eq!(writer.buffered(), 1);
    append_bytes(&mut writer, 2, &event_payloads(2, &lengths)).unwrap();
    let calls = disk.0.lock().unwrap().calls.clone();
    assert_eq!((calls.len(), writer.stored().events), (1, 1), "{calls:?}");
    assert!(calls[0] > lengths.len() && calls[0] <= 1024, "{calls:?}");
}
