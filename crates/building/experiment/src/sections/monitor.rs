//! `[[monitor]]`: histograms that the builder units fill while they build events.
//!
//! A decoder is a table of the file and no file of its own: what a file means depends on no other, and an event file
//! carries the whole experiment.

use super::bundle;
use crate::{
    Bundling,
    diagnostics::Problem,
    limits::*,
    plan::HistogramPlan,
    scalar::{UnitName, brief, unit},
    schema::*,
    tree::Node,
    view::View,
};
use evb_core::SourceId;
use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
};

mod decoder;

pub(super) const DOC: &str = "Histograms that the builder units fill while they build events: one for each source.";

/// What the name of one source begins with, before its number.
const ONE_SOURCE: &str = "source ";
/// Bins if the file does not say.
const BINS: u32 = 100;

/// Each table of the list.
pub(super) static TABLE: KeyKind = KeyKind::Section(MONITOR);

const MONITOR: &[Key] = &[
    optional(
        "name",
        KeyKind::Name,
        "name of the histogram, by default the field; with several sources, each name ends with that of its source",
    ),
    optional(
        "sources",
        KeyKind::Names { least: 1, most: MAX_HISTOGRAMS },
        "readout units such as `ru3`, with all their sources, or sources such as `source 5`; by default all",
    ),
    required(
        "field",
        KeyKind::Text,
        "what is counted: `size` (bytes of a fragment), `hits` (items of a fragment), or a field of the decoder by its \
         name, as `items.charge` if several parts have one of that name",
    ),
    optional(
        "decoder",
        KeyKind::Section(decoder::DECODER),
        "what a payload consists of, as for `events.decode` in Python",
    ),
    optional(
        "bits",
        KeyKind::Integers { min: 0, max: 63, most: 2 },
        "lowest and highest bit of the field that are counted, from 0, if it is an unsigned number; by default all",
    ),
    optional("bins", integer(1, MAX_BINS), "number of bins, 100 by default"),
    optional("range", KeyKind::Range, "lower and upper end of all bins; values at the upper end are above it"),
    optional(
        "channels",
        integer(1, MAX_BINS),
        "in place of `bins` and `range`: the field is the number of a channel, from 0 to one less than this; noisy and \
         silent channels are remarked",
    ),
    key(
        "one_in",
        integer(1, i64::MAX),
        KeyDefault::Integer(1),
        "looks at one event in this many: those whose number is a multiple",
    ),
];

/// The histograms of all tables.
pub(super) fn plan(view: View<'_>) -> Vec<HistogramPlan> {
    let bundling = bundle::plan(view);
    view.list("monitor").iter().flat_map(|node| histograms(view, View(node), &bundling).unwrap_or_default()).collect()
}

/// The histograms of one table: one for each source.
fn histograms(view: View<'_>, table: View<'_>, bundling: &Bundling) -> Result<Vec<HistogramPlan>, Problem> {
    let (sources, quantity) = (sources(view, table, bundling)?, decoder::quantity(table)?);
    let (bins, range) = binning(table)?;
    let field = table.text("field");
    let of_source = |&source: &SourceId| {
        let source_name = name_of(view, bundling, source);
        let name = match table.maybe_text("name") {
            Some(name) if sources.len() == 1 => name.to_owned(),
            name => format!("{} of {source_name}", name.unwrap_or(field)),
        };
        let (channels, one_in) = (table.has("channels"), table.integer("one_in"));
        HistogramPlan { name, source, source_name, field: field.to_owned(), quantity, bins, range, channels, one_in }
    };
    Ok(sources.iter().map(of_source).collect())
}

/// Number of bins, and the range that they cover.
fn binning(table: View<'_>) -> Result<(u32, [f64; 2]), Problem> {
    let other = ["bins", "range"].into_iter().find(|key| table.has(key));
    match (table.maybe_integer::<u32>("channels"), other) {
        (Some(channels), None) => Ok((channels, [0.0, f64::from(channels)])),
        (Some(_), Some(other)) => {
            let message = format!("both `channels` and `{other}` say what the bins are");
            let problem = Problem::new(message, "keep one of the two: `channels` makes one bin for each channel");
            Err(problem.at(table.origin("channels"), "one").at(table.origin(other), "another"))
        }
        (None, _) if !table.has("range") => {
            let help = "add range = [0, 4096], or channels = 64 for the numbers of channels";
            Err(Problem::new("the histogram has no range", help).at(table.origin("field"), "from where to where?"))
        }
        (None, _) => {
            Ok((table.maybe_integer("bins").unwrap_or(BINS), [table.number("range.0"), table.number("range.1")]))
        }
    }
}

