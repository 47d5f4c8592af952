//! Recorded detector data, when it is there.

use crate::{
    fed::assert_one_bad,
    support::{Random, data_folder, options},
};
use bytes::BytesMut;
use evb_core::EventId;
use evb_sources::{FedFile, Feed, ReadOutcome, SizeModel, Source, SourceSpec, check_fragment, walk};
use std::io::Cursor;

const FILES: [(&str, u16); 2] = [("cms-csc-run307511-fed841.raw", 841), ("cms-csc-run307511-fed843.raw", 843)];

#[test]
fn every_recorded_fragment_is_good() {
    let Some(folder) = data_folder() else { return };
    for (name, source_id) in FILES {
        let fed = FedFile::open(folder.join(name), None).unwrap();
        assert_eq!((fed.entries().len(), fed.events()), (4685, 4685));
        for (entry, n) in fed.entries().iter().zip(1..) {
            assert_eq!((entry.fault, entry.source_id), (None, source_id));
            assert_eq!((entry.event, u64::from(entry.level1_id)), (Some(n), n));
        }
    }
}

#[test]
fn reading_all_events_gives_back_the_file() {
    let Some(folder) = data_folder() else { return };
    for (name, _) in FILES {
        let spec = SourceSpec::CmsFed { file: name.into(), source_id: None, refuse_damaged: false };
        let mut source = Source::open(&spec, &options(&folder, 0)).unwrap();
        let mut sizes = SizeModel::open(&spec, &options(&folder, 0)).unwrap();
        assert_eq!(source.feed(), Feed::Finite { events: 4685 });
        let (mut all, mut buffer) = (Vec::new(), BytesMut::new());
        for event in (1..=4685).map(EventId) {
            assert_eq!(source.read(event, &mut buffer).unwrap(), ReadOutcome::Good);
            assert_eq!(sizes.size(event), Some(buffer.len() as u32));
            check_fragment(&buffer).unwrap();
            all.extend_from_slice(&buffer);
        }
        assert_eq!(source.read(EventId(4686), &mut buffer).unwrap(), ReadOutcome::Missing);
        assert!(all == std::fs::read(folder.join(name)).unwrap());
    }
}

#[test]
fn one_flipped_byte_costs_one_fragment() {
    let Some(folder) = data_folder() else { return };
    let mut file = std::fs::read(folder.join(FILES[0].0)).unwrap();
    let before = walk(Cursor::new(&file)).unwrap();
    let seed = 20_171_127;
    println!("seed {seed}");
    let mut random = Random(seed);
    let begin = before[2000].offset as usize;
    let end = begin + before[2000].length as usize;
    let (first, last) = (0..32, file.len() - 16..file.len());
    let fixed = first.chain(begin..begin + 40).chain(end - 32..end).chain(last);
    let drawn: Vec<usize> = (0..200).map(|_| random.below(file.len() as u64) as usize).collect();
    for at in fixed.chain(drawn) {
        assert_one_bad(&mut file, &before, at, 1 + random.below(255) as u8);
    }
}

#[test]
fn the_size_model_of_2017_adds_up() {
    let Some(folder) = data_folder() else { return };
    let total = |mean: f64| {
        let spec = SourceSpec::SizeModel {
            file: "cms-fed-sizes-2017.csv".into(),
            fed: None,
            event_size_mean: mean,
            event_size_rms: 0.0,
        };
        let mut models: Vec<_> =
            (0..818).map(|unit| SizeModel::open(&spec, &options(&folder, unit)).unwrap()).collect();
        assert!(SizeModel::open(&spec, &options(&folder, 818)).is_err());
        let sizes = (1..=50)
            .map(EventId)
            .flat_map(|event| models.iter_mut().map(move |m| m.size(event).unwrap()).collect::<Vec<_>>());
        sizes.map(f64::from).sum::<f64>() / 50.0
    };
    let (nominal, double) = (total(1.0), total(2.0));
    assert!((nominal / 1.39e6 - 1.0).abs() < 0.02, "{nominal}");
    assert!((double / 1.92e6 - 1.0).abs() < 0.02, "{double}");
}
