//! `[filter]`: which events are kept, and in which stream.

use super::{bundle, protocol, source};
use crate::{
    choice::*,
    diagnostics::Problem,
    limits::*,
    schema::*,
    view::{Rule as Check, View},
};
use evb_core::{SourceId, Span};
use evb_filter::{ChainStep, Code, Rule, Selection, StreamId, UnitsPlan, Width, streams};
use evb_protocol::Protocol;

pub(super) const DOC: &str = "Which events are kept, and in which stream; without it, all.";

pub(super) const FILTER: &[Key] = &[
    optional(
        "step",
        KeyKind::List { item: &TABLE, most: MAX_STEPS },
        "one table `[[filter.step]]` for each filter, in their order; what passes all is accepted",
    ),
    optional(
        "program",
        KeyKind::Names { least: 1, most: MAX_ARGUMENTS },
        "a program and its arguments that decides about what passes the steps",
    ),
    optional("library", KeyKind::Path, "a shared library that decides, in place of a program"),
    optional(
        "units",
        integer(0, MAX_FILTER_UNITS),
        "processes of the program for each builder, 1 by default; 0 only with `listen`",
    ),
    optional(
        "listen",
        KeyKind::Address,
        "address at which builder 0 waits for `evb filter` of other machines, with or without `program`; builder n has the port n above it, and port 0 is any free one",
    ),
    optional("timeout", wait(), "longest time without progress of a process that has events; 5 s by default"),
    optional("events", integer(1, MAX_HELD), "most events that a process holds; 16 by default"),
    optional(
        "streams",
        KeyKind::Names { least: 1, most: MAX_STREAMS },
        "streams beside `physics` that the program can name",
    ),
    optional("accept", number(0.0, 1.0), "part of the events that a simulated program accepts"),
    optional("time", time(MAX_DURATION), "processor time of a simulated program for an event; 0 by default"),
];

/// Each table of the chain.
static TABLE: KeyKind = KeyKind::Choice(&STEP);

static STEP: Choice<Make<Rule>> = Choice {
    tag: "type",
    what: "filter",
    default: KeyDefault::Required,
    common: &[
        optional(
            "stream",
            KeyKind::Name,
            "stream of the accepted events; without it, the filter rejects all other events",
        ),
        optional(
            "copy",
            KeyKind::Flag,
            "true if the filter copies accepted events that are kept into its stream, and takes none",
        ),
    ],
    variants: &[
        variant(
            "prescale",
            "accepts every n-th event, by its number",
            &[required("one_in", integer(1, i64::MAX), "one event in this many")],
            |view| Rule::Prescale { one_in: view.integer("one_in") },
        ),
        variant(
            "size",
            "accepts by the payload of an event, or of its fragment of one source",
            &[
                optional("source", SOURCE, "readout unit of the fragment; the whole event by default"),
                optional("at_least", bytes(0, MAX_EVENT), "smallest payload that is accepted"),
                optional("at_most", bytes(0, MAX_EVENT), "largest payload that is accepted"),
            ],
            |view| Rule::Size {
                source: view.maybe_integer("source").map(SourceId),
                at_least: view.maybe_quantity("at_least"),
                at_most: view.maybe_quantity("at_most"),
            },
        ),
        variant(
            "word",
            "accepts by a little-endian word in the fragment of one source: its bits in `mask` are those of `value`",
            &[
                required("source", SOURCE, "readout unit of the fragment"),
                key("bits", KeyKind::Word(&WIDTH), KeyDefault::Text("32"), "width of the word"),
                required("value", KeyKind::Text, "value, such as \"0x51\""),
                optional("mask", KeyKind::Text, "bits that are compared; all by default"),
                optional(
                    "at",
                    integer(0, i64::MAX),
                    "offset of the word in bytes; any multiple of its width by default",
                ),
                optional("accept", number(0.0, 1.0), "part that is accepted in a simulation, which has no bytes"),
            ],
            word_rule,
        ),
        variant("complete", "accepts complete events, whose fragments are all good", &[], |_| Rule::Complete),
        variant(
            "random",
            "accepts a part of the events, drawn by seed and event",
            &[required("accept", number(0.0, 1.0), "part of the events that is accepted")],
            |view| Rule::Random { accept: view.number("accept") },
        ),
    ],
};

