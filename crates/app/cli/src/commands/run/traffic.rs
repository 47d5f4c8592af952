//! Traffic without an event manager, for real.

use crate::{
    commands::bench::NOT_PINNED,
    failure::Failure,
    members::Members,
    nodes::NodeArgs,
    progress::{ProgressArgs, TimeProgress, say},
    signals::Signals,
};
use evb::{
    Plan, Record,
    bench::{BenchError, LayerChoice, NodeLauncher, Wait, Work},
    run_traffic,
};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

/// Interval of looks at signals.
const LOOK: Duration = Duration::from_millis(100);

/// Carries out the traffic of a plan on the machines of these arguments.
pub(super) fn run(plan: &Plan, nodes: &NodeArgs, signals: &Signals, how: ProgressArgs) -> Result<Record, Failure> {
    let hosts = nodes.machines()?;
    let work = Work::new(plan.clone(), Wait::Sleep).ok_or_else(|| Failure::new("this plan builds events"))?;
    let layer = LayerChoice::of(&plan.transport).ok_or_else(|| Failure::new("no traffic goes over this transport"))?;
    // Messages are timed by one clock, and each machine has its own.
    let work = if hosts.is_some() { work.untimed() } else { work };
    let members = Members::new(&layer, work.nodes(), work.longest()?, false, None)?.on(hosts.as_ref())?;
    let members = members.with_patience(nodes.patience());
    let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let commands = |control| members.commands(control);
    let place = NodeLauncher {
        layer: layer.clone(),
        cores: NOT_PINNED,
        stop: &stop,
        launch: Some(&|| members.launch(&commands)),
    };
    let record = thread::scope(|scope| {
        scope.spawn(|| {
            let progress = TimeProgress::new(plan, how);
            while !done.load(Ordering::Relaxed) {
                if signals.any() {
                    stop.store(true, Ordering::Relaxed);
                }
                progress.show();
                thread::park_timeout(LOOK);
            }
        });
        let record = run_traffic(&work, &place, &mut |text| {
            if !how.quiet {
                say(text)
            }
        });
        done.store(true, Ordering::Relaxed);
        record
    });
    record.map_err(|error| failure(error, hosts.is_some()).within(&layer))
}

/// The failure of a launch, on other machines or on this one.
fn failure(error: BenchError, is_remote: bool) -> Failure {
    match error {
        BenchError::Missing(_) if is_remote => Failure::with_hint(
            error,
            "can these machines reach this one, at the address of `--listen`? `--patience SECONDS` waits longer",
        ),
        error => error.into(),
    }
}
