//! `cargo lab caminos`: evb's simulator beside CAMINOS, another simulator of networks, on the same networks. Both report the
//! load that a network accepts and the mean wait of a message. The table is in lab/caminos.md.

mod cases;
mod ours;
mod samples;
mod table;
mod theirs;

use cases::Case;
use samples::Sample;
use std::{env, fs, path::PathBuf, sync::Mutex, thread};
use table::Row;
use xtask::workspace::Workspace;

/// Seeds of both sides; each value is the mean over them.
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
/// The page with the table, from the root of the repository.
const PAGE: &str = "lab/caminos.md";

/// Compares the simulator with CAMINOS, which it installs in the target directory.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only networks whose name contains this; the table is printed and not compared with the page
    #[arg(long)]
    only: Option<String>,
}

/// Programs, and the folder for their files.
struct Programs {
    evb: PathBuf,
    caminos: PathBuf,
    scratch: PathBuf,
}

/// Simulates all cases on both sides, prints the table, and compares it with the page; `UPDATE_DOCS=1` writes the page.
pub(crate) fn compare(options: &Options) -> Result<(), String> {
    let workspace = Workspace::with_evb()?;
    let scratch = workspace.target.join("lab-caminos");
    fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let programs = Programs { evb: workspace.evb(), caminos: theirs::install(&workspace)?, scratch };
    let asked = |case: &Case| options.only.as_ref().is_none_or(|only| case.network.name().contains(only.as_str()));
    let cases: Vec<Case> = cases::all().into_iter().filter(asked).collect();
    let rows = measure(&programs, cases)?;
    let text = table::draw(&rows);
    println!("{text}");
    if options.only.is_some() { Ok(()) } else { store_or_compare(&workspace.root.join(PAGE), &text) }
}

/// The rows of all cases, simulated by as many threads as there are cores.
fn measure(programs: &Programs, cases: Vec<Case>) -> Result<Vec<Row>, String> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let rows = Mutex::new(Vec::new());
    let waiting = Mutex::new(cases.into_iter().enumerate());
    let next = || waiting.lock().expect("no thread panicked").next();
    let work = || {
        while let Some((index, case)) = next() {
            let row = row(programs, index, case);
            rows.lock().expect("no thread panicked").push((index, row));
        }
    };
    thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
    let mut rows = rows.into_inner().expect("no thread panicked");
    rows.sort_by_key(|(index, _)| *index);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// One case with all seeds on both sides.
fn row(programs: &Programs, index: usize, case: Case) -> Result<Row, String> {
    let sample = |measure: &dyn Fn(&Case, u64) -> Result<f64, String>| {
        let values: Result<Vec<f64>, String> = SEEDS.iter().map(|&seed| measure(&case, seed)).collect();
        values.map(|values| Sample::of(&values)).map_err(|error| format!("{case}: {error}"))
    };
    let ours = sample(&|case, seed| ours::measure(programs, index, case, seed))?;
    let theirs = sample(&|case, seed| theirs::measure(programs, index, case, seed))?;
    eprintln!("lab: {case}: {} and {}", ours.mean, theirs.mean);
    Ok(Row { case, ours, theirs })
}

/// Compares the table with the one of the page, or stores it there.
fn store_or_compare(page: &PathBuf, table: &str) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", page.display());
    let before = fs::read_to_string(page).map_err(failed)?;
    let after = table::replace(&before, table).ok_or_else(|| format!("{PAGE} has no place for the table"))?;
    if env::var_os("UPDATE_DOCS").is_some() {
        return fs::write(page, after).map_err(failed);
    }
    if before != after {
        return Err(format!("{PAGE} is stale: write it with `UPDATE_DOCS=1 cargo lab caminos`, and review the change"));
    }
    Ok(())
}
