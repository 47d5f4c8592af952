//! The writer on a disk that runs full at every byte.

use super::*;
use crate::{Found, Reader, Status, checksum, sink::Sink};
use bytes::Bytes;
use evb_core::{EventId, SourceId};
use std::{
    collections::BTreeMap,
    io::{self, Cursor, IoSlice},
    path::Path,
    sync::{Arc, Mutex},
};

/// A disk with room for `capacity` bytes.
#[derive(Clone, Default)]
struct SmallDisk(Arc<Mutex<Files>>);

#[derive(Default)]
struct Files {
    capacity: usize,
    files: BTreeMap<PathBuf, Vec<u8>>,
    truncate_fails: bool,
    /// Most bytes that the next calls take, from the last one on; later ones take all.
    cuts: Vec<usize>,
    /// Number of parts of each call.
    calls: Vec<usize>,
}

impl SmallDisk {
    fn new(capacity: usize) -> Self {
        Self(Arc::new(Mutex::new(Files { capacity, ..Files::default() })))
    }

    fn files(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap().files.values().cloned().collect()
    }

    fn set_capacity(&self, capacity: usize) {
        self.0.lock().unwrap().capacity = capacity;
    }
}

impl Storage for SmallDisk {
    fn create(&mut self, path: &Path) -> io::Result<Box<dyn Sink>> {
        let mut files = self.0.lock().unwrap();
        if files.files.insert(path.to_path_buf(), Vec::new()).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(Box::new(SmallFile(self.clone(), path.to_path_buf())))
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.0.lock().unwrap().files.remove(path).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

struct SmallFile(SmallDisk, PathBuf);

impl Sink for SmallFile {
    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let files = &mut *self.0.0.lock().unwrap();
        let used: usize = files.files.values().map(Vec::len).sum();
        let most = files.capacity.saturating_sub(used).min(files.cuts.pop().unwrap_or(usize::MAX));
        let (file, mut taken) = (files.files.get_mut(&self.1).unwrap(), 0);
        for part in parts {
            let part = &part[..part.len().min(most - taken)];
            file.extend_from_slice(part);
            taken += part.len();
        }
        files.calls.push(parts.len());
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let files = &mut *self.0.0.lock().unwrap();
        if files.truncate_fails {
            return Err(io::Error::other("the disk is gone"));
        }
        files.files.get_mut(&self.1).unwrap().truncate(length as usize);
        Ok(())
    }
}

mod parts;

fn options(max_file_bytes: u64) -> WriterOptions {
    let (directory, name) = (PathBuf::from("runs"), "run-7".into());
    WriterOptions { directory, name, builder: 1, max_file_bytes, compresses: false, metadata: Metadata::default() }
}

/// The payloads of event `id`: two, of different and partly odd lengths.
fn payloads(id: u64) -> [Vec<u8>; 2] {
    [vec![id as u8; 5 + id as usize % 9], (0..3 * id as u8).collect()]
}

fn append(writer: &mut Writer, id: u64) -> Result<(), WriteError> {
    append_payloads(writer, id, &payloads(id))
}

fn append_payloads(writer: &mut Writer, id: u64, payloads: &[Vec<u8>]) -> Result<(), WriteError> {
    append_bytes(writer, id, &payloads.iter().cloned().map(Bytes::from).collect::<Vec<_>>())
}

fn append_bytes(writer: &mut Writer, id: u64, payloads: &[Bytes]) -> Result<(), WriteError> {
    let fragments: Vec<_> = payloads.iter().enumerate().map(good).collect();
    writer.append(EventId(id), &fragments)
}

fn good((source, bytes): (usize, &Bytes)) -> FragmentRef<'_> {
    FragmentRef::new(SourceId(source as u16), Status::Good, checksum(bytes), bytes)
}

/// The ids of the events of a file, every one of which must be whole, and whether the file was closed.
fn whole_events(bytes: &[u8]) -> (Vec<u64>, bool) {
    let mut reader = Reader::new(Cursor::new(bytes), "memory").unwrap();
    let closed = reader.closed_cleanly();
    let ids = reader.events().map(|found| match found.unwrap() {
        Found::Event(event) => {
            let bytes: Vec<_> = event.fragments.iter().map(|fragment| fragment.bytes.to_vec()).collect();
            assert!(bytes == payloads(event.id.0) || bytes[0].len() > 1000, "event {} is another", event.id);
            event.id.0
        }
        other => panic!("not a whole event: {other:?}"),
    });
    (ids.collect(), closed)
}

