//! `evb bench all-pairs`: test a fabric link by link.

use super::{
    NOT_PINNED,
    args::{ALL_PAIRS_TRANSPORT, Asked, BenchArgs, Medium, media},
    cores,
};
use crate::{
    failure::Failure,
    folder::{prepare, unwritable},
    hosts::Hosts,
    members::Members,
    progress::StepProgress,
    signals::stop_on_signals,
    terminal::{show, width},
};
use evb::{
    Acceptance, NodeId, Span,
    bench::{FabricTest, LayerChoice, NodeLauncher, SMALLEST_BYTES, allowed_cores},
    record::Qualification,
};
use evb_record::Outcome;
use std::{fs, path::Path, sync::atomic::AtomicBool};

/// The file of the record in the folder of the results.
const RECORD: &str = "all-pairs.json";
/// Lengths of messages, unless they are given.
const SIZES: [usize; 2] = [64, 65536];
/// Times of each measurement, and before it, unless they are given.
const DURATION: Span = Span::from_millis(500);
const WARMUP: Span = Span::from_millis(20);

/// Tests the fabric of each transport.
pub(super) fn test(args: &BenchArgs) -> Result<Outcome, Failure> {
    check(args)?;
    let limits = args.accept.as_deref().map(limits).transpose()?.unwrap_or_default();
    let hosts = args.hosts()?;
    if let Some(folder) = &args.out {
        prepare(folder, RECORD)?;
    }
    let stop = stop_on_signals("the test ends")?;
    let media = media(args, &[ALL_PAIRS_TRANSPORT])?;
    let [Medium::Real(layer)] = &media[..] else {
        let hint = "name the one that the fabric is for, such as --transport tcp";
        return Err(Failure::with_hint("all-pairs tests one real transport at a time", hint));
    };
    let mut record = measure(args, layer, hosts.as_ref(), &stop).map_err(|failure| failure.within(layer))?;
    limits.judge(&mut record);
    if args.json {
        println!("{}", serde_json::to_string(&record).map_err(Failure::new)?);
    } else {
        show(&evb_report::qualification_summary(&record, width()));
    }
    if let Some(folder) = &args.out {
        write(folder, &record)?;
    }
    Ok(record.good.into())
}

/// Refuses options that mean nothing for this test.
fn check(args: &BenchArgs) -> Result<(), Failure> {
    let given = [
        (args.patterns != [Asked::AllPairs], "other patterns beside it"),
        (args.sweep.is_some(), "--sweep"),
        (args.rate.is_some(), "--rate"),
        (args.window.is_some(), "--window"),
        (args.fit.is_some(), "--fit"),
        (!args.to.is_empty(), "--to"),
        (!args.compute.is_empty(), "--compute"),
        (args.nodes.len() > 1, "several numbers of --nodes"),
        (args.sizes.len() > 2, "more than two --sizes"),
    ];
    match given.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, what)) => {
            let hint = "it takes --nodes N, and in --sizes those of round trips and of throughput, such as 64B,64KiB";
            Err(Failure::with_hint(format!("all-pairs has no use for {what}"), hint))
        }
        None => Ok(()),
    }
}

fn limits(file: &Path) -> Result<Acceptance, Failure> {
    let text = fs::read_to_string(file).map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
    Acceptance::parse(&text).map_err(|error| Failure::new(format!("{}: {error}", file.display())))
}

fn measure(
    args: &BenchArgs,
    layer: &LayerChoice,
    hosts: Option<&Hosts>,
    stop: &AtomicBool,
) -> Result<Qualification, Failure> {
    let nodes = match (args.nodes.first(), hosts) {
        (Some(&nodes), _) => nodes,
        (None, Some(hosts)) => hosts.count().try_into().map_err(Failure::new)?,
        (None, None) => allowed_cores().len().clamp(2, 16) as u16,
    };
    if nodes < 2 {
        return Err(Failure::with_hint("one node has no links", "give two hosts or more, or --nodes 2"));
    }
    let (sizes, is_pinned) = (sizes(args), !args.no_pin && have_cores_of_their_own(nodes, hosts));
    let members = Members::new(layer, nodes, sizes[0].max(sizes[1]), is_pinned, args.launcher.as_deref())?;
    let members = members.on(hosts)?;
    let commands = |control| members.commands(control);
    let launch = || members.launch(&commands);
    let test = FabricTest {
        place: NodeLauncher {
            layer: layer.clone(),
            cores: if is_pinned { cores(args) } else { NOT_PINNED },
            stop,
            launch: Some(&launch),
        },
        nodes,
        hosts: hosts.map_or_else(Vec::new, |hosts| (0..nodes).map(|node| hosts.of(NodeId(node)).to_owned()).collect()),
        sizes,
        warmup: args.warmup.unwrap_or(WARMUP),
        duration: args.time.unwrap_or(DURATION),
        wait: args.wait,
        seed: args.seed,
    };
    let progress = StepProgress::new(layer, args.progress);
    test.run(&mut |what, index, of| progress.show(what, index, of), &mut |text| progress.note(text))
        .map_err(Failure::from)
}

/// True if no two nodes share a core: such a pair would be slow, whatever the link between them is like.
fn have_cores_of_their_own(nodes: u16, hosts: Option<&Hosts>) -> bool {
    match hosts {
        Some(hosts) => usize::from(nodes) <= hosts.count(),
        None => usize::from(nodes) <= allowed_cores().len(),
    }
}

/// Lengths of the messages of round trips, and of those by which throughput is measured.
fn sizes(args: &BenchArgs) -> [usize; 2] {
    let given = |index: usize| args.sizes.get(index).and_then(|size| usize::try_from(size.0).ok());
    [0, 1].map(|index| given(index).unwrap_or(SIZES[index]).max(SMALLEST_BYTES))
}

fn write(folder: &Path, record: &Qualification) -> Result<(), Failure> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| unwritable(&path, &error))
    };
    write(RECORD, &(serde_json::to_string(record).map_err(Failure::new)? + "\n"))?;
    for plot in evb_report::qualification_plots(record) {
        write(&format!("{}.svg", plot.name), &plot.svg)?;
    }
    Ok(())
}
