//! The fuzz corpus and hostile texts as plain tests: nothing panics, nothing grows without bound.

use evb_experiment::{Experiment, fuzz_parse, limits::MAX_DEPTH};
use std::{fs, path::Path};

#[test]
fn the_corpus_is_harmless() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/experiment");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the corpus is part of the crate") {
        let bytes = fs::read(entry.expect("a readable folder").path()).expect("a readable file");
        fuzz_parse(&bytes);
        // Every file cut short and with single bytes changed is one more.
        for cut in (0..bytes.len()).step_by(7) {
            fuzz_parse(&bytes[..cut]);
            let mut changed = bytes.clone();
            changed[cut] ^= 1 << (cut % 7);
            fuzz_parse(&changed);
        }
        count += 1;
    }
    assert!(count >= 10, "only {count} files in the corpus");
}

#[test]
fn deep_nesting_is_refused() {
    let deep = 10_000;
    for text in [
        format!("a = {}{}", "[".repeat(deep), "]".repeat(deep)),
        format!("a = {}1{}", "{ a = ".repeat(deep), " }".repeat(deep)),
        format!("{}b = 1", "a.".repeat(deep)),
        format!("[{}b]", "a.".repeat(deep)),
        format!("sweep = {}", ["{ ", &"a.".repeat(70), "a = "].concat().repeat(70)) + "1" + &"}".repeat(70),
        format!("sweep = {}", ["{ ", &"a.".repeat(10), "a = "].concat().repeat(70)) + "[1]" + &"}".repeat(70),
    ] {
        assert!(Experiment::parse(&text, "deep.toml", &[]).is_err());
    }
    // Beyond the limit nothing is looked at: the table there is a value like any other.
    let text = format!("[sweep]\n{}a = [1]", "a.".repeat(20));
    let message = Experiment::parse(&text, "deep.toml", &[]).expect_err("unknown").to_string();
    assert_eq!(message.matches('a').count(), MAX_DEPTH, "{message}");
    let key = "a.".repeat(deep) + "a=1";
    assert!(Experiment::parse("", "deep.toml", &[key]).is_err());
}

#[test]
fn large_files_end_soon() {
    let one = "[[readout.unit]]\nsource = { type = \"fixed\", size = \"1 B\" }\n";
    let many = format!("trigger.events = 1\nbuilder.units = 1\n{}", one.repeat(1_000_000 / one.len()));
    let experiment = Experiment::parse(&many, "many.toml", &[]).expect("a good file");
    assert!(experiment.plans()[0].sources.len() > 10_000);
    let swept = format!("{many}[sweep]\nrun.seed = [{}]\n", "1,".repeat(400));
    let message = Experiment::parse(&swept, "many.toml", &[]).expect_err("too much").to_string();
    assert_eq!(message, "the sweep has more than 100000 readout units in all its points");

    let unknown: String = (0..100_000).map(|n| format!("k{n}=1\n")).collect();
    assert!(Experiment::parse(&unknown, "many.toml", &[]).is_err());
    let axes: String = (0..20_000).map(|n| format!("run.k{n}.x=[1]\n")).collect();
    assert!(Experiment::parse(&format!("[sweep]\n{axes}"), "many.toml", &[]).is_err());
    let faults = "[[fault]]\nnode=\"ru9\"\naction=\"kill\"\nat=\"1 s\"\n".repeat(1000);
    let text = format!(
        "trigger.events=1\nbuilder.units=1\n{faults}[readout]\nunits=1\nsource={{type=\"fixed\",size=\"1 B\"}}"
    );
    assert!(
        Experiment::parse(&text, "many.toml", &[]).expect_err("no such node").to_string().starts_with("100 problems")
    );
}
