//! Busy machines: the rates of an event builder and of a simulation while other programs keep cores busy.

use crate::{parts, spread::spread, tail};
use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
};
use xtask::workspace::Workspace;

/// Simulations on this number of threads.
const SIMULATIONS: &[(&str, &str)] = &[("simulation, 1 thread", "1"), ("simulation, 2 threads", "2")];

/// Measures rates beside busy programs.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Numbers of busy programs
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    programs: Vec<usize>,
    /// Seconds of each run
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Number of turns; the table has their medians, minima and maxima
    #[arg(long, default_value_t = 5)]
    turns: usize,
}

/// The rates of a run or simulation alone, in each turn, and beside each number of busy programs.
struct Row {
    name: String,
    alone: Vec<f64>,
    beside: Vec<Vec<f64>>,
}

/// Threads that never sleep. Dropping them ends them.
struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

pub(crate) fn measure(options: &Options) -> Result<(), String> {
    let workspace = Workspace::with_evb()?;
    let mut rows = Vec::new();
    for (name, mode) in tail::TRANSPORTS {
        let rate = || tail::full_rate(&workspace, options.seconds, mode);
        rows.push(row(&format!("2 x 2, {name}"), options, rate)?);
    }
    for (name, threads) in SIMULATIONS {
        let rate = || parts::seconds(&workspace, "saturated-1024", threads).map(f64::recip);
        rows.push(row(name, options, rate)?);
    }
    print!("{:<22} {:>26}", "", "alone, per second");
    options.programs.iter().for_each(|programs| print!(" {:>22}", format!("beside {programs}")));
    println!();
    for Row { name, alone, beside } in rows {
        print!("{name:<22} {:>26}", spread(&alone, 1.0));
        for rates in beside {
            let parts: Vec<_> = rates.iter().zip(&alone).map(|(rate, alone)| rate / alone).collect();
            print!(" {:>22}", spread(&parts, 1.0));
        }
        println!();
    }
    println!(
        "\nEvents of 2 x 2, 2 KiB, or simulations of 1024 saturated nodes; then the remaining part beside busy programs"
    );
    println!("that never sleep. Medians of {} turns, with minimum and maximum.", options.turns.max(1));
    Ok(())
}

fn row(name: &str, options: &Options, rate: impl Fn() -> Result<f64, String>) -> Result<Row, String> {
    let rate = || rate().map_err(|error| format!("{name}: {error}"));
    let mut row = Row { name: name.into(), alone: Vec::new(), beside: vec![Vec::new(); options.programs.len()] };
    for turn in 1..=options.turns.max(1) {
        eprintln!("lab: {name}, {turn}/{}", options.turns.max(1));
        row.alone.push(rate()?);
        for (rates, &programs) in row.beside.iter_mut().zip(&options.programs) {
            let _busy = Busy::start(programs);
            rates.push(rate()?);
        }
    }
    Ok(row)
}

impl Busy {
    fn start(programs: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |_| {
            let stop = stop.clone();
            thread::spawn(move || {
                while !stop.load(Relaxed) {
                    hint::spin_loop()
                }
            })
        };
        Self { threads: (0..programs).map(start).collect(), stop }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a loop does not panic");
        }
    }
}
