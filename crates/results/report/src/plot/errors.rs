//! The errors of all predicted values of papers, in one picture: a row of marks for each paper, theory below measurements.

use super::style::{BLUE, GREY, GRID, INK, TEXT, TITLE, VERMILLION, text, themed};
use evb_record::{Class, PaperItem, Verdict};
use plotters::{
    prelude::*,
    style::text_anchor::{HPos, VPos},
};

const WIDTH: u32 = 860;
/// Room above the rows, below them, and on their left.
const TOP: i32 = 56;
const BELOW: i32 = 56;
const LEFT: i32 = 270;
const RIGHT: i32 = 24;
/// Height of a row, and distance of marks that would hide each other.
const ROW: i32 = 84;
const STEP: i32 = 9;
/// Distance of the lines of the grid, in per cent.
const GRID_STEP: f64 = 10.0;
/// The rule for tolerances, in per cent.
const RULE: f64 = 5.0;

type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// The predicted values of one paper, either measurements or theory: the error of each in per cent, and if it is inside.
struct Row<'a> {
    paper: &'a str,
    theory: bool,
    errors: Vec<(f64, bool)>,
}

/// The distribution of the errors of all predicted values as SVG; `None` if there are none.
pub fn paper_errors(items: &[PaperItem]) -> Option<String> {
    let rows = rows(items);
    let errors = rows.iter().flat_map(|row| &row.errors).map(|error| error.0);
    let least = errors.clone().fold(-GRID_STEP, f64::min);
    let most = errors.clone().fold(GRID_STEP, f64::max);
    errors.clone().next()?;
    let span = ((least / GRID_STEP).floor() * GRID_STEP, (most / GRID_STEP).ceil() * GRID_STEP);
    let height = (TOP + ROW * rows.len() as i32 + BELOW) as u32;
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        draw(&root, &rows, span).expect("a text takes all that is drawn on it");
    }
    Some(themed(svg))
}

/// The predicted values of each paper, by their error; measurements first.
fn rows(items: &[PaperItem]) -> Vec<Row<'_>> {
    let mut rows = Vec::<Row<'_>>::new();
    let [measurements, theory] = [false, true].map(|theory| items.iter().filter(move |item| item.theory == theory));
    for item in measurements.chain(theory) {
        if rows.last().is_none_or(|row| (row.paper, row.theory) != (&item.paper, item.theory)) {
            rows.push(Row { paper: &item.paper, theory: item.theory, errors: Vec::new() });
        }
        let error = item.error_percent().filter(|_| item.class == Class::Predicted);
        if let (Some(row), Some(error)) = (rows.last_mut(), error) {
            row.errors.push((error, item.verdict == Verdict::Inside));
        }
    }
    rows.iter_mut().for_each(|row| row.errors.sort_by(|one, other| one.0.total_cmp(&other.0)));
    rows
}

/// The horizontal place of an error.
fn across(error: f64, span: (f64, f64)) -> i32 {
    let width = f64::from(WIDTH as i32 - LEFT - RIGHT);
    LEFT + ((error - span.0) / (span.1 - span.0) * width).round() as i32
}

fn draw<'a>(area: &Area<'a>, rows: &[Row<'_>], span: (f64, f64)) -> Result<(), Failure<'a>> {
    area.fill(&WHITE)?;
    let title = text(TITLE, HPos::Left, VPos::Top).font.style(FontStyle::Bold);
    area.draw_text("Errors of all predicted values", &title.color(&INK), (16, 14))?;
    let bottom = TOP + ROW * rows.len() as i32;
    grid(area, span, bottom)?;
    for (row, middle) in rows.iter().zip((0..).map(|index| TOP + ROW * index + ROW / 2)) {
        let inside = row.errors.iter().filter(|error| error.1).count();
        let kind = if row.theory { "theory: " } else { "" };
        let count = format!("{kind}{inside} inside, {} outside", row.errors.len() - inside);
        let style = |size| text(size, HPos::Left, VPos::Center);
        area.draw_text(row.paper, &style(TEXT), (16, middle - 9))?;
        area.draw_text(&count, &style(TEXT).color(&GREY), (16, middle + 9))?;
        marks(area, row, span, middle)?;
    }
    let centre = text(TEXT, HPos::Center, VPos::Top);
    let legend = "ours less published, in per cent of published; full: inside, hollow: outside; dashed: 5 %";
    area.draw_text(legend, &centre, (WIDTH as i32 / 2, bottom + 30))
}

fn grid<'a>(area: &Area<'a>, span: (f64, f64), bottom: i32) -> Result<(), Failure<'a>> {
    let count = ((span.1 - span.0) / GRID_STEP).round() as i32;
    for error in (0..=count).map(|index| span.0 + f64::from(index) * GRID_STEP) {
        let x = across(error, span);
        let pen = if error == 0.0 { GREY.stroke_width(1) } else { GRID.stroke_width(1) };
        area.draw(&PathElement::new([(x, TOP), (x, bottom)], pen))?;
        let label = if error == 0.0 { "0".to_owned() } else { format!("{error:+.0}") };
        area.draw_text(&label, &text(TEXT, HPos::Center, VPos::Top), (x, bottom + 8))?;
    }
    for error in [-RULE, RULE] {
        let ends = [(across(error, span), TOP), (across(error, span), bottom)];
        area.draw(&plotters::element::DashedPathElement::new(ends, 4, 4, GREY.stroke_width(1)))?;
    }
    Ok(())
}

/// The marks of a row. Those that would hide each other are above and below the middle in turn.
fn marks<'a>(area: &Area<'a>, row: &Row<'_>, span: (f64, f64), middle: i32) -> Result<(), Failure<'a>> {
    let mut placed = Vec::<(i32, i32)>::new();
    for (error, is_inside) in &row.errors {
        let x = across(*error, span);
        let heights = (0..9).map(|step: i32| middle + STEP * ((step + 1) / 2) * if step % 2 == 0 { 1 } else { -1 });
        let is_free = |y: &i32| placed.iter().all(|at| (at.0 - x).abs() >= STEP || at.1 != *y);
        let y = heights.into_iter().find(is_free).unwrap_or(middle);
        placed.push((x, y));
        let style = if *is_inside { BLUE.filled() } else { VERMILLION.stroke_width(2) };
        area.draw(&Circle::new((x, y), 4, style))?;
    }
    Ok(())
}
