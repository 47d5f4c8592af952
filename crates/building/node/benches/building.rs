//! The rate of event building in threads: every payload byte is written, checksummed, read and checked; no event is
//! stored.
//!
//! One element is one fragment. The benchmark needs an idle machine: on two cores, any other work halves the result.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use evb_experiment::Experiment;
use evb_node::{Observer, Progress, Session};
use std::{hint::black_box, time::Duration};

struct Silent;

impl Observer for Silent {
    fn progress(&mut self, _: &Progress) {}
    fn note(&mut self, text: &str) {
        panic!("a benchmark must run without incident: {text}");
    }
}

fn experiment(units: u16, slots: u32, protocol: &str, source: &str) -> Experiment {
    let text = format!(
        "[trigger]\nevents = 1000\n[readout]\nunits = {units}\nsource = {source}\n[builder]\nunits = {units}\n\
         slots = {slots}\n[protocol]\ntype = \"{protocol}\"\n[storage]\nkeep = \"none\"\n"
    );
    Experiment::parse(&text, "bench.toml", &[]).expect("the benchmark's experiment is good")
}

fn build(criterion: &mut Criterion, name: &str, experiment: &Experiment) {
    let units = u64::from(experiment.plans()[0].building.readout_units);
    let mut group = criterion.benchmark_group("building");
    group.throughput(Throughput::Elements(units)).sample_size(10).measurement_time(Duration::from_secs(10));
    group.bench_function(name, |bencher| {
        // One iteration is one event; a run of them is timed by its own record, without start and stop.
        bencher.iter_custom(|events| {
            let events = events.max(1000);
            let mut plan = experiment.plans()[0].clone();
            plan.building.events = Some(events);
            let record = Session::threads().run(&plan, "", &mut Silent).expect("the run begins");
            assert!(record.good, "{record:?}");
            Duration::from_secs_f64(black_box(record.seconds))
        });
    });
    group.finish();
}

fn benches(criterion: &mut Criterion) {
    let fixed = r#"{ type = "fixed", size = "2 KiB" }"#;
    let log_normal = r#"{ type = "log-normal", mean = "2 kB", rms = "2 kB" }"#;
    build(criterion, "push, 2 x 2, 2 KiB", &experiment(2, 256, "push", fixed));
    build(criterion, "pull, 2 x 2, 2 KiB", &experiment(2, 256, "pull", fixed));
    build(criterion, "push, 8 x 8, log-normal 2 kB", &experiment(8, 64, "push", log_normal));
}

criterion_group!(building, benches);
criterion_main!(building);