/// Writes events 1 to 12 with a flush after every fourth, and returns the result of each step.
fn write_until_full(
    disk: &SmallDisk,
    max_file_bytes: u64,
) -> Result<(WriteSummary, u64), (WriteSummary, WriteError, u64)> {
    let mut writer = match Writer::create_on(Box::new(disk.clone()), options(max_file_bytes)) {
        Ok(writer) => writer,
        Err(error) => return Err((WriteSummary::default(), error, 0)),
    };
    for id in 1..=12 {
        let appended = append(&mut writer, id);
        let step = if appended.is_ok() && id % 4 == 0 { writer.flush() } else { appended };
        if let Err(error) = step {
            return Err((writer.stored(), error, id));
        }
    }
    let stored = writer.stored();
    writer.finish().map(|summary| (summary, 12)).map_err(|error| (stored, error, 12))
}

fn whole_size(max_file_bytes: u64) -> usize {
    let disk = SmallDisk::new(usize::MAX);
    let (summary, _) = write_until_full(&disk, max_file_bytes).expect("there is room for everything");
    let files = disk.files();
    assert_eq!(summary.bytes as usize, files.iter().map(Vec::len).sum::<usize>());
    assert_eq!((summary.files as usize, summary.events), (files.len(), 12));
    summary.bytes as usize
}

#[test]
fn a_disk_that_runs_full_at_any_byte_leaves_whole_events_only() {
    for max_file_bytes in [u64::MAX, 700] {
        let size = whole_size(max_file_bytes);
        for capacity in 0..size {
            let disk = SmallDisk::new(capacity);
            let Err((stored, error, last)) = write_until_full(&disk, max_file_bytes) else {
                panic!("{size} bytes do not fit into {capacity}")
            };
            let WriteError::Write { path, needed, lost, source } = error else { panic!("{error}") };
            assert_eq!(source.kind(), io::ErrorKind::StorageFull);
            assert!(path.to_str().unwrap().contains("run-7-b1-000"), "{path:?}");
            let files = disk.files();
            let used: usize = files.iter().map(Vec::len).sum();
            assert!(used as u64 + needed > capacity as u64, "{needed} bytes would have fitted at {capacity}");
            let ids: Vec<_> = files.iter().flat_map(|file| whole_events(file).0).collect();
            assert_eq!(ids, (1..=stored.events).collect::<Vec<_>>(), "capacity {capacity}");
            assert_eq!(stored.bytes as usize, used, "capacity {capacity}");
            // What was appended is stored, lost, or the event that failed.
            assert!([last, last.saturating_sub(1)].contains(&(stored.events + lost)), "capacity {capacity}");
        }
        assert!(write_until_full(&SmallDisk::new(size), max_file_bytes).is_ok());
    }
}

#[test]
fn without_room_for_the_index_the_file_is_valid_and_can_be_closed_later() {
    let size = whole_size(u64::MAX);
    let disk = SmallDisk::new(size - 1);
    let mut writer = Writer::create_on(Box::new(disk.clone()), options(u64::MAX)).unwrap();
    (1..=12).for_each(|id| append(&mut writer, id).unwrap());
    let Err(WriteError::Write { lost: 0, needed: 240, .. }) = writer.close() else { panic!("it does not fit") };
    let (ids, closed) = whole_events(&disk.files()[0]);
    assert_eq!((ids.len(), closed), (12, false));
    disk.set_capacity(size);
    assert_eq!(writer.finish().unwrap().events, 12);
    assert!(whole_events(&disk.files()[0]).1);
}

#[test]
fn an_event_larger_than_the_buffer_is_written_through_and_cut_off_when_it_does_not_fit() {
    let large = [vec![3; 3 << 20], vec![4; 10], vec![5; 100 << 10], vec![6; 2 << 20]];
    let disk = SmallDisk::new(4 << 20);
    let mut writer = Writer::create_on(Box::new(disk.clone()), options(u64::MAX)).unwrap();
    append(&mut writer, 1).unwrap();
    let Err(WriteError::Write { lost: 0, needed, .. }) = append_payloads(&mut writer, 2, &large) else {
        panic!("it does not fit")
    };
    assert!(needed > 5 << 20);
    assert_eq!((writer.stored().events, writer.buffered()), (1, 0));
    disk.set_capacity(10 << 20);
    append_payloads(&mut writer, 2, &large).unwrap();
    append(&mut writer, 3).unwrap();
    assert_eq!(writer.finish().unwrap().events, 3);
    assert_eq!(whole_events(&disk.files()[0]), (vec![1, 2, 3], true));
}

