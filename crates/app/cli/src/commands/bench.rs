//! `evb bench`: measure message layers.

mod args;
mod fabric;
pub(crate) mod output;

use crate::{
    failure::Failure,
    folder::{prepare, unwritable},
    members::{Members, from_stdin},
    progress::BenchProgress,
    signals::{Signals, stop_on_signals},
    token,
};
pub(crate) use args::BenchArgs;
use args::{Asked, Medium, TRANSPORTS, media, suite};
use evb::bench::{
    LayerChoice, Measured, MemberOptions, NOT_MODELLED, NodeLauncher, Series, Suite, allowed_cores, join, run_series,
};
use evb::{BenchNetwork, fit, prepare_fit, simulate_suite};
use evb_record::Outcome;
use output::{RECORDS, Results};
use std::{
    fs,
    net::SocketAddr,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

/// The cores of nodes that are not pinned.
pub(crate) const NOT_PINNED: Vec<u16> = Vec::new();

pub(crate) fn run(args: &BenchArgs) -> Result<Outcome, Failure> {
    match args.join {
        Some(control) => be_node(args, control),
        None if args.patterns.contains(&Asked::AllPairs) => fabric::test(args),
        None if args.accept.is_some() => {
            Err(Failure::with_hint("--accept is for all-pairs", "name it: `evb bench all-pairs --accept FILE`"))
        }
        None => measure(args),
    }
}

fn be_node(args: &BenchArgs, control: SocketAddr) -> Result<Outcome, Failure> {
    Signals::ignore().map(drop)?;
    let (token, layer) = if args.from_stdin {
        from_stdin()?
    } else {
        let layer = args.layer.as_deref().map(serde_json::from_str).transpose().map_err(Failure::new)?;
        (token::shared()?, layer.ok_or_else(|| Failure::new("a node knows its message layer"))?)
    };
    let [nodes] = args.nodes[..] else { return Err(Failure::new("a node knows how many there are")) };
    let options = MemberOptions {
        layer,
        node: args.node,
        nodes,
        longest: args.sizes.iter().map(|size| size.0 as usize).max().unwrap_or(0),
        control,
        token,
        cores: cores(args),
    };
    join(&options)?;
    Ok(Outcome::Good)
}

/// The cores to which the nodes are pinned: all that this process may use, or none with `--no-pin`.
fn cores(args: &BenchArgs) -> Vec<u16> {
    if args.no_pin { NOT_PINNED } else { allowed_cores() }
}

fn measure(args: &BenchArgs) -> Result<Outcome, Failure> {
    let (mut suite, media) = (suite(args)?, media(args, &TRANSPORTS)?);
    if args.fit.is_some() {
        let [Medium::Real(_)] = &media[..] else {
            let hint = "name the one that the network is to be like, such as --transport shm";
            return Err(Failure::with_hint("a network is fitted to one real transport", hint));
        };
        prepare_fit(&mut suite, !args.patterns.is_empty(), !args.sizes.is_empty() || args.sweep.is_some());
    }
    let stop = stop_on_signals("the measurement ends")?;
    if let Some(folder) = &args.out {
        prepare(folder, RECORDS)?;
    }
    let (mut all, mut good) = (Vec::new(), true);
    for medium in &media {
        if stop.load(Ordering::Relaxed) {
            good = false;
            break;
        }
        let rows = match medium {
            Medium::Real(layer) => measure_layer(args, &suite, layer, &stop),
            Medium::Simulated(network) => simulate(network, &suite, &stop),
        };
        match rows {
            Ok(rows) => all.extend(rows),
            Err(failure) if media.len() > 1 => {
                good = false;
                eprintln!("evb: {medium} is left out");
                failure.print();
            }
            Err(failure) => return Err(failure),
        }
    }
    let results = Results::new(all);
    results.print(args.json)?;
    if let Some(folder) = &args.out {
        results.write(folder)?;
    }
    if let Some(file) = &args.fit {
        write_network(file, &media[0].to_string(), &suite, &results.records, &stop)?;
    }
    Ok((good && !results.records.is_empty() && results.records.iter().all(|record| record.good)).into())
}

fn simulate(network: &str, suite: &Suite, stop: &AtomicBool) -> Result<Vec<Measured>, Failure> {
    let records = simulate_suite(&BenchNetwork::named(network)?, network, suite, stop)?;
    Ok(records.into_iter().map(|record| Measured { record, raw: Vec::new() }).collect())
}

/// Writes a network that is fitted to a transport, and shows its deviations.
fn write_network(
    file: &Path,
    transport: &str,
    suite: &Suite,
    measured: &[evb::record::Benchmark],
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let (text, errors) = fit(transport, suite, measured, stop)?;
    fs::write(file, text).map_err(|error| unwritable(file, &error))?;
    let file = file.display();
    eprintln!("evb: {file} holds the network");
    eprintln!("evb: {errors}");
    eprintln!("evb: {NOT_MODELLED}");
    eprintln!("evb: try it with `evb simulate FILE --network {file}`");
    Ok(())
}

fn measure_layer(
    args: &BenchArgs,
    suite: &Suite,
    layer: &LayerChoice,
    stop: &AtomicBool,
) -> Result<Vec<Measured>, Failure> {
    let measurements = suite.measurements(layer);
    let nodes = measurements.iter().map(|measurement| measurement.nodes).max().unwrap_or(0);
    let longest = measurements.iter().map(|measurement| measurement.size).max().unwrap_or(0);
    let hosts = args.hosts()?;
    if hosts.is_some() && args.rate.is_some() {
        let hint = "measure without --rate, or on one machine";
        return Err(Failure::with_hint("messages at a rate are timed by one clock, and each host has its own", hint));
    }
    let members = Members::new(layer, nodes, longest, !args.no_pin, args.launcher.as_deref())?.on(hosts.as_ref())?;
    let commands = |control| members.commands(control);
    let launch = || members.launch(&commands);
    let place = NodeLauncher { layer: layer.clone(), cores: cores(args), stop, launch: Some(&launch) };
    let series = Series { place, measurements, launches: args.launches };
    let mut progress = BenchProgress::new(layer, stop, args.progress);
    let result = run_series(&series, &mut progress);
    drop(progress);
    result.map_err(|error| Failure::from(error).within(layer))
}
