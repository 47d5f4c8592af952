//! Bundles: several sources in one readout unit, and events in blocks. The keys are those of `[readout]`, of sources, of
//! `[trigger]` and of `[[fault]]`.

use super::{block, counts::slices, protocol, source, trigger, workload};
use crate::{
    Bundling,
    diagnostics::Problem,
    limits::*,
    tree::Node,
    view::{Rule, View},
};
use evb_core::{ByteCount, SourceId};
use evb_sources::SourceSpec;

/// Rules of every experiment.
pub(super) const EVERY_RULES: &[Rule] = &[shared_sources, too_many_sources, none_in_traffic];
/// Rules of the protocol.
pub(super) const PROTOCOL_RULES: &[Rule] = &[parts_of_bundles];
/// Rules of event building.
pub(super) const RULES: &[Rule] = &[whole_blocks, blocks_of_data, too_large];

/// The part of the plan.
pub(super) fn plan(view: View<'_>) -> Bundling {
    let mut bounds = vec![0_u16];
    for unit in 0..view.integer::<usize>("readout.units") {
        let count = source::of_unit(view, unit).len();
        bounds.push(bounds[unit].saturating_add(u16::try_from(count).unwrap_or(u16::MAX)));
    }
    let (block, largest) = block::block(view.0);
    let rest = |events: u64| u32::try_from(events % u64::from(block)).ok().filter(|rest| *rest > 0);
    let mut bundling = Bundling {
        block,
        largest,
        last: view.maybe_integer("trigger.events").and_then(rest),
        bounds: if bounds.windows(2).all(|pair| pair[1] == pair[0] + 1) { Vec::new() } else { bounds },
        masked: masked(view),
        suppressed: suppressed(view),
        max_fragment: None,
        slice: None,
    };
    bundling.max_fragment = (!bundling.is_plain()).then(|| view.quantity("readout.max_fragment"));
    bundling
}

/// Numbers and tables of all sources.
fn numbered(view: View<'_>) -> impl Iterator<Item = (SourceId, View<'_>)> {
    (0..=u16::MAX).map(SourceId).zip(source::all(view))
}

/// Masked sources in ascending order.
fn masked(view: View<'_>) -> Vec<SourceId> {
    let is_set = |table: View<'_>| table.has("masked") && table.flag("masked");
    let by_table = numbered(view).filter(|(_, table)| is_set(*table)).map(|(source, _)| source);
    let listed = view.list("readout.masked").iter().filter_map(Node::integer);
    let by_number = listed.filter_map(|number| u16::try_from(number).ok()).map(SourceId);
    let mut masked: Vec<_> = by_table.chain(by_number).collect();
    masked.sort();
    masked.dedup();
    masked
}

fn suppressed(view: View<'_>) -> Vec<(SourceId, f64)> {
    let tables = numbered(view).filter(|(_, table)| table.has("suppressed"));
    tables.map(|(source, table)| (source, table.number("suppressed"))).collect()
}

/// True if any readout unit makes bundles, or gets them from a first stage.
pub(super) fn is_used(view: View<'_>) -> bool {
    !plan(view).is_plain() || slices(view).is_some()
}

/// Largest message with fragments: a bundle, or one fragment.
pub(super) fn largest(view: View<'_>) -> ByteCount {
    let (each, bundling) = (view.quantity("readout.max_fragment"), plan(view));
    let has_stages = slices(view).is_some();
    let units = (0..view.integer::<u16>("readout.units")).filter(|unit| has_stages || bundling.bundles(*unit));
    let fragments =
        units.map(|unit| bundling.sources_of(unit).len() as u64 * u64::from(bundling.largest_block())).max();
    fragments.map_or(each, |fragments| ByteCount(Bundling::bundle_bytes(fragments, each)).max(each))
}

