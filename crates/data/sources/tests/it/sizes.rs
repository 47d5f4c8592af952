//! Size models: distributions, traces, and errors that name the line.

use crate::support::options;
use evb_core::{ByteCount, EventId};
use evb_sources::{Feed, MIN_DRAWN_SIZE, SizeModel, SourceError, SourceSpec};
use std::path::Path;

fn open(spec: &SourceSpec, unit: u16) -> Result<SizeModel, SourceError> {
    SizeModel::open(spec, &options(Path::new(""), unit))
}

fn with_file(text: &str, use_it: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.csv");
    std::fs::write(&path, text).unwrap();
    use_it(&path);
}

fn trace(text: &str, unit: u16) -> Result<SizeModel, String> {
    let mut result = None;
    with_file(text, |path| {
        let spec = SourceSpec::Trace { file: path.into(), source: None };
        let cleaned = |error: SourceError| error.to_string().replace(path.to_str().unwrap(), "file.csv");
        result = Some(open(&spec, unit).map_err(cleaned));
    });
    result.unwrap()
}

fn model(text: &str, fed: Option<u64>, unit: u16) -> Result<SizeModel, String> {
    let mut result = None;
    with_file(text, |path| {
        let spec = SourceSpec::SizeModel { file: path.into(), fed, event_size_mean: 1.0, event_size_rms: 0.5 };
        let cleaned = |error: SourceError| error.to_string().replace(path.to_str().unwrap(), "file.csv");
        result = Some(open(&spec, unit).map_err(cleaned));
    });
    result.unwrap()
}

fn all(sizes: &mut SizeModel, events: u64) -> Vec<f64> {
    (1..=events).map(|event| f64::from(sizes.size(EventId(event)).unwrap())).collect()
}

fn mean_and_rms(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
    (mean, square.sqrt())
}

#[test]
fn fixed_sizes_are_as_written() {
    let mut sizes = open(&SourceSpec::Fixed { size: ByteCount(3) }, 0).unwrap();
    assert_eq!((sizes.size(EventId(1)), sizes.size(EventId(u64::MAX))), (Some(3), Some(3)));
    assert_eq!(sizes.feed(), Feed::Endless);
    let error = open(&SourceSpec::Fixed { size: ByteCount(1 << 21) }, 0).unwrap_err();
    assert_eq!(error.to_string(), "size is 2 MiB, but must be at most 1 MiB, the largest fragment");
}

#[test]
fn uniform_sizes_reach_both_bounds_evenly() {
    let spec = SourceSpec::Uniform { min: ByteCount(100), max: ByteCount(109) };
    let values = all(&mut open(&spec, 0).unwrap(), 100_000);
    for size in 100..=109 {
        let share = values.iter().filter(|&&value| value == f64::from(size)).count();
        assert!((9500..10_500).contains(&share), "{size}: {share}");
    }
    let error = open(&SourceSpec::Uniform { min: ByteCount(9), max: ByteCount(8) }, 0).unwrap_err();
    assert_eq!(error.to_string(), "min is 9 B, but must be at most max, which is 8 B");
}

#[test]
fn log_normal_sizes_have_mean_and_rms_and_stay_within_bounds() {
    let spec = SourceSpec::LogNormal { mean: ByteCount(2000), rms: ByteCount(1000) };
    let (mean, rms) = mean_and_rms(&all(&mut open(&spec, 0).unwrap(), 300_000));
    assert!((mean - 2000.0).abs() < 20.0 && (rms - 1000.0).abs() < 30.0, "{mean} {rms}");
    let wide = SourceSpec::LogNormal { mean: ByteCount(500), rms: ByteCount(100_000) };
    let mut narrow = options(Path::new(""), 0);
    narrow.max_fragment = 4096;
    let values = all(&mut SizeModel::open(&wide, &narrow).unwrap(), 100_000);
    assert!(values.contains(&4096.0) && values.contains(&f64::from(MIN_DRAWN_SIZE)));
    assert!(values.iter().all(|value| (f64::from(MIN_DRAWN_SIZE)..=4096.0).contains(value)));
    assert!(open(&SourceSpec::LogNormal { mean: ByteCount(0), rms: ByteCount(1) }, 0).is_err());
}