const SOURCE: KeyKind = integer(0, MAX_UNITS - 1);

static WIDTH: Words<Width> = Words(&[
    word("8", "8 bits", Width::Bits8),
    word("16", "16 bits", Width::Bits16),
    word("32", "32 bits", Width::Bits32),
    word("64", "64 bits", Width::Bits64),
]);

/// Keys that name the code of filter units.
const PROGRAM: &str = "program";
const LIBRARY: &str = "library";
/// Key of the address for remote filter units.
const LISTEN: &str = "listen";
/// Time that a process may do nothing when the file does not say.
const TIMEOUT: Span = Span::from_secs(5);
/// Events that a process holds when the file does not say.
const HELD: u32 = 16;

pub(super) const RULES: &[Check] = &[
    one_program,
    program_keys,
    some_units,
    stream_names,
    streams_of_copies,
    steps,
    phase_without_decision,
    phase_of_bundles,
];

/// After the first phase of a bundle its events are not split yet.
fn phase_of_bundles(view: View<'_>) -> Option<Problem> {
    let steps = view.list("filter.step").first().map(|step| View(step).origin("type"));
    let program = || Some(view.below("filter").origin(deciders(view).next()?));
    let place = steps.or_else(program).filter(|_| protocol::is_phased(view) && bundle::is_used(view))?;
    let message = "phased building of bundles knows the draw of `protocol.accept` only, and no filters";
    let help = "give each readout unit one source and leave out `trigger.block` and [first_stage], or use push or pull";
    Some(Problem::new(message, help).at(place, "not with bundles in phases"))
}

fn word_rule(view: View<'_>) -> Rule {
    let width = WIDTH.at(view, "bits");
    let all = u64::MAX >> (64 - 8 * width.bytes());
    Rule::Word {
        source: SourceId(view.integer("source")),
        width,
        mask: view.maybe_text("mask").and_then(number_of).unwrap_or(all),
        value: view.maybe_text("value").and_then(number_of).unwrap_or(0),
        at: view.maybe_integer("at"),
    }
}

/// A number in decimal or, after `0x`, hexadecimal digits.
fn number_of(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

pub(super) fn plan(view: View<'_>, seed: u64, protocol: Protocol) -> Selection {
    let names = names(view);
    let stream = |step: View<'_>| {
        let place = names.iter().position(|name| Some(name.as_str()) == step.maybe_text("stream"));
        place.map(|place| StreamId(place as u16))
    };
    let step = |node| {
        let step = View(node);
        let rule = STEP.make(step);
        let accept = (rule.reads_bytes() && step.has("accept")).then(|| step.number("accept"));
        ChainStep { rule, stream: stream(step), copy: is_copy(step), accept }
    };
    Selection {
        seed,
        phased: matches!(protocol, Protocol::Phased { rest: true, .. }),
        drawn: view.has("protocol.accept").then(|| view.number("protocol.accept")),
        steps: view.list("filter.step").iter().map(step).collect(),
        units: units(view),
        streams: names,
    }
}

fn units(view: View<'_>) -> Option<UnitsPlan> {
    let filter = view.below("filter");
    if !has_program(view) {
        return None;
    }
    let code = programs(view).next().map(|key| match key {
        LIBRARY => Code::Library(filter.path(LIBRARY)),
        program => Code::Program(texts(filter, program)),
    });
    let timeout: Span = filter.maybe_quantity("timeout").unwrap_or(TIMEOUT);
    // Run control waits no longer than the drain timeout.
    let drain: Span = view.quantity("run.drain_timeout");
    Some(UnitsPlan {
        units: if code.is_some() { filter.maybe_integer("units").unwrap_or(1) } else { 0 },
        code,
        listen: filter.maybe_text(LISTEN).map(str::to_owned),
        timeout,
        patience: timeout.min(Span(drain.0 / 2)),
        events: filter.maybe_integer("events").unwrap_or(HELD),
        accept: filter.has("accept").then(|| filter.number("accept")),
        time: filter.maybe_quantity("time").unwrap_or(Span::ZERO),
    })
}

