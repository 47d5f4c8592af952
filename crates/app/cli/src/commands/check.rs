//! `evb check`: the experiment resolved, the levels of its network, the memory that it may need, and what could surprise.

use crate::{ExperimentArgs, failure::Failure};
use clap::Args;
use evb::{
    Headroom, LevelRates, MemoryBound, NodeMemory, Plan, StageLink, headrooms, in_bytes, largest, surprises,
    tree_levels,
};
use evb_record::Outcome;

#[derive(Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
}

pub(crate) fn run(args: &CheckArgs) -> Result<Outcome, Failure> {
    let experiment = args.experiment.load()?;
    print!("{}", experiment.resolved());
    if let Some(plan) = experiment.plans().first() {
        print!("{}{}", levels_table(&tree_levels(plan)), headroom_table(&headrooms(plan)));
    }
    if let Some((plan, bound)) = largest(experiment.plans()) {
        print!("{}", memory_table(plan, &bound));
    }
    surprises(experiment.plans()).iter().for_each(|note| eprintln!("evb: {note}"));
    Ok(Outcome::Good)
}

/// The levels of a tree, as a comment; of a sweep those of its first point.
fn levels_table(levels: &[LevelRates]) -> String {
    if levels.is_empty() {
        return String::new();
    }
    let mut table = "\n# Levels of the network, that of the hosts first:\n#\n".to_owned();
    table += "#   switches              rate down         rate up    oversubscription\n";
    for level in levels {
        let switches = format!("{} x {}", level.switches, level.name);
        let above = level.oversubscription().map_or_else(String::new, |ratio| {
            format!(" {:>15} {:>19}", level.up.to_string(), format!("{} : 1", (ratio * 100.0).round() / 100.0))
        });
        table += &format!("#   {switches:<15} {:>15}{above}\n", level.down.to_string());
    }
    table
}

/// The headroom of inputs that ask for pauses, as a comment; of a sweep those of its first point.
fn headroom_table(headrooms: &[Headroom]) -> String {
    if headrooms.is_empty() {
        return String::new();
    }
    let mut table = "\n# Headroom of an input that has asked for a pause:\n#\n".to_owned();
    table += "#   inputs            rate           delay          needed           given\n";
    for Headroom { rate, delay, inputs, needed, given } in headrooms {
        let few = if given < needed { "  too little" } else { "" };
        let [rate, delay, needed, given] = [rate.to_string(), delay.to_string(), needed.to_string(), given.to_string()];
        table += &format!("#   {inputs:>6} {rate:>15} {delay:>15} {needed:>15} {given:>15}{few}\n");
    }
    table
}

/// The memory of each kind of node, as a comment: what is printed stays an experiment file.
fn memory_table(plan: &Plan, bound: &MemoryBound) -> String {
    let config = &plan.building;
    let of = if plan.link == StageLink::None { String::new() } else { format!(" of event builder {:?}", plan.name) };
    let mut table = format!("\n# Memory{of}, at most, over transport {:?}:\n#\n", plan.transport.info().name);
    table += "#                        events    messages    together\n";
    let mut line = |name: &str, count: u16, NodeMemory { events, transport }: NodeMemory| {
        let (all, name) = (events.saturating_add(transport), format!("{count} x {name}"));
        table += &format!("#   {name:<17} {:>9} {:>11} {:>11}\n", in_bytes(events), in_bytes(transport), in_bytes(all));
    };
    line("event manager", 1, bound.event_manager);
    line("readout unit", config.readout_units, bound.readout_unit);
    line("builder unit", config.builder_units, bound.builder_unit);
    table + &format!("#   all nodes together {:>32}\n", in_bytes(bound.total()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb::{Bandwidth, ByteCount, Span};

    #[test]
    fn headroom_that_is_too_small_is_told() {
        let one = |given| Headroom {
            rate: Bandwidth(10_000_000_000),
            delay: Span::from_micros(10),
            inputs: 8,
            needed: ByteCount(28_576),
            given: ByteCount(given),
        };
        let table = headroom_table(&[one(28_576), one(10_000)]);
        let rows: Vec<_> = table.lines().skip(4).collect();
        assert!(rows[0].ends_with(" 28.576 kB") && rows[1].ends_with(" 10 kB  too little"), "{table}");
        assert_eq!(headroom_table(&[]), "");
    }

    #[test]
    fn levels_have_their_rates_and_oversubscription() {
        let level = |name: &str, switches, down, up| LevelRates {
            name: name.into(),
            switches,
            down: Bandwidth(down),
            up: Bandwidth(up),
        };
        let table = levels_table(&[
            level("leaf", 8, 12_800_000_000_000, 4_800_000_000_000),
            level("spine", 2, 4_800_000_000_000, 0),
        ]);
        let rows: Vec<Vec<_>> = table.lines().skip(4).map(|line| line.split_whitespace().collect()).collect();
        let leaf = ["#", "8", "x", "leaf", "12.8", "Tbit/s", "4.8", "Tbit/s", "2.67", ":", "1"];
        assert_eq!(rows, [&leaf[..], &["#", "2", "x", "spine", "4.8", "Tbit/s"]]);
        assert_eq!(levels_table(&[]), "");
    }
}
