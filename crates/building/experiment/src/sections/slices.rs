//! `readout.slice`: which sources can be cut into slices of time, and when that cannot work.

use super::{
    coincidence,
    source::{self, Feed},
};
use crate::{diagnostics::Problem, view::View};
use evb_core::Span;
use evb_sources::{HitClock, LiveSpec, SourceSpec};

/// The keys that only slices have.
const KEYS: [&str; 3] = ["readout.slice", "readout.overlap", "readout.slices_from"];

/// Slices are of hits, and hits go in slices.
pub(super) fn check(view: View<'_>) -> Option<Problem> {
    let used = source::used(view);
    let streams =
        |source: &View<'_>| matches!(source::make(*source), SourceSpec::Hits { .. } | SourceSpec::HitFile { .. });
    let (streams, others): (Vec<_>, Vec<_>) = used.into_iter().partition(streams);
    let (live, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|source| source::feed(*source) == Feed::Live);
    let Some(key) = KEYS.into_iter().find(|key| view.has(key)) else {
        return without_slices(streams.first().copied(), &live);
    };
    if !view.has("readout.slice") {
        return without_slices(streams.first().copied(), &live).or_else(|| no_length(view, key));
    }
    others
        .first()
        .map(|other| no_hits(view, *other, key))
        .or_else(|| one_kind(view, streams.first().copied(), live.first().copied()))
        .or_else(|| live.iter().find_map(|source| no_time(view, *source)))
        .or_else(|| live.first().and_then(|_| too_much_overlap(view)))
        .or_else(|| live.first().and_then(|source| other_trigger(view, *source)))
        .or_else(|| live.iter().find_map(|source| narrow_clock(*source)))
}

/// Hits without slices.
fn without_slices(stream: Option<View<'_>>, live: &[View<'_>]) -> Option<Problem> {
    let stream = stream.map(|stream| stream.origin("type"));
    let in_frames =
        || live.iter().find(|source| source.has("framing.hits")).map(|source| source.origin("framing.hits"));
    let place = stream.or_else(in_frames)?;
    let help = "add slice = \"1 ms\" to [readout]: an event is what all sources have in so long a time";
    Some(Problem::new("hits have no trigger, so `readout.slice` is missing", help).at(place, "hits"))
}

fn no_length(view: View<'_>, key: &str) -> Option<Problem> {
    let help = format!("add slice = \"1 ms\" to [readout], or remove `{key}`");
    Some(Problem::new("`readout.slice` is missing", help).at(view.origin(key), "of slices"))
}

fn no_hits(view: View<'_>, other: View<'_>, key: &str) -> Problem {
    let message = format!("the {:?} source defines its events itself, not by slices of time", other.text("type"));
    let help =
        format!("use sources of type \"hits\" or \"hit-file\" only, or live ones with a clock, or remove `{key}`");
    Problem::new(message, help).at(other.origin("type"), "no hits").at(view.origin(key), "slices")
}

/// The slices of a file are numbered from the first one, those of live sources from the first that all have.
fn one_kind(view: View<'_>, stream: Option<View<'_>>, live: Option<View<'_>>) -> Option<Problem> {
    let (stream, live) = stream.zip(live)?;
    let message = format!(
        "slices of the live {:?} source and of the {:?} source cannot be put together",
        live.text("type"),
        stream.text("type")
    );
    let help = "read what a front end has sent with a source of type \"file\", or use no live sources";
    let problem = Problem::new(message, help).at(live.origin("type"), "live").at(stream.origin("type"), "on demand");
    Some(problem.at(view.origin("readout.slice"), "slices"))
}

/// Live hits need times.
fn no_time(view: View<'_>, source: View<'_>) -> Option<Problem> {
    let live = live(source)?;
    let framing = live.framing.as_ref();
    let has_own = framing.and_then(|framing| framing.hits.as_ref()).is_some_and(|hits| hits.clock != HitClock::Frame);
    if has_own || framing.is_some_and(|framing| framing.clock.is_some()) {
        return None;
    }
    let message = format!("the {:?} source has no clock to cut its hits into slices by", source.text("type"));
    let help = "add clock = { at = ..., bits = ..., frequency = \"...\" } to its framing";
    let label = if framing.is_some() { "no clock in its framing" } else { "evb's own framing has no clock" };
    Some(Problem::new(message, help).at(source.origin("type"), label).at(view.origin("readout.slice"), "slices"))
}

fn too_much_overlap(view: View<'_>) -> Option<Problem> {
    let (slice, overlap): (Span, Span) =
        (view.maybe_quantity("readout.slice")?, view.maybe_quantity("readout.overlap")?);
    (overlap > slice).then(|| {
        let message = format!("`readout.overlap` of {overlap} is above the slices of {slice}");
        let help = "a hit would be in more than two events: lower `readout.overlap`, or raise `readout.slice`";
        Problem::new(message, help)
            .at(view.origin("readout.overlap"), "overlap")
            .at(view.origin("readout.slice"), "slices")
    })
}

/// An event is a slice, or what is together in time.
fn other_trigger(view: View<'_>, source: View<'_>) -> Option<Problem> {
    coincidence::is_used(view).then(|| {
        let problem = Problem::new(
            "an event is a slice of time, or what the trigger \"time\" finds together, and not both",
            "write type = \"data\" in [trigger] for slices, or remove `readout.slice`",
        );
        problem
            .at(view.origin("trigger.type"), "by time")
            .at(view.origin("readout.slice"), "slices")
            .at(source.origin("type"), "live")
    })
}

/// A clock that wraps tells the time only if nothing comes later than half of its range.
fn narrow_clock(source: View<'_>) -> Option<Problem> {
    let live = live(source)?;
    let (framing, slices) = (live.framing?, live.slices?);
    let (range, place) = narrowest(&framing)?;
    let late = slices.sort_depth.max(slices.latency);
    (range.0 / 2 <= late.0).then(|| {
        let message = format!("the clock of the hits wraps after {range}, and a hit may come {late} late");
        let help = format!(
            "a hit must not come later than half of the range: lower `sort_depth` and `latency` below {}",
            Span(range.0 / 2)
        );
        Problem::new(message, help)
            .at(source.origin(place), "wraps")
            .at(source.origin("sort_depth"), "sort depth")
            .at(source.origin("latency"), "latency")
    })
}

/// The range of what wraps first, beside the times of the hits before, with its place.
fn narrowest(framing: &evb_sources::Framing) -> Option<(Span, &'static str)> {
    let of_hits = framing.hits.as_ref().and_then(|hits| match &hits.clock {
        HitClock::Own if framing.clock.is_none() => Some((hits.time.first()?.range(), "framing.hits")),
        HitClock::Marker(marker) => Some((marker.time.first()?.range(), "framing.hits.marker")),
        _ => None,
    });
    of_hits.or_else(|| Some((framing.clock?.range(), "framing.clock")))
}

fn live(source: View<'_>) -> Option<LiveSpec> {
    source::make(source).live().cloned()
}
