//! How the values of a paper hang on the parameters of its experiments.

use super::{class, number};
use crate::{
    table::{Column, Table},
    text::hanging,
};
use evb_record::{Basis, Class, PaperItem, PaperReport, Sensitivity};

/// What moves with each parameter of a paper, as text.
pub fn sensitivity_summary(report: &PaperReport, sensitivities: &[Sensitivity], width: usize) -> String {
    let title = format!("{} ({}): {}", report.title, report.year, report.slug);
    let mut table = Table::new([
        Column::sentence("parameter"),
        Column::word("basis"),
        Column::sentence("values"),
        Column::sentence("values of the paper that hang on it"),
    ]);
    for one in sensitivities {
        let hanging = hanging_items(&report.items, one)
            .map(|(item, values)| format!("{} ({}): {}", item.item, class(item.class), shown_values(item, values)));
        let hanging: Vec<_> = hanging.collect();
        let hanging = if hanging.is_empty() { "none".into() } else { hanging.join("; ") };
        table.row([one.parameter.clone(), basis(one.basis).into(), one.values.join(" | "), hanging]);
    }
    let bands = report.items.iter().filter(|item| item.class == Class::Predicted);
    let mut holding = Table::new([
        Column::sentence("predicted value"),
        Column::number("published", u8::MAX),
        Column::number("ours", u8::MAX),
        Column::number("band", u8::MAX),
    ]);
    for item in bands {
        let text = |value: Option<f64>| value.map_or_else(String::new, number);
        holding.row([item.item.clone(), text(item.published), text(item.reproduced), band_text(item, sensitivities)]);
    }
    let note = "A value hangs on a parameter if it is inside at one of its values and outside at another.";
    let tables = format!("{}\n\n{}\n", table.draw(width), holding.draw(width));
    format!("{}\n{}\n{tables}", hanging("", &title, width), hanging("", note, width))
}

/// The judged items that are inside at some values of a parameter and outside at others.
pub(super) fn hanging_items<'a>(
    items: &'a [PaperItem],
    sensitivity: &'a Sensitivity,
) -> impl Iterator<Item = (&'a PaperItem, &'a [Option<f64>])> {
    let moving = items.iter().filter(|item| item.tolerance.is_some());
    moving.filter_map(|item| {
        let values = sensitivity.items.get(&item.item)?.as_slice();
        let inside = values.iter().filter(|value| value.is_some_and(|value| item.is_inside(value))).count();
        (0 < inside && inside < values.len()).then_some((item, values))
    })
}

/// Some values, with a mark at those that are outside.
pub(super) fn shown_values(item: &PaperItem, values: &[Option<f64>]) -> String {
    let one = |value: &Option<f64>| match value {
        Some(value) if item.is_inside(*value) => number(*value),
        Some(value) => format!("{}!", number(*value)),
        None => "no number!".into(),
    };
    values.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Least and most of an item over all values of all parameters.
pub(super) fn band(item: &PaperItem, sensitivities: &[Sensitivity]) -> Option<(f64, f64)> {
    let moved = sensitivities.iter().filter_map(|one| one.items.get(&item.item)).flatten().flatten().copied();
    let span = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
    Some(moved.fold((item.reproduced?, item.reproduced?), span))
}

pub(super) fn band_text(item: &PaperItem, sensitivities: &[Sensitivity]) -> String {
    match band(item, sensitivities) {
        Some((low, high)) if low < high => format!("{} to {}", number(low), number(high)),
        Some(_) => "stays".into(),
        None => "no number".into(),
    }
}

pub(super) fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Stated => "stated",
        Basis::Calibrated => "calibrated",
        Basis::Assumed => "assumed",
    }
}
