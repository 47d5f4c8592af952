//! Recorded FED fragments: the format, the walk, and what damage does to it.

use crate::support::{Random, fed_file, header};
use evb_sources::{
    FedEntry, FedError, FedFault, FedFile, FedFileError, FedHeader, FilePadding, SourceError, check_fragment, walk,
    write_fragment,
};
use proptest::prelude::*;
use std::io::Cursor;

fn walked(bytes: &[u8]) -> Vec<FedEntry> {
    let entries = walk(Cursor::new(bytes)).expect("the file can be used");
    let mut at = 0;
    for entry in &entries {
        assert_eq!(entry.offset, at);
        at += u64::from(entry.length);
    }
    assert_eq!(at, bytes.len() as u64, "all fragments together are the file");
    entries
}

/// Flips a bit of the byte at `at`: exactly the fragment around it is bad, all others are as before.
pub(crate) fn assert_one_bad(file: &mut [u8], before: &[FedEntry], at: usize, flip: u8) {
    file[at] ^= flip;
    let after = walked(file);
    file[at] ^= flip;
    assert_eq!(after.len(), before.len(), "byte {at} ^ {flip:#x}");
    for (old, new) in before.iter().zip(&after) {
        let hit = (old.offset..old.offset + u64::from(old.length)).contains(&(at as u64));
        assert_eq!(new.fault.is_some(), hit, "byte {at} ^ {flip:#x}: {new:?}");
        assert_eq!((new.event, new.offset, new.length), (old.event, old.offset, old.length), "byte {at}");
        assert!(hit || new == old, "byte {at}");
    }
}

#[test]
fn a_written_fragment_is_good_and_reads_back() {
    let mut bytes = Vec::new();
    write_fragment(&mut bytes, header(0xab_cdef), b"123456789");
    assert_eq!(bytes.len(), 32);
    assert_eq!(check_fragment(&bytes), Ok(header(0xab_cdef)));
    assert_eq!(&bytes[8..24], b"123456789\0\0\0\0\0\0\0");
}

#[test]
fn the_crc_is_the_catalogues_crc_16_cms_over_words_from_the_top() {
    let reference = crc::Crc::<u16>::new(&crc::CRC_16_CMS);
    for size in [0, 8, 1016, 1024, 5000] {
        let mut bytes = Vec::new();
        write_fragment(&mut bytes, header(9), &vec![0x5a; size]);
        let said = u16::from_le_bytes([bytes[bytes.len() - 6], bytes[bytes.len() - 5]]);
        let trailer = bytes.len() - 8;
        bytes[trailer + 2..trailer + 4].fill(0);
        let turned: Vec<u8> = bytes.chunks(8).flat_map(|word| word.iter().rev().copied()).collect();
        assert_eq!(said, reference.checksum(&turned), "{size}");
    }
}

#[test]
fn bad_fragments_are_counted_by_kind() {
    let mut good = Vec::new();
    write_fragment(&mut good, header(5), &[1; 24]);
    let with = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 0xf0;
        check_fragment(&bytes).unwrap_err()
    };
    assert_eq!(check_fragment(&good[..8]), Err(FedError::Size { bytes: 8 }));
    assert_eq!(check_fragment(&good[..33]), Err(FedError::Size { bytes: 33 }));
    assert!(matches!(with(7), FedError::Header { .. }));
    assert!(matches!(with(39), FedError::Trailer { .. }));
    assert!(matches!(with(36), FedError::Length { said: 0xf5, found: 5 }));
    assert!(matches!(with(0), FedError::Crc { .. }) && matches!(with(34), FedError::Crc { .. }));
}

#[test]
fn a_good_file_is_walked_to_its_end() {
    let file = fed_file(1..=300);
    let entries = walked(&file);
    assert_eq!(entries.len(), 300);
    assert!(entries.iter().all(|entry| entry.fault.is_none() && entry.source_id == 841));
    assert!(entries.iter().zip(1..).all(|(entry, n)| entry.event == Some(n) && u64::from(entry.level1_id) == n));
}

#[test]
fn any_flipped_byte_costs_one_fragment() {
    let mut file = fed_file(1..=40);
    let before = walked(&file);
    for at in 0..file.len() {
        for flip in [0x01, 0x80, 0xff] {
            assert_one_bad(&mut file, &before, at, flip);
        }
    }
}