#[test]
fn what_cannot_be_cut_off_is_not_written_after() {
    let disk = SmallDisk::new(400);
    disk.0.lock().unwrap().truncate_fails = true;
    let mut writer = Writer::create_on(Box::new(disk.clone()), options(u64::MAX)).unwrap();
    (1..=12).for_each(|id| append(&mut writer, id).unwrap());
    let Err(WriteError::Write { lost, .. }) = writer.flush() else { panic!("it does not fit") };
    assert!(matches!(append(&mut writer, 13), Err(WriteError::Torn { .. })));
    assert_eq!(writer.stored().events + lost, 12);
    let bytes = disk.files().remove(0);
    let mut reader = Reader::new(Cursor::new(bytes), "memory").unwrap();
    let whole = reader.events().filter(|found| matches!(found, Ok(Found::Event(_)))).count() as u64;
    assert_eq!(whole, writer.stored().events);
}

#[test]
fn events_are_buffered_until_they_are_flushed() {
    let disk = SmallDisk::new(usize::MAX);
    let mut writer = Writer::create_on(Box::new(disk.clone()), options(u64::MAX)).unwrap();
    append(&mut writer, 1).unwrap();
    append(&mut writer, 2).unwrap();
    assert_eq!((writer.buffered(), writer.stored().events), (2, 0));
    writer.flush().unwrap();
    assert_eq!((writer.buffered(), writer.stored().events), (0, 2));
    assert_eq!(whole_events(&disk.files()[0]).0, [1, 2]);
    let huge = vec![Vec::new(); crate::MAX_FRAGMENTS + 1];
    assert!(matches!(append_payloads(&mut writer, 3, &huge), Err(WriteError::TooLarge { .. })));
    append_payloads(&mut writer, 4, &huge[1..]).unwrap();
    assert_eq!(writer.stored().events + writer.buffered() as u64, 3);
}

/// Events before the place are flushed or not, and so are those after it.
#[test]
fn a_writer_goes_back_to_any_place_of_its_file() {
    for (flush_before, flush_after) in [(false, false), (false, true), (true, false), (true, true)] {
        let disk = SmallDisk::new(usize::MAX);
        let mut writer = Writer::create_on(Box::new(disk.clone()), options(u64::MAX)).unwrap();
        let append_some = |writer: &mut Writer, ids: std::ops::RangeInclusive<u64>, flush: bool| {
            ids.for_each(|id| append(writer, id).unwrap());
            flush.then(|| writer.flush().unwrap());
        };
        append_some(&mut writer, 1..=3, flush_before);
        let place = writer.place();
        append_some(&mut writer, 4..=8, flush_after);
        assert!(writer.go_back(place).unwrap());
        assert_eq!(writer.stored().events + writer.buffered() as u64, 3, "{flush_before} {flush_after}");
        append_some(&mut writer, 9..=9, false);
        let summary = writer.finish().unwrap();
        let file = disk.files().remove(0);
        assert_eq!((summary.events, summary.bytes), (4, file.len() as u64));
        assert_eq!(whole_events(&file), (vec![1, 2, 3, 9], true));
    }
}

#[test]
fn a_writer_does_not_go_back_beyond_its_file() {
    let disk = SmallDisk::new(usize::MAX);
    let mut writer = Writer::create_on(Box::new(disk.clone()), options(700)).unwrap();
    let place = writer.place();
    (1..=12).for_each(|id| append(&mut writer, id).unwrap());
    assert!(!writer.go_back(place).unwrap());
    assert_eq!(writer.finish().unwrap().events, 12);
}

#[test]
fn what_cannot_be_cut_off_on_the_way_back_is_not_written_after() {
    let disk = SmallDisk::new(usize::MAX);
    let mut writer = Writer::create_on(Box::new(disk.clone()), options(u64::MAX)).unwrap();
    let place = writer.place();
    append(&mut writer, 1).unwrap();
    writer.flush().unwrap();
    disk.0.lock().unwrap().truncate_fails = true;
    assert!(matches!(writer.go_back(place), Err(WriteError::Write { .. })));
    assert!(matches!(append(&mut writer, 2), Err(WriteError::Torn { .. })));
}

#[test]
fn a_file_never_holds_more_events_than_can_be_indexed() {
    let disk = SmallDisk::new(usize::MAX);
    let mut writer = Writer::create_on(Box::new(disk.clone()), options(u64::MAX)).unwrap();
    let limit = crate::MAX_EVENTS_PER_FILE as u64;
    (1..=limit + 1).for_each(|id| writer.append(EventId(id), &[]).unwrap());
    assert_eq!(writer.finish().unwrap().files, 2);
    for (file, events) in disk.files().iter().zip([limit, 1]) {
        let reader = Reader::new(Cursor::new(file), "memory").unwrap();
        assert_eq!(reader.index.map(|index| index.len() as u64), Some(events));
    }
}