#[test]
fn sizes_depend_on_seed_unit_and_event_only() {
    let spec = SourceSpec::LogNormal { mean: ByteCount(2000), rms: ByteCount(1000) };
    let mut sizes = open(&spec, 4).unwrap();
    let forwards = all(&mut sizes, 100);
    let backwards: Vec<f64> = (1..=100).rev().map(|e| f64::from(sizes.size(EventId(e)).unwrap())).collect();
    assert!(forwards.iter().eq(backwards.iter().rev()));
    assert_eq!(forwards, all(&mut open(&spec, 4).unwrap(), 100));
    assert_ne!(forwards, all(&mut open(&spec, 5).unwrap(), 100));
    let mut other_seed = options(Path::new(""), 4);
    other_seed.seed += 1;
    assert_ne!(forwards, all(&mut SizeModel::open(&spec, &other_seed).unwrap(), 100));
}

#[test]
fn a_trace_is_read_in_any_order() {
    let text = "event,source,bytes\r\n3,1,30\r\n1,1,10\n1,0,7\n\n 9 , 0 , 8 \n2,1,0\n";
    let mut sizes = trace(text, 1).unwrap();
    assert_eq!(sizes.feed(), Feed::Finite { events: 9 }, "the last event of any source");
    let found: Vec<_> = [1, 2, 3, 3, 2, 9, 4, 0, 10, 1].map(|event| sizes.size(EventId(event))).into();
    assert_eq!(found, [Some(10), Some(0), Some(30), Some(30), Some(0), None, None, None, None, Some(10)]);
}

/// As spreadsheets and people write it.
#[test]
fn a_trace_may_have_what_means_nothing() {
    let texts = [
        "\u{feff}event,source,bytes\r\n1,1,10\r\n2,1,20\r\n",
        "event,source,bytes,,\n1,1,10,,\n2,1,20,\n",
        "\"event\",\"source\",\"bytes\"\n\"1\",\"1\",\"10\"\n 2 , \" 1 \" ,20\n",
        "# sizes of a test beam\n\nEvent, Source, Bytes\n# first spill\n1,1,10\n\n  # second\n2,1,20",
    ];
    for text in texts {
        let mut sizes = trace(text, 1).unwrap_or_else(|error| panic!("{error}: {text:?}"));
        assert_eq!([1, 2, 3].map(|event| sizes.size(EventId(event))), [Some(10), Some(20), None], "{text:?}");
    }
    let mut sizes = model("FED , offset,slope,square,rms\n# one\n\"10\",400,0,0,0,\n", Some(10), 0).unwrap();
    assert_eq!(sizes.size(EventId(1)), Some(400));
}

/// Detectors number their boards as they like.
#[test]
fn ids_have_64_bits() {
    with_file(&format!("event,source,bytes\n1,{},10\n1,65536,20\n", u64::MAX), |path| {
        for (source, size) in [(u64::MAX, 10), (65_536, 20)] {
            let spec = SourceSpec::Trace { file: path.into(), source: Some(source) };
            assert_eq!(open(&spec, 0).unwrap().size(EventId(1)), Some(size));
        }
    });
    let text = format!("FED,offset,slope,square,rms\n{},400,0,0,0\n", u64::MAX);
    assert_eq!(model(&text, Some(u64::MAX), 0).unwrap().size(EventId(1)), Some(400));
}