#[test]
fn damage_is_reported_by_kind() {
    let mut file = fed_file(1..=9);
    let entry = walked(&file)[4];
    let (begin, end) = (entry.offset as usize, (entry.offset as usize) + entry.length as usize);
    let mut kind = |at: usize| {
        file[at] ^= 0x40;
        let fault = walked(&file)[4].fault;
        file[at] ^= 0x40;
        fault
    };
    assert_eq!(kind(begin + 7), Some(FedFault::Header), "header tag");
    assert_eq!(kind(begin + 1), Some(FedFault::Header), "source id");
    assert_eq!(kind(begin + 4), Some(FedFault::Header), "level-1 id");
    assert_eq!(kind(begin + 3), Some(FedFault::Crc), "bunch crossing");
    assert_eq!(kind(begin + 9), Some(FedFault::Crc), "payload");
    assert_eq!(kind(end - 1), Some(FedFault::Trailer), "trailer tag");
    assert_eq!(kind(end - 3), Some(FedFault::Trailer), "length");
    assert_eq!(kind(end - 6), Some(FedFault::Crc), "CRC");
}

#[test]
fn a_damaged_last_fragment_is_not_divided_where_its_payload_looks_like_the_next() {
    let mut file = fed_file(1..=30);
    let before = walked(&file);
    let last = before[29];
    assert!(last.length > 80, "its payload holds a trailer and the header of event 31");
    for at in last.offset as usize + 40..file.len() - 8 {
        assert_one_bad(&mut file, &before, at, 0x10);
    }
}

#[test]
fn two_damaged_neighbours_are_two_bad_fragments() {
    let mut file = fed_file(1..=20);
    let before = walked(&file);
    for pair in before.windows(2) {
        let places = [pair[0].offset + 9, pair[1].offset + 9].map(|at| at as usize);
        places.iter().for_each(|&at| file[at] ^= 0x10);
        let bad: Vec<_> = walked(&file).iter().filter(|e| e.fault.is_some()).map(|e| e.event).collect();
        places.iter().for_each(|&at| file[at] ^= 0x10);
        assert_eq!(bad, [pair[0].event, pair[1].event]);
    }
}

#[test]
fn level_1_ids_wrap_and_skip_and_must_ascend() {
    let wrapped = walked(&fed_file([0xff_fffe, 0xff_ffff, 0, 1]));
    assert!(wrapped.iter().all(|entry| entry.fault.is_none()));
    let skipped = walked(&fed_file([7, 8, 11, 12]));
    assert_eq!(skipped.iter().filter_map(|entry| entry.event).collect::<Vec<_>>(), [1, 2, 5, 6]);
    assert!(skipped.iter().all(|entry| entry.fault.is_none()));
    let repeated = walked(&fed_file([7, 8, 8, 9, 100_000, 10, 11]));
    let faults: Vec<_> = repeated.iter().map(|entry| entry.fault).collect();
    let (again, order) = (Some(FedFault::Repeated), Some(FedFault::Order));
    assert_eq!(faults, [None, None, again, None, order, None, None]);
}

#[test]
fn a_fragment_of_another_source_is_bad() {
    let mut file = fed_file(1..=3);
    write_fragment(&mut file, FedHeader { source_id: 843, ..header(4711) }, &[0; 80]);
    file.extend(fed_file(5..=6));
    let faults: Vec<_> = walked(&file).iter().map(|entry| entry.fault).collect();
    assert_eq!(faults, [None, None, None, Some(FedFault::Source), None, None]);
}

#[test]
fn fragments_longer_than_the_window_are_found_and_read() {
    let mut file = Vec::new();
    for id in 1..=3 {
        write_fragment(&mut file, header(id), &vec![id as u8; 3 << 20]);
    }
    let before = walked(&file);
    for at in [3, 100, (3 << 20) + 12, (3 << 20) + 30, (6 << 20) + 40] {
        assert_one_bad(&mut file, &before, at, 0x20);
    }
    let disk = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&disk, &file).unwrap();
    let mut fed = FedFile::open(disk.path(), None).unwrap();
    let lengths: Vec<_> = fed.entries().iter().map(|entry| entry.length as usize).collect();
    let (mut all, mut rest) = (vec![0; file.len()], lengths.iter());
    let mut left = &mut all[..];
    for n in 0..3 {
        let (fragment, behind) = left.split_at_mut(*rest.next().unwrap());
        fed.read(n, fragment).unwrap();
        left = behind;
    }
    assert!(all == file, "all fragments together are the file");
    assert!(fed.read(3, &mut []).is_err());
}

#[test]
fn unusable_files_are_reported_by_kind() {
    let error = |bytes: &[u8]| walk(Cursor::new(bytes)).unwrap_err();
    let file = fed_file(1..=50);
    assert!(matches!(error(&[]), FedFileError::Empty));
    assert!(matches!(error(&file[..5]), FedFileError::NoFragments));
    let mut random = Random(5);
    let garbage: Vec<u8> = (0..80_000).map(|_| random.below(256) as u8).collect();
    assert!(matches!(error(&garbage), FedFileError::NoFragments));
}

