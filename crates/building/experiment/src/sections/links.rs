//! The links of live sources: each has one to itself, or shares it with others whose frames have another source id.

use super::{source, transport};
use crate::{diagnostics::Problem, limits::*, tree::Origin, view::View};
use evb_sources::LiveSpec;
use std::collections::{HashMap, HashSet};

/// Keys that say where a front end is. Only one reader can have the first two.
const PLACES: [&str; 3] = ["listen", "device", "connect"];

/// A live source, by the number of its readout unit.
struct Linked<'a> {
    unit: usize,
    table: View<'a>,
    key: &'static str,
    live: LiveSpec,
}

impl Linked<'_> {
    fn origin(&self) -> Option<Origin> {
        self.table.origin(self.key)
    }
}

/// The first source of a link, and the source ids of all so far.
struct Group<'a> {
    first: Linked<'a>,
    ids: HashSet<u64>,
}

/// Sources that name one link can share it.
pub(super) fn check(view: View<'_>) -> Vec<Problem> {
    let (mut groups, mut problems) = (HashMap::<_, Group<'_>>::new(), Vec::new());
    for source in (0..view.integer::<usize>("readout.units")).filter_map(|unit| linked(view, unit)) {
        let place = (source.table.text("type"), source.live.link.place().into_owned());
        let Some(group) = groups.get_mut(&place) else {
            let ids = source.live.source_id().into_iter().collect();
            groups.insert(place, Group { first: source, ids });
            continue;
        };
        problems.extend(pair(group, &source).or_else(|| one_process(view, &group.first, &source)));
        if problems.len() >= MAX_FOUND {
            break;
        }
    }
    problems
}

/// The live source of a readout unit, if its link can be that of another, too. Each port 0 is another port, and a file is read by
/// each of its sources.
fn linked(view: View<'_>, unit: usize) -> Option<Linked<'_>> {
    let is_live = |table: &View<'_>| source::feed(*table) == source::Feed::Live;
    let table = source::of_unit(view, unit).into_iter().find(is_live)?;
    let key = PLACES.into_iter().find(|key| table.has(key))?;
    let live = source::make(table).live()?.clone();
    let is_any_port = key == "listen" && live.link.place().ends_with(":0");
    (!is_any_port && live.link.file().is_none()).then_some(Linked { unit, table, key, live })
}

/// What keeps another source from a link.
fn pair(group: &mut Group<'_>, other: &Linked<'_>) -> Option<Problem> {
    let first = &group.first;
    let (units, place) = (format!("readout units {} and {}", first.unit, other.unit), other.live.link.place());
    let (Some(_), Some(id)) = (first.live.source_id(), other.live.source_id()) else {
        return unshared(&units, first, other);
    };
    if !group.ids.insert(id) {
        let message =
            format!("{units} share {place:?}, and no source id tells their frames apart: {id} is there already");
        let help = "write the id that the frames of each unit have: framing.source = { ..., value = ... }";
        return Some(Problem::new(message, help).at(other.table.origin("framing"), format!("source id {id}")));
    }
    if first.live.link != other.live.link {
        let message = format!("{units} share {place:?}, and its settings differ");
        return Some(taken(Problem::new(message, "write the same `baud` for both"), first, other));
    }
    if !first.live.can_share(&other.live) && first.live.source_id() != Some(id) {
        let message = format!("{units} share {place:?}, and their framings differ in more than the value of `source`");
        let help = "the frames of one link are found by one framing: only `source.value` may differ";
        let problem = Problem::new(message, help).at(first.table.origin("framing"), format!("unit {}", first.unit));
        return Some(problem.at(other.table.origin("framing"), format!("unit {}", other.unit)));
    }
    None
}

/// Sources whose frames nothing tells apart have a link each. A front end may accept a connection for each of them.
fn unshared(units: &str, first: &Linked<'_>, other: &Linked<'_>) -> Option<Problem> {
    let (verb, what) = match other.key {
        "listen" => ("listen on", "a separate address"),
        "device" => ("read", "a separate device"),
        _ => return None,
    };
    let message = format!("{units} both {verb} {:?}", other.live.link.place());
    let help = format!(
        "give each unit a table [[readout.unit]] with {what}, or, if one front end sends the frames of both, a framing with \
         the `source` id of its frames"
    );
    Some(taken(Problem::new(message, help), first, other))
}

fn taken(problem: Problem, first: &Linked<'_>, other: &Linked<'_>) -> Problem {
    let problem = problem.at(other.origin(), "taken");
    if first.origin() == other.origin() { problem } else { problem.at(first.origin(), format!("unit {}", first.unit)) }
}

/// Sources that share a link are in one process, which reads it.
fn one_process(view: View<'_>, first: &Linked<'_>, other: &Linked<'_>) -> Option<Problem> {
    let about = transport::TRANSPORT.of(view.below("transport"));
    let are_shared = first.live.can_share(&other.live);
    (are_shared && !about.is_one_process()).then(|| {
        let message = format!(
            "readout units {} and {} share {:?}, and {:?} makes each of them a process",
            first.unit,
            other.unit,
            other.live.link.place(),
            about.name
        );
        let help =
            "leave out [transport] and `--processes`: units that share a link are threads of the process that reads it";
        Problem::new(message, help).at(other.origin(), "shared").at(view.origin("transport.type"), "processes")
    })
}
