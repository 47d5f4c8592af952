//! One event builder, described without a file: simulated on a network, then run in threads of this process.

use evb::{Config, Plan, Record, SourceSpec, run_in_threads, simulate};
use std::{error::Error, num::NonZeroUsize};

fn main() -> Result<(), Box<dyn Error>> {
    let building = Config { events: Some(10_000), ..Config::new(4, 2) };
    let sizes = SourceSpec::LogNormal { mean: "2 kB".parse()?, rms: "1 kB".parse()? };
    let mut plan = Plan::new(building, sizes).on_network("myrinet-clos-128")?.with_seed(7);
    plan.name = "build-and-simulate".into();

    // Continues as long as the observer wants.
    print(&simulate(&plan, NonZeroUsize::MIN, None, &mut |_| true)?)?;
    // The observer `()` only waits.
    print(&run_in_threads(&plan, "", &mut ())?)
}

/// Prints a record as a line of JSON.
fn print(record: &Record) -> Result<(), Box<dyn Error>> {
    println!("{}", serde_json::to_string(record)?);
    Ok(())
}