#[test]
fn errors_in_a_trace_name_the_line() {
    let error = |text: &str| trace(text, 1).unwrap_err();
    let row = "expected event,source,bytes: an event from 1, a source from 0 and a size in bytes";
    let header = r#"expected the header line "event,source,bytes""#;
    assert_eq!(error(""), format!(r#"file.csv:1: found "", {header}"#));
    assert_eq!(error("a,b\n1,1,1\n"), format!(r#"file.csv:1: found "a,b", {header}"#));
    for bad in ["1,1", "1,1,1,1", "x,1,1", "0,1,1", "1,-1,1", "\"1,1,1", "1,1,1,,2", "1,1,-1", "1,1,1.5", "1;1;1"] {
        let text = format!("event,source,bytes\n5,1,1\n\n{bad}\n");
        assert_eq!(error(&text), format!("file.csv:4: found {bad:?}, {row}"));
    }
    let large = error("event,source,bytes\n1,7,1048577\n");
    assert_eq!(large, r#"file.csv:2: found "1,7,1048577", expected at most 1048576 bytes, the largest fragment"#);
    let twice = error("event,source,bytes\n4,1,5\n4,0,5\n3,1,5\n4,1,6\n");
    assert_eq!(twice, "file.csv:5: event 4 of source 1 was given already in line 2");
    assert_eq!(error("event,source,bytes\n4,0,5\n"), "file.csv has no row for source 1");
    let long = error(&format!("event,source,bytes\n{}\n", "1".repeat(5000)));
    assert!(long.ends_with("expected a line of at most 1024 bytes") && long.len() < 150, "{long}");
    let binary = trace("event,source,bytes\n1,1,\u{0}\n", 1).unwrap_err();
    assert!(binary.starts_with("file.csv:2: "), "{binary}");
}

#[test]
fn a_trace_that_is_not_there_is_named() {
    let error = open(&SourceSpec::Trace { file: "no/such.csv".into(), source: None }, 0).unwrap_err();
    assert!(error.to_string().starts_with("cannot open no/such.csv: "), "{error}");
    let error = open(&SourceSpec::Trace { file: "${EVB_NO_SUCH}/a.csv".into(), source: None }, 0).unwrap_err();
    assert_eq!(error.to_string(), r#"the environment variable EVB_NO_SUCH in "${EVB_NO_SUCH}/a.csv" is not set"#);
}

const MODEL: &str = "FED,offset,slope,square,rms\n10,400,2000,0,0.0\n12,100,1000,500,0.2\n";

#[test]
fn all_sources_of_an_event_share_its_relative_size() {
    // Without its own fluctuation the size tells x: two sources must agree on it, event by event.
    let text = "FED,offset,slope,square,rms\n1,400,200000,0,0\n2,0,100000,0,0\n";
    let (mut first, mut second) = (model(text, None, 0).unwrap(), model(text, Some(2), 7).unwrap());
    let (a, b) = (all(&mut first, 1000), all(&mut second, 1000));
    assert!(a.iter().zip(&b).all(|(a, b)| ((a - 400.0) / 2.0 - b).abs() <= 1.0));
    let (mean, rms) = mean_and_rms(&all(&mut second, 200_000));
    assert!((mean / 1e5 - 1.0).abs() < 0.01 && (rms / 5e4 - 1.0).abs() < 0.05, "{mean} {rms}");
}

#[test]
fn sources_fluctuate_on_their_own_on_top() {
    let text = "FED,offset,slope,square,rms\n1,50000,0,0,0.2\n2,50000,0,0,0.2\n";
    let (a, b) = (all(&mut model(text, None, 0).unwrap(), 100_000), all(&mut model(text, None, 1).unwrap(), 100_000));
    let (mean, rms) = mean_and_rms(&a);
    assert!((mean / 5e4 - 1.0).abs() < 0.01 && (rms / 1e4 - 1.0).abs() < 0.03, "{mean} {rms}");
    let covariance = a.iter().zip(&b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / 1e5;
    assert!(covariance.abs() < 0.02 * rms * rms, "{covariance}");
}

#[test]
fn errors_in_a_size_model_name_the_line() {
    assert!(model(MODEL, None, 1).is_ok() && model(MODEL, Some(12), 9).is_ok());
    assert_eq!(
        model(MODEL, None, 2).unwrap_err(),
        "file.csv has no row for readout unit 2: it has 2 rows, counted from 0"
    );
    assert_eq!(model(MODEL, Some(11), 0).unwrap_err(), "file.csv has no row for FED 11");
    for bad in ["1,2,3,4", "1,2,3,4,5,6", "x,2,3,4,5", "1,2,3,4,-1", "1,2,nan,4,5", "1,inf,3,4,5", "-1,2,3,4,5"] {
        let error = model(&format!("{MODEL}{bad}\n"), None, 0).unwrap_err();
        assert!(error.starts_with(&format!(r#"file.csv:4: found "{bad}", expected FED,offset"#)), "{error}");
    }
    let twice = model(&format!("{MODEL}12,1,1,1,1\n"), Some(12), 0).unwrap_err();
    assert_eq!(twice, r#"file.csv:4: found "12,1,1,1,1", expected one row for FED 12, this is the second"#);
}

#[test]
fn impossible_event_sizes_are_refused() {
    for (event_size_mean, event_size_rms) in
        [(0.0, 1.0), (-1.0, 1.0), (f64::NAN, 1.0), (1.0, -0.1), (1.0, f64::INFINITY)]
    {
        let spec = SourceSpec::SizeModel { file: "unused".into(), fed: None, event_size_mean, event_size_rms };
        assert!(matches!(open(&spec, 0), Err(SourceError::Parameter { .. })));
    }
}

#[test]
fn live_sources_have_no_sizes() {
    let spec = SourceSpec::Live(crate::live::tcp(24).into());
    assert!(matches!(open(&spec, 0), Err(SourceError::Live)));
}