/// The shared number of sources must be enough for the units that share it.
fn shared_sources(view: View<'_>) -> Option<Problem> {
    let sources = view.maybe_integer::<usize>("readout.sources")?;
    let (units, tables) = (view.integer::<usize>("readout.units"), view.list("readout.unit").len());
    let sharing = units.saturating_sub(tables);
    let (message, help) = match sharing {
        0 => (
            "`readout.sources` is for units without a table, and each unit has one".to_owned(),
            "leave it out, or raise `readout.units`".to_owned(),
        ),
        _ if sources < sharing => (
            format!("`readout.sources` of {sources} is below the {sharing} readout units that share them"),
            format!("each unit has a source: write {sharing} or more, or lower `readout.units`"),
        ),
        _ => return None,
    };
    Some(Problem::new(message, help).at(view.origin("readout.sources"), "number of sources"))
}

fn too_many_sources(view: View<'_>) -> Option<Problem> {
    let sources: usize = (0..view.integer("readout.units")).map(|unit| source::of_unit(view, unit).len()).sum();
    (sources > MAX_SOURCES as usize).then(|| {
        let message = format!("{sources} sources of all readout units are more than {MAX_SOURCES}");
        Problem::new(message, "give the units fewer sources").at(view.origin("readout"), "too many sources")
    })
}

/// Senders of traffic have one source of sizes each.
fn none_in_traffic(view: View<'_>) -> Option<Problem> {
    (workload::is_traffic(view) && is_used(view)).then(|| {
        let help = "write one `source` for each sender and leave out `sources`, `masked`, `suppressed` and `trigger.block`, \
                    or remove [workload] to build events";
        Problem::new("traffic has no bundles: a sender has one source and no events", help)
            .at(view.origin("workload"), "traffic")
    })
}

/// In a bundle, a source that was not asked looks like one without a fragment.
fn parts_of_bundles(view: View<'_>) -> Option<Problem> {
    let key = protocol::partial(view).filter(|_| is_used(view))?;
    let message = format!("`{key}` asks some of the readout units for an event, and bundles are of all of them");
    let help = "give each readout unit one source and leave out `trigger.block` and [first_stage], or write first = ... without `rest`";
    Some(Problem::new(message, help).at(view.origin(key), "not with bundles"))
}

/// Slices have blocks in turn, all of one size.
fn whole_blocks(view: View<'_>) -> Option<Problem> {
    slices(view)?;
    let (events, block) = (view.maybe_integer::<u64>("trigger.events")?, u64::from(block::block(view.0).0));
    (events % block > 0).then(|| {
        let above = events.next_multiple_of(block);
        let message = format!("`trigger.events` of {events} is not a multiple of `trigger.block`, {block}");
        let help = match above - block {
            0 => format!("two stages end at the end of a block: write events = {above}"),
            below => format!("two stages end at the end of a block: write events = {below} or {above}"),
        };
        Problem::new(message, help)
            .at(view.origin("trigger.events"), "not whole blocks")
            .at(view.origin("trigger.block"), "block")
    })
}

/// The number of events of data is not known beforehand, and need not be a multiple of a block.
fn blocks_of_data(view: View<'_>) -> Option<Problem> {
    (block::largest_block(view.0) > 1 && trigger::waits_for_data(view)).then(|| {
        let help = "leave `block` out, or write type = \"free-running\" or type = \"rate\" in [trigger], with generated sources";
        Problem::new("events of data cannot be built in blocks: the end of the data may be within a block", help)
            .at(view.origin("trigger.block"), "block")
    })
}

fn too_large(view: View<'_>) -> Option<Problem> {
    let largest = largest(view);
    (is_used(view) && largest > MAX_FRAGMENT).then(|| {
        let fit = block::default_max_fragment(view.0);
        let each: ByteCount = view.quantity("readout.max_fragment");
        let message = format!("a bundle of fragments of {each} may have {largest}, more than {MAX_FRAGMENT}");
        let help = format!(
            "write max_fragment = \"{fit}\" or less in [readout], or lower `trigger.block` or the sources of a unit"
        );
        Problem::new(message, help)
            .at(view.origin("readout.max_fragment"), "largest fragment")
            .at(view.origin("trigger.block"), "block")
    })
}