fn texts(view: View<'_>, path: &str) -> Vec<String> {
    view.list(path).iter().filter_map(|node| node.text()).map(str::to_owned).collect()
}

/// The names of all streams: `physics` first, `quarantine` behind the others if there is a program, then those that get
/// copies.
fn names(view: View<'_>) -> Vec<String> {
    let of_steps = |copy| of_steps(view, copy).filter_map(|step| step.maybe_text("stream")).map(str::to_owned);
    let quarantine = has_program(view).then(|| streams::QUARANTINE.to_owned());
    let own = [streams::PHYSICS.to_owned()].into_iter().chain(of_steps(false)).chain(texts(view, "filter.streams"));
    let mut names = Vec::new();
    for name in own.chain(quarantine).chain(of_steps(true)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The filters that copy, or the others.
fn of_steps(view: View<'_>, copy: bool) -> impl Iterator<Item = View<'_>> {
    view.list("filter.step").iter().map(View).filter(move |step| is_copy(*step) == copy)
}

fn is_copy(step: View<'_>) -> bool {
    step.has("copy") && step.flag("copy")
}

/// A filter that copies needs a stream that gets nothing but copies.
fn streams_of_copies(view: View<'_>) -> Option<Problem> {
    let owned = |name: &str| {
        let of_steps = of_steps(view, false).filter_map(|step| step.maybe_text("stream"));
        name == streams::PHYSICS
            || of_steps.chain(view.list("filter.streams").iter().filter_map(|node| node.text())).any(|own| own == name)
    };
    of_steps(view, true).find_map(|step| match step.maybe_text("stream") {
        None => {
            let help = "add stream = \"monitor\", or another name";
            Some(Problem::new("a filter that copies needs a stream", help).at(step.origin("copy"), "copied to nowhere"))
        }
        Some(name) if owned(name) => {
            let message = format!("the stream {name:?} takes events, and cannot get copies of others");
            let help = "copy into a stream of another name, such as \"monitor\"";
            Some(Problem::new(message, help).at(step.origin("stream"), "not for copies"))
        }
        Some(_) => None,
    })
}

/// The keys of `[filter]` that name a program or a library.
fn programs(view: View<'_>) -> impl Iterator<Item = &'static str> {
    [PROGRAM, LIBRARY].into_iter().filter(move |key| view.below("filter").has(key))
}

/// True if code of the user decides, locally or remotely.
fn has_program(view: View<'_>) -> bool {
    deciders(view).next().is_some()
}

/// The keys of `[filter]` that have code of the user decide, locally or remotely.
fn deciders(view: View<'_>) -> impl Iterator<Item = &'static str> {
    programs(view).chain([LISTEN].into_iter().filter(move |key| view.below("filter").has(key)))
}

/// A builder without local filter units needs an address for remote ones, and processes need a program.
fn some_units(view: View<'_>) -> Option<Problem> {
    let filter = view.below("filter");
    let units: i64 = filter.maybe_integer("units")?;
    let problem = |message: &str, help: &str, label: &str| {
        Some(Problem::new(message, help).at(filter.origin("units"), label.to_owned()))
    };
    match (units, filter.has(LISTEN), programs(view).next()) {
        (0, false, Some(_)) => problem(
            "`filter.units` of 0 leaves no unit that decides",
            "write 1 or more, or add listen = \"0.0.0.0:9000\" for filter units of other machines",
            "no units",
        ),
        (1.., true, None) => problem(
            "`filter.units` counts processes of a program, and there is none",
            "add program = [\"./my-filter\"], or leave `units` out: `evb filter` brings its own program",
            "without a program",
        ),
        _ => None,
    }
}

fn one_program(view: View<'_>) -> Option<Problem> {
    let mut named = programs(view);
    let (one, other) = (named.next()?, named.next()?);
    let problem = Problem::new("only one program or library can decide", "keep one of them");
    let filter = view.below("filter");
    Some(problem.at(filter.origin(one), one).at(filter.origin(other), other))
}

/// Keys of a program need one.
fn program_keys(view: View<'_>) -> Option<Problem> {
    let keys = ["units", "timeout", "events", "streams", "accept", "time"];
    let path = keys.map(|key| format!("filter.{key}")).into_iter().find(|path| view.has(path))?;
    (!has_program(view)).then(|| {
        let help = "add program = [\"./my-filter\"], library = \"./my-filter.so\" or listen = \"0.0.0.0:9000\" to [filter], or leave the key out";
        Problem::new(format!("`{path}` is about a program, and there is none"), help)
            .at(view.origin(&path), "without a program")
    })
}

fn stream_names(view: View<'_>) -> Option<Problem> {
    let is_good = |name: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        (1..=MAX_STREAM_NAME).contains(&name.len()) && name.bytes().all(plain) && name != streams::QUARANTINE
    };
    let problem = |name: &str, origin| {
        let help = format!(
            "write 1 to {MAX_STREAM_NAME} letters, digits and underscores; `{}` is for events without a decision",
            streams::QUARANTINE
        );
        Problem::new(format!("{name:?} cannot be the name of a stream"), help).at(origin, "not a name")
    };
    let of_steps = view.list("filter.step").iter().filter_map(|step| step.at("stream"));
    let all = of_steps.chain(view.list("filter.streams"));
    let bad = all.filter_map(|node| Some((node.text()?, node.origin))).find(|(name, _)| !is_good(name));
    bad.map(|(name, origin)| problem(name, origin))
}

/// Steps must be able to decide.
fn steps(view: View<'_>) -> Option<Problem> {
    view.list("filter.step").iter().find_map(|node| {
        let step = View(node);
        source_is_there(view, step).or_else(|| number_fits(step)).or_else(|| bounds(step))
    })
}

fn source_is_there(view: View<'_>, step: View<'_>) -> Option<Problem> {
    let source = step.maybe_integer::<i64>("source")?;
    let sources = source::all(view).count() as i64;
    let seen = view.maybe_integer::<i64>("protocol.first").unwrap_or(sources);
    (source >= seen).then(|| {
        let (message, help, label) = if source >= sources {
            let message = format!("there is no source {source} in this event builder");
            (message, format!("it has 0 to {}", sources - 1), "no such source")
        } else {
            let help = format!("phased building decides after the first phase: write {} or less", seen - 1);
            (format!("source {source} is not part of the first phase"), help, "asked later")
        };
        Problem::new(message, help).at(step.origin("source"), label)
    })
}

fn number_fits(step: View<'_>) -> Option<Problem> {
    let width = step.maybe_text("bits").and_then(|name| WIDTH.named(name))?;
    ["value", "mask"].into_iter().find_map(|key| {
        let text = step.maybe_text(key)?;
        let fits = number_of(text).is_some_and(|number| number <= u64::MAX >> (64 - 8 * width.bytes()));
        (!fits).then(|| {
            let message = format!("`{key}` of {text:?} is not a number of {} bits", 8 * width.bytes());
            let help = "write digits, after 0x for hexadecimal ones, such as \"0x51\"; `bits` has the width";
            Problem::new(message, help).at(step.origin(key), "not such a number")
        })
    })
}

fn bounds(step: View<'_>) -> Option<Problem> {
    match STEP.make(step) {
        Rule::Size { at_least: None, at_most: None, .. } => {
            let help = "add at_least = \"1 kB\", at_most = \"1 MB\", or both";
            Some(Problem::new("a filter by size needs a bound", help).at(step.origin("type"), "no bound"))
        }
        Rule::Size { at_least: Some(least), at_most: Some(most), .. } if least > most => {
            let message = format!("`at_least` of {least} is above `at_most` of {most}");
            Some(Problem::new(message, "swap the two").at(step.origin("at_least"), "too large"))
        }
        Rule::Size { .. } | Rule::Word { .. } | Rule::Prescale { .. } | Rule::Complete | Rule::Random { .. } => None,
    }
}

/// A second phase needs a decision.
fn phase_without_decision(view: View<'_>) -> Option<Problem> {
    let decides = view.has("protocol.accept") || has_program(view) || !view.list("filter.step").is_empty();
    (protocol::has_rest(view) && !decides).then(|| {
        let help = "add accept = 0.1 to [protocol] for a random draw, or a filter such as [[filter.step]]";
        Problem::new("phased building decides about each event, and no rule for that is given", help)
            .at(view.origin("protocol.type"), "no decision")
    })
}
