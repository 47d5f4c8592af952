//! Runs beside their simulation as CSV.

use super::{line, number, swept_cells};
use crate::sweep::swept_keys;
use evb_record::{Twin, TwinFigure};

/// One line for each point: the swept keys, the experiment, then the numbers of each figure under its name, such as
/// `event_rate_hz.real`, and the verdict. The figures are those of the first point. Absent values are empty.
pub fn twin_csv(twins: &[Twin]) -> String {
    let swept = swept_keys(twins);
    let figures: Vec<_> = twins.first().into_iter().flat_map(|twin| &twin.figures).map(|one| &one.figure).collect();
    let names = figures.iter().flat_map(|figure| {
        let name = column(figure);
        FIELDS.map(|(field, _)| format!("{name}.{field}"))
    });
    let names: Vec<_> = names.collect();
    let mut text = String::new();
    let first = swept.iter().copied().chain(["experiment", "seed", "version", "transport", "turns", "band_percent"]);
    line(&mut text, first.chain(names.iter().map(String::as_str)).chain(["agreement"]));
    for twin in twins {
        let mut cells = swept_cells(twin, &swept);
        cells.extend([twin.experiment.clone(), twin.seed.to_string(), twin.version.clone(), twin.transport.clone()]);
        cells.extend([twin.turns.to_string(), number(twin.band_percent)]);
        for name in &figures {
            let figure = twin.figures.iter().find(|figure| figure.figure == **name);
            cells.extend(FIELDS.map(|(_, value)| figure.and_then(value).map_or_else(String::new, number)));
        }
        cells.push(twin.agreement.name().replace(' ', "_"));
        line(&mut text, cells.iter().map(String::as_str));
    }
    text
}

type Field = (&'static str, fn(&TwinFigure) -> Option<f64>);

const FIELDS: [Field; 7] = [
    ("real", |figure| Some(figure.median())),
    ("least", |figure| Some(figure.ends().0)),
    ("most", |figure| Some(figure.ends().1)),
    ("simulated", |figure| Some(figure.simulated)),
    ("low", |figure| figure.simulated_range.map(|range| range.low)),
    ("high", |figure| figure.simulated_range.map(|range| range.high)),
    ("ratio", TwinFigure::ratio),
];

/// The name of a figure as that of a column: `event rate, Hz` is `event_rate_hz`.
fn column(figure: &str) -> String {
    let words = figure.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}