/// Checks the sources in bundles.
pub(super) fn check(view: View<'_>) -> Vec<Problem> {
    let bundling = plan(view);
    let units = 0..view.integer::<u16>("readout.units");
    let own = units.filter(|unit| bundling.bundles(*unit)).filter_map(|unit| own_numbers(view, unit));
    let without_data = numbered(view).filter_map(|(source, table)| no_suppression(source, table));
    absent_masks(view, &bundling).into_iter().chain(own).chain(without_data).take(MAX_FOUND).collect()
}

fn is_numbered(table: View<'_>) -> bool {
    source::make(table).is_numbered()
}

/// A source that numbers its fragments itself has a unit for itself, since the unit finds out which events they belong to.
fn own_numbers(view: View<'_>, unit: u16) -> Option<Problem> {
    let sources = source::of_unit(view, unit.into());
    let numbered = sources.iter().find(|table| is_numbered(**table))?;
    let kind = numbered.text("type");
    let (message, help) = match sources.len() {
        1 if block::largest_block(view.0) > 1 => (
            format!(
                "the {kind:?} source of readout unit {unit} numbers its events itself, which cannot be built in blocks"
            ),
            "leave `trigger.block` out",
        ),
        1 => (
            format!(
                "the {kind:?} source of readout unit {unit} is the only one of its unit and can neither be masked nor suppressed"
            ),
            "leave the unit out of the file instead",
        ),
        _ => (
            format!("readout unit {unit} has a {kind:?} source beside others, which numbers its events itself"),
            "give this source a separate readout unit: another table [[readout.unit]]",
        ),
    };
    Some(Problem::new(message, help).at(numbered.origin("type"), "numbers its events itself"))
}

/// Zero suppression is drawn for generated fragments.
fn no_suppression(source: SourceId, table: View<'_>) -> Option<Problem> {
    let part = table.has("suppressed").then(|| table.number("suppressed"))?;
    let is_trace = matches!(source::make(table), SourceSpec::Trace { .. });
    (is_trace && part > 0.0).then(|| {
        let message = format!("source {source} has its fragments from a file, so none can be suppressed by chance");
        let help = "write suppressed = 0: events without a row in the file are then complete without this source";
        Problem::new(message, help).at(table.origin("suppressed"), "not generated")
    })
}

fn absent_masks(view: View<'_>, bundling: &Bundling) -> Option<Problem> {
    let sources = source::all(view).count();
    let absent = bundling.masked.iter().find(|source| source.index() >= sources)?;
    let message = format!("`readout.masked` names source {absent}, and there are {sources} sources");
    let help = format!("sources are numbered through all units, from 0 to {}", sources.saturating_sub(1));
    Some(Problem::new(message, help).at(view.origin("readout.masked"), "no such source"))
}

/// A fault in a unit that makes bundles happens to one of its sources, or to the bundle on its way.
pub(super) fn check_fault(view: View<'_>, fault: View<'_>, unit: u16, on_the_way: bool) -> Option<Problem> {
    let (bundling, action) = (plan(view), fault.text("action"));
    let Some(source) = fault.maybe_integer::<u16>("source") else {
        return (!on_the_way && bundling.bundles(unit)).then(|| {
            let message = format!("the fault {action:?} must say which source of readout unit {unit} it happens to");
            let help = format!("add source = {}, or another source of this unit", bundling.sources_of(unit).start);
            Problem::new(message, help).at(fault.origin("node"), "makes bundles")
        });
    };
    let sources = bundling.sources_of(unit);
    let help = format!("readout unit {unit} has the sources {} to {}", sources.start, sources.end - 1);
    let (message, help) = match () {
        () if !sources.contains(&source) => (format!("readout unit {unit} has no source {source}"), help),
        () if bundling.is_masked(SourceId(source)) => (
            format!("source {source} is masked: no fault can happen to it"),
            "leave the fault out, or do not mask the source".to_owned(),
        ),
        () if !bundling.bundles(unit) => (
            format!("source {source} is the only one that readout unit {unit} reads, so the unit makes no bundles"),
            "leave `source` out".to_owned(),
        ),
        () => return None,
    };
    Some(Problem::new(message, help).at(fault.origin("source"), "this source"))
}