/// A file on disk with these bytes.
fn opened(bytes: &[u8]) -> Result<FedFile, SourceError> {
    let disk = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&disk, bytes).unwrap();
    FedFile::open(disk.path(), None)
}

#[test]
fn a_file_that_is_cut_anywhere_keeps_its_whole_fragments() {
    let file = fed_file(1..=6);
    let whole = walked(&file);
    for size in whole[1].offset as usize..file.len() {
        let fed = opened(&file[..size]).unwrap();
        let good = fed.entries().iter().filter(|entry| entry.fault.is_none()).count();
        let at = whole.partition_point(|entry| entry.offset + u64::from(entry.length) <= size as u64);
        assert_eq!(good, at, "cut to {size}");
        let left = size as u64 - whole[at].offset;
        match left {
            0 => assert_eq!((fed.cut(), fed.padding()), (None, None)),
            1..8 => assert_eq!(fed.padding().map(|padding| padding.offset), Some(whole[at].offset), "cut to {size}"),
            // The payload looks like a trailer and the header of the next event: it is taken for them.
            _ if fed.entries().len() > at + 1 => {
                let last = fed.entries().last().unwrap();
                let end = last.offset + u64::from(last.length);
                assert_eq!(fed.entries()[at].offset, whole[at].offset, "cut to {size}");
                assert!(end == size as u64 || end == size as u64 & !7, "cut to {size}");
            }
            _ => {
                let cut = fed.entries().last().unwrap();
                // A cut right behind a word of the payload that looks like a trailer is other damage.
                let end = if cut.fault == Some(FedFault::Cut) { left } else { left & !7 };
                let expected = (whole[at].event, whole[at].offset, end);
                assert_eq!((cut.event, cut.offset, u64::from(cut.length)), expected, "cut to {size}");
                let ends = [FedFault::Cut, FedFault::Trailer, FedFault::Crc].map(Some);
                assert!(ends.contains(&cut.fault), "cut to {size}: {cut:?}");
            }
        }
        assert_eq!(fed.undamaged().is_ok(), left == 0, "cut to {size}");
    }
}

#[test]
fn padding_is_no_fragment_and_has_no_event() {
    let file = fed_file(1..=20);
    let (end, good) = (file.len() as u64, walked(&file));
    for (padding, byte) in [(1, 0), (8, 0), (512, 0xff), (4096, 0), (5003, 0), (2 << 20, 0)] {
        let fed = opened(&[&file[..], &vec![byte; padding]].concat()).unwrap();
        assert_eq!(fed.entries(), good);
        assert_eq!(fed.padding(), Some(FilePadding { offset: end, bytes: padding as u64 }));
        let text = fed.undamaged().unwrap_err().to_string();
        assert!(text.contains(&format!("damaged at byte {end}: padding")), "{text}");
    }
}

#[test]
fn a_cut_before_padding_is_a_cut() {
    let file = fed_file(1..=20);
    let last = walked(&file)[19];
    let mut cut = file[..last.offset as usize + 16].to_vec();
    cut.resize(cut.len() + 4096, 0);
    let fed = opened(&cut).unwrap();
    assert_eq!(fed.cut().map(|cut| (cut.event, cut.offset)), Some((Some(20), last.offset)));
    assert_eq!(fed.padding(), None);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = FedFile::open("no/such/file.raw", None).unwrap_err();
    assert!(matches!(error, SourceError::Open { .. }));
    assert!(error.to_string().starts_with("cannot open no/such/file.raw: "), "{error}");
}

proptest! {
    #[test]
    fn any_damage_keeps_every_byte_and_every_fragment_that_it_does_not_touch(
        places in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..), 1..6),
    ) {
        let mut file = fed_file(1..=31);
        let before = walked(&file);
        let mut hit = vec![false; before.len()];
        for (index, flip) in places {
            let at = index.index(file.len());
            file[at] ^= flip;
            hit[before.partition_point(|entry| entry.offset <= at as u64) - 1] = true;
        }
        let after = walked(&file);
        for (old, _) in before.iter().zip(hit).filter(|(_, hit)| !hit) {
            prop_assert!(after.iter().any(|new| new == old || same_place(new, old)), "{:?} is lost", old);
        }
    }
}

/// True if a good fragment has the same place. Damage of the first fragments changes the count of the events before the
/// first good one, and never the place of a good fragment.
fn same_place(new: &FedEntry, old: &FedEntry) -> bool {
    new.fault.is_none() && (new.offset, new.length, new.level1_id) == (old.offset, old.length, old.level1_id)
}