/// The sources of a table in ascending order, without masked ones.
fn sources(view: View<'_>, table: View<'_>, bundling: &Bundling) -> Result<Vec<SourceId>, Problem> {
    let units = view.integer("readout.units");
    if !table.has("sources") {
        return Ok((0..units).flat_map(|unit| bundling.read_by(unit)).collect());
    }
    let mut sources = BTreeSet::new();
    for node in table.list("sources") {
        let name = node.text().unwrap_or_default();
        let numbers = named(name, units, bundling).ok_or_else(|| no_source(name, units, bundling, node))?;
        let read: Vec<_> = numbers.map(SourceId).filter(|source| !bundling.is_masked(*source)).collect();
        if read.is_empty() {
            let problem = Problem::new(format!("{name:?} is masked: no fragment of it comes"), "leave it out here");
            return Err(problem.at(node.origin, "masked"));
        }
        sources.extend(read);
    }
    Ok(sources.into_iter().collect())
}

/// The numbers of the sources with this name: those of a readout unit, or one.
fn named(name: &str, units: u16, bundling: &Bundling) -> Option<Range<u16>> {
    match (unit(name), name.strip_prefix(ONE_SOURCE)) {
        (Some(UnitName::Readout(unit)), _) => {
            u16::try_from(unit).ok().filter(|unit| *unit < units).map(|unit| bundling.sources_of(unit))
        }
        (None, Some(number)) => {
            number.parse().ok().filter(|number| *number < bundling.sources(units)).map(|number| number..number + 1)
        }
        _ => None,
    }
}

fn no_source(name: &str, units: u16, bundling: &Bundling, node: &Node) -> Problem {
    let (unit, source) = (units - 1, bundling.sources(units) - 1);
    let help = format!("it has ru0 to ru{unit}, and \"source 0\" to \"source {source}\"");
    Problem::new(format!("there is no source {} in this event builder", brief(name)), help)
        .at(node.origin, "no such source")
}

/// The name of a source: that of its readout unit if it is the only one there.
fn name_of(view: View<'_>, bundling: &Bundling, source: SourceId) -> String {
    let mut units = 0..view.integer::<u16>("readout.units");
    match units.find(|unit| bundling.sources_of(*unit).eq(source.0..source.0 + 1)) {
        Some(unit) => format!("ru{unit}"),
        None => format!("{ONE_SOURCE}{source}"),
    }
}

// ---- checks

/// Checks all tables. Units and sources must be good.
pub(super) fn check(view: View<'_>) -> Vec<Problem> {
    let bundling = bundle::plan(view);
    let tables = || view.list("monitor").iter().map(View);
    let all: Vec<_> = tables().map(|table| histograms(view, table, &bundling)).collect();
    let problems: Vec<_> = all.iter().filter_map(|found| found.as_ref().err().cloned()).collect();
    if !problems.is_empty() {
        return problems;
    }
    let made = || tables().zip(all.iter().map(|found| found.as_deref().unwrap_or_default()));
    too_many(made()).or_else(|| same_name(made())).into_iter().collect()
}

/// Bounds the histograms of all tables together: builders report all of them ten times a second.
fn too_many<'a>(mut made: impl Iterator<Item = (View<'a>, &'a [HistogramPlan])>) -> Option<Problem> {
    let (mut histograms, mut bins) = (0, 0);
    let (table, _) = made.find(|(_, plans)| {
        histograms += plans.len();
        bins += plans.iter().map(|plan| u64::from(plan.bins)).sum::<u64>();
        histograms > MAX_HISTOGRAMS || bins > MAX_ALL_BINS
    })?;
    let message = format!(
        "all histograms up to this one are {histograms} with {bins} bins, more than {MAX_HISTOGRAMS} with {MAX_ALL_BINS}"
    );
    let help = "name fewer `sources`, since each has a histogram of its own, or ask for fewer `bins`";
    Some(Problem::new(message, help).at(table.origin("field"), "too many"))
}

fn same_name<'a>(made: impl Iterator<Item = (View<'a>, &'a [HistogramPlan])>) -> Option<Problem> {
    let mut seen = HashMap::new();
    made.flat_map(|(table, plans)| plans.iter().map(move |plan| (table, plan))).find_map(|(table, plan)| {
        let other = seen.insert(plan.name.as_str(), table)?;
        let problem =
            Problem::new(format!("two histograms have the name {:?}", plan.name), "give one of them a `name`");
        let place = |table: View<'_>| table.origin("name").or_else(|| table.origin("field"));
        Some(problem.at(place(other), "one").at(place(table), "another"))
    })
}

/// Only built events have fragments to look at.
pub(super) fn not_in_traffic(view: View<'_>) -> Option<Problem> {
    let table = View(view.list("monitor").first()?);
    let help = "leave [[monitor]] out: its histograms are of the fragments of built events";
    Some(Problem::new("other traffic than event building has no histograms", help).at(table.origin("field"), "here"))
}
