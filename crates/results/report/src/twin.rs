//! Runs held against their simulation.

use crate::{
    rates,
    sweep::swept_keys,
    table::{ALWAYS, Column, Table},
    text::{aligned, hanging, metric, percent, significant},
};
use evb_record::{Agreement, Twin, TwinFigure, TwinLoad};

/// Numbers from this on are shown with the prefix of a unit.
const LARGE: f64 = 1e4;
/// Most kinds of work that are listed.
const MOST_WORK: usize = 6;

/// The figures, real and simulated, where the simulated machine spends its time, and whether both agree.
pub fn twin_summary(twin: &Twin, width: usize) -> String {
    let Twin { experiment, transport, turns, band_percent, version, seed, .. } = twin;
    let runs = if *turns == 1 { "run" } else { "runs" };
    let head = format!("{experiment}: {turns} {runs} over {transport} and a simulation, seed {seed}, evb {version}");
    let rows = [
        ("machine", machine(twin)),
        ("band", format!("nine in ten event rates of the fit were within {band_percent:.0} %")),
    ];
    let parts = [
        hanging("", &head, width),
        aligned(&rows, width),
        figures(twin).draw(width),
        work(twin, width),
        loads(twin, width),
        hanging("", &verdict(twin), width),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// How the machine compares with that of the fit.
fn machine(twin: &Twin) -> String {
    let reference = TwinFigure {
        figure: String::new(),
        real: twin.reference_hz.clone(),
        simulated: twin.fitted_reference_hz,
        simulated_range: None,
        agrees: true,
    };
    let [now, fitted] = [reference.median(), twin.fitted_reference_hz].map(metric);
    format!("the reference run has {now}Hz, and had {fitted}Hz when the machine was fitted")
}

fn figures(twin: &Twin) -> Table {
    let mut table = Table::new([
        Column::word("figure"),
        Column::number("real", ALWAYS),
        Column::number("least", 3),
        Column::number("most", 3),
        Column::number("simulated", ALWAYS),
        Column::number("band", 2),
        Column::number("ratio", ALWAYS),
        Column::word(""),
    ]);
    for figure in &twin.figures {
        let (least, most) = figure.ends();
        let band = figure.simulated_range.map(|range| format!("{} to {}", number(range.low), number(range.high)));
        table.row([
            figure.figure.clone(),
            number(figure.median()),
            number(least),
            number(most),
            number(figure.simulated),
            band.unwrap_or_default(),
            ratio(figure),
            differs(figure),
        ]);
    }
    table
}

/// Latencies at parts of the full rate, and a line for each with its verdict.
fn loads(twin: &Twin, width: usize) -> String {
    let mut table = Table::new([
        Column::word("load"),
        Column::number("triggers", 4),
        Column::word("figure"),
        Column::number("real", ALWAYS),
        Column::number("least", 3),
        Column::number("most", 3),
        Column::number("simulated", ALWAYS),
        Column::number("ratio", ALWAYS),
        Column::word(""),
    ]);
    for load in &twin.loads {
        for figure in load.figures.iter().filter(|figure| figure.figure.starts_with("latency")) {
            let (least, most) = figure.ends();
            table.row([
                part(load),
                rates::hertz(load.rate_hz),
                figure.figure.clone(),
                number(figure.median()),
                number(least),
                number(most),
                number(figure.simulated),
                ratio(figure),
                differs(figure),
            ]);
        }
    }
    let line = |load: &TwinLoad| {
        hanging("", &format!("at {}: {}: {}", part(load), load.agreement.name(), load.explanation), width)
    };
    if twin.loads.is_empty() {
        return String::new();
    }
    format!("{}\n{}", table.draw(width), twin.loads.iter().map(line).collect::<String>())
}

fn part(load: &TwinLoad) -> String {
    format!("{} %", significant(load.load * 100.0, 3))
}

fn number(value: f64) -> String {
    if value < LARGE { significant(value, 3) } else { metric(value).trim_end().to_owned() }
}

fn ratio(figure: &TwinFigure) -> String {
    figure.ratio().map_or_else(String::new, |ratio| format!("{ratio:.2}"))
}

fn differs(figure: &TwinFigure) -> String {
    if figure.agrees { String::new() } else { "differs".to_owned() }
}

/// The kinds of work that take most of the simulated time.
fn work(twin: &Twin, width: usize) -> String {
    let all: f64 = twin.simulated_work.iter().map(|work| work.spent_seconds).sum();
    let mut most: Vec<_> = twin.simulated_work.iter().filter(|work| work.spent_seconds > 0.0).collect();
    most.sort_by(|one, other| other.spent_seconds.total_cmp(&one.spent_seconds));
    let share = |spent: f64| percent(spent / all);
    let parts = most.iter().take(MOST_WORK).map(|work| format!("{} {} %", work.item, share(work.spent_seconds)));
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() { String::new() } else { hanging("simulated work: ", &parts.join(", "), width) }
}

fn verdict(twin: &Twin) -> String {
    format!("{}: {}", twin.agreement.name(), twin.explanation)
}

/// One row for each point of a sweep: the swept keys, the event rate, real and simulated, the ratios of the median latency, also at
/// parts of the full rate, and whether they agree. The number of points that agree is below.
pub fn twin_table(twins: &[Twin], width: usize) -> String {
    let keys = swept_keys(twins);
    let columns = [
        Column::number("real event rate", ALWAYS),
        Column::number("\u{b1} %", 4),
        Column::number("simulated", ALWAYS),
        Column::number("\u{b1} %", 3),
        Column::number("ratio", ALWAYS),
        Column::number("latency ratio", 2),
    ];
    let loads = || twins.first().into_iter().flat_map(|twin| &twin.loads).map(part);
    let columns = columns.into_iter().chain(loads().map(|load| Column::number(format!("at {load}"), 1)));
    let columns = columns.chain([Column::word("")]);
    let mut table = Table::new(keys.iter().map(|key| Column::word(*key)).chain(columns));
    for twin in twins {
        let swept = keys.iter().map(|key| twin.sweep.get(*key).cloned().unwrap_or_default());
        let at_loads = loads().map(|load| {
            let there = twin.loads.iter().find(|there| part(there) == load);
            there.and_then(|there| latency(&there.figures)).map_or_else(String::new, ratio)
        });
        table.row(swept.chain(cells(twin)).chain(at_loads).chain([twin.worst().name().to_owned()]));
    }
    format!("{}\n\n{}\n", table.draw(width), last_line(twins))
}

/// The median latency.
fn latency(figures: &[TwinFigure]) -> Option<&TwinFigure> {
    figures.iter().find(|figure| figure.figure.starts_with("latency median"))
}

fn cells(twin: &Twin) -> [String; 6] {
    let of = |name: &str| twin.figures.iter().find(|figure| figure.figure.starts_with(name));
    let rate = |cell: &dyn Fn(&TwinFigure) -> String| of("event rate").map_or_else(String::new, cell);
    [
        rate(&|figure| rates::hertz(figure.median())),
        rate(&|figure| percent(figure.spread())),
        rate(&|figure| rates::hertz(figure.simulated)),
        percent(twin.band_percent / 100.0),
        rate(&ratio),
        latency(&twin.figures).map_or_else(String::new, ratio),
    ]
}

/// The worst verdict of all points, and the number of points that have it.
fn last_line(twins: &[Twin]) -> String {
    let worst = twins.iter().map(Twin::worst).max_by_key(|agreement| agreement.outcome());
    let Some(worst) = worst else { return "not comparable: the sweep has no points".into() };
    let count = twins.iter().filter(|twin| twin.worst() == worst).count();
    match worst {
        Agreement::Agree => format!("agree: all {count} points"),
        _ => format!("{}: {count} of {} points", worst.name(), twins.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_record::{Bounds, RecordKind, WorkRecord};

    #[test]
    fn a_comparison_shows_its_figures_and_its_verdict() {
        let figure = |name: &str, real: [f64; 3], simulated: f64, agrees: bool| TwinFigure {
            figure: name.into(),
            real: real.to_vec(),
            simulated,
            simulated_range: agrees.then_some(Bounds { low: simulated * 0.9, high: simulated * 1.1 }),
            agrees,
        };
        let work = |item: &str, spent_seconds| WorkRecord { item: item.into(), count: 1, spent_seconds };
        let twin = Twin {
            kind: RecordKind::Twin,
            experiment: "two-by-two".into(),
            sweep: std::collections::BTreeMap::new(),
            seed: 1,
            version: "0.1.0".into(),
            transport: "in-process".into(),
            turns: 3,
            band_percent: 10.0,
            fitted_reference_hz: 6.4e5,
            reference_hz: vec![6.3e5, 6.5e5, 6.4e5],
            figures: vec![
                figure("event rate, Hz", [1.6e6, 1.5e6, 1.7e6], 1.5e6, true),
                figure("latency p99, us", [100.0, 110.0, 105.0], 300.0, false),
            ],
            simulated_work: vec![work("poll", 0.1), work("builder.byte", 0.3)],
            agreement: Agreement::Agree,
            explanation: "the simulated event rate is -6 % off".into(),
            loads: vec![TwinLoad {
                load: 0.2,
                rate_hz: 3.2e5,
                reference_hz: vec![6.4e5],
                figures: vec![figure("latency median, us", [30.0, 31.0, 32.0], 20.0, true)],
                agreement: Agreement::Differ,
                explanation: "a reason".into(),
            }],
        };
        insta::assert_snapshot!(twin_summary(&twin, 80));
    }
}
