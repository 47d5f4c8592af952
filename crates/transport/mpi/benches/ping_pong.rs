//! Half round trips of the message layer beside those of MPI itself, in turns, on two cores, under each MPI that is
//! installed. `ping_pong.c` is the loop that they are compared with.

use evb_core::NodeId;
use evb_transport::MessageLayer;
use evb_transport_mpi::{Layer, Mpi, MpiOptions, Threads};
use std::{collections::BTreeMap, env, hint::black_box, path::Path, process::Command, time::Instant};

const SIZES: [usize; 4] = [8, 64, 1024, 65536];
const BATCHES: usize = 50;
/// Jobs of each kind.
const TURNS: usize = 8;

fn main() {
    if env::args().nth(1).as_deref() == Some("rank") {
        return be_a_rank();
    }
    println!("half round trips in ns: medians and minima over {TURNS} jobs of {BATCHES} batches each");
    for (mpi, bind) in
        [("openmpi", &["--allow-run-as-root", "--bind-to", "core"][..]), ("mpich", &["-bind-to", "core"])]
    {
        compare(mpi, bind);
    }
}

fn compare(mpi: &str, bind: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let (loop_of_mpi, source) =
        (folder.path().join("loop"), concat!(env!("CARGO_MANIFEST_DIR"), "/benches/ping_pong.c"));
    let mut compiler = Command::new(format!("mpicc.{mpi}"));
    if !compiler.args(["-O2", source, "-o"]).arg(&loop_of_mpi).status().is_ok_and(|status| status.success()) {
        return println!("{mpi} is left out: mpicc.{mpi} does not compile");
    }
    let this = env::current_exe().expect("this program");
    let launch = |program: &Path, first: &str| {
        let mut command = Command::new(format!("mpirun.{mpi}"));
        command.args(bind).args(["-n", "2"]).arg(program).arg(first).args(SIZES.map(|size| size.to_string()));
        let output = command.output().expect("mpirun runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for _ in 0..TURNS {
        theirs.add(&launch(&loop_of_mpi, &BATCHES.to_string()));
        ours.add(&launch(&this, "rank"));
    }
    println!(
        "{mpi:8} {:>7} {:>10} {:>10} {:>7} {:>10} {:>10} {:>7}",
        "bytes", "MPI", "layer", "ratio", "MPI min", "min", "ratio"
    );
    for size in SIZES {
        let ((mpi, mpi_min), (layer, layer_min)) = (theirs.of(size), ours.of(size));
        let ratios = (layer / mpi, layer_min / mpi_min);
        println!(
            "{:8} {size:7} {mpi:10.1} {layer:10.1} {:7.3} {mpi_min:10.1} {layer_min:10.1} {:7.3}",
            "", ratios.0, ratios.1
        );
    }
}

/// By size: the medians and the minima of the jobs.
#[derive(Default)]
struct Times(BTreeMap<usize, (Vec<f64>, Vec<f64>)>);

impl Times {
    fn add(&mut self, lines: &str) {
        for line in lines.lines() {
            let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            if let [size, median, least] = numbers[..] {
                let times = self.0.entry(size as usize).or_default();
                times.0.push(median);
                times.1.push(least);
            }
        }
    }

    /// The median of the medians and the least of all.
    fn of(&self, size: usize) -> (f64, f64) {
        let (mut medians, least) = self.0.get(&size).cloned().unwrap_or_default();
        medians.sort_by(f64::total_cmp);
        (medians.get(medians.len() / 2).copied().unwrap_or(f64::NAN), least.into_iter().fold(f64::INFINITY, f64::min))
    }
}

fn be_a_rank() {
    let mpi = Mpi::init(Threads::One).unwrap_or_else(|error| panic!("{error}"));
    let mut layers = mpi.layers(&[0, 1], &MpiOptions::default()).expect("two ranks");
    let (layer, me) = (&mut layers[0], mpi.rank());
    for size in env::args().skip(2).filter_map(|size| size.parse().ok()) {
        let bytes = vec![0; size];
        let trips = if size > 10_000 { 100 } else { 1000 };
        let mut times = Vec::new();
        for batch in 0..BATCHES + 2 {
            let start = Instant::now();
            for _ in 0..trips {
                if me == 0 {
                    send(layer, NodeId(1), &bytes);
                    receive(layer);
                } else {
                    receive(layer);
                    send(layer, NodeId(0), &bytes);
                }
            }
            if batch >= 2 {
                times.push(start.elapsed().as_nanos() as f64 / f64::from(trips) / 2.0);
            }
        }
        times.sort_by(f64::total_cmp);
        if me == 0 {
            println!("{size} {:.1} {:.1}", times[BATCHES / 2], times[0]);
        }
    }
    drop(layers);
    mpi.finish();
}

fn send(layer: &mut Layer, to: NodeId, bytes: &[u8]) {
    while layer.send(to, bytes).is_err() {
        layer.flush();
    }
    layer.flush();
}

fn receive(layer: &mut Layer) {
    let mut take = |_, bytes: &[u8]| {
        black_box(bytes);
    };
    while layer.receive(1, &mut take) == 0 {}
}
