//! Published measurements against the predicted values: what is predicted exactly is on the diagonal.
//!
//! Values of different units share the axes, so each is divided by a value of its unit. A logarithmic axis turns a
//! relative error into a distance from the diagonal, which is the same for all of them.

use super::{
    axis::Axis,
    mark::{colour, outline, pen},
    style::{GREY, GRID, INK, TEXT, TITLE, text, themed, width},
};
use crate::paper::{Finding, Score, by_paper, findings, percent};
use evb_record::{PaperItem, PaperReport, Relation, Verdict};
use plotters::{
    coord::ranged1d::Ranged,
    prelude::*,
    style::text_anchor::{HPos, VPos},
};

/// Size of the square with its axes, and width of the legend.
const SQUARE: u32 = 620;
const LEGEND: u32 = 320;
/// Room above the square and above the legend.
const TOP: i32 = 44;
/// Left end of the horizontal axis.
const LEFT: i32 = 72;
/// The worst value of a paper has its name beside it if its error is larger than this, in per cent.
const NAMED: f64 = 25.0;
/// Height of a row of the legend, and start of its label.
const ROW: i32 = 19;
const LABEL: i32 = 44;
/// Widths of the bands in per cent, the wide one first, and how dark each is: they lie on each other.
const BANDS: [(f64, f64); 2] = [(20.0, 0.45), (10.0, 0.75)];
/// The explanation of the axes.
const NOTE: [&str; 4] = [
    "Both axes: a value in per cent is divided by",
    "100 %, every other one by the largest",
    "published one of its paper and unit.",
    "A line joins the values of one finding.",
];

type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Point = (f64, f64);
type Pixel = (i32, i32);

/// The points of a paper, as published and predicted value.
struct Series<'a> {
    paper: &'a str,
    score: Score<'a>,
    /// For each finding its points, and for each point if it is inside.
    findings: Vec<Vec<(Point, bool)>>,
    /// The name and the point of the worst value, if it is far off.
    label: Option<(String, Point)>,
}

impl<'a> Series<'a> {
    fn new(paper: &'a str, findings: &[Finding<'a>]) -> Self {
        let items: Vec<_> = findings.iter().flat_map(|finding| finding.items.iter().copied()).collect();
        let of_finding =
            |finding: &Finding<'_>| finding.items.iter().filter_map(|item| point(item, &items)).collect::<Vec<_>>();
        let score = Score::of(findings);
        let worst = score.worst.filter(|(error, _)| error.abs() > NAMED);
        let label =
            worst.and_then(|(error, item)| Some((format!("{} {error:+.0} %", item.item), point(item, &items)?.0)));
        Self { paper, findings: findings.iter().map(of_finding).collect(), label, score }
    }
}

/// The published and the predicted value of an item as parts of its scale, and if it is inside. A bound is no point, and
/// neither is a value that is not above zero.
fn point(item: &PaperItem, items: &[&PaperItem]) -> Option<(Point, bool)> {
    let published = item.published.filter(|published| item.relation == Relation::Equal && *published > 0.0)?;
    let ours = item.reproduced.filter(|ours| *ours > 0.0)?;
    let scale = if item.unit.starts_with('%') {
        100.0
    } else {
        items.iter().filter(|other| other.unit == item.unit).filter_map(|other| other.published).fold(0.0, f64::max)
    };
    Some(((published / scale, ours / scale), item.verdict == Verdict::Inside))
}

/// All predicted measurements against the published ones as SVG; `None` if there are none.
pub fn paper_parity(reports: &[PaperReport]) -> Option<String> {
    let all = findings(reports, false);
    let series: Vec<_> = by_paper(&all).into_iter().map(|(paper, findings)| Series::new(paper, findings)).collect();
    let points = series.iter().flat_map(|one| one.findings.iter().flatten());
    let values: Vec<_> = points.flat_map(|((published, ours), _)| [*published, *ours]).collect();
    values.first()?;
    let axis = Axis::close_around(values.into_iter());
    let rows = 2 * series.len() + 6 + NOTE.len();
    let height = SQUARE.max(TOP as u32 + (rows as u32 + 2) * ROW as u32);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (SQUARE + LEGEND, height)).into_drawing_area();
        draw(&root, &series, &axis).expect("a text takes all that is drawn on it");
    }
    Some(themed(svg))
}

fn draw<'a>(root: &Area<'a>, series: &[Series<'_>], axis: &Axis) -> Result<(), Failure<'a>> {
    root.fill(&WHITE)?;
    let title = text(TITLE, HPos::Left, VPos::Top).font.style(FontStyle::Bold);
    root.draw_text("Published measurements and their predictions", &title.color(&INK), (LEFT, 14))?;
    let (square, legend) = root.split_horizontally(SQUARE);
    let (square, _) = square.split_vertically(SQUARE);
    let mut chart = ChartBuilder::on(&square)
        .margin_top(TOP)
        .margin_right(24)
        .margin_bottom(10)
        .margin_left(8)
        .x_label_area_size(46)
        .y_label_area_size(64)
        .build_cartesian_2d(axis.clone(), axis.clone())?;
    let range = axis.range();
    let (low, high) = (range.start, range.end);
    chart.draw_series(BANDS.map(|(width, dark)| Polygon::new(band(width / 100.0, low, high), GRID.mix(dark))))?;
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(GREY)
        .label_style(text(TEXT, HPos::Center, VPos::Center))
        .axis_desc_style(text(TEXT, HPos::Center, VPos::Center))
        .x_desc("published")
        .y_desc("predicted by evb")
        .draw()?;
    chart.draw_series([PathElement::new([(low, low), (high, high)], GREY.stroke_width(1))])?;
    let at = |point: Point| chart.backend_coord(&point);
    for (place, findings) in series.iter().map(|one| &one.findings).enumerate() {
        let thin = colour(Some(place)).mix(0.6).stroke_width(1);
        for points in findings {
            root.draw(&PathElement::new(points.iter().map(|point| at(point.0)).collect::<Vec<_>>(), thin))?;
        }
    }
    for (place, findings) in series.iter().map(|one| &one.findings).enumerate() {
        for (point, is_inside) in findings.iter().flatten() {
            draw_mark(root, at(*point), Some(place), *is_inside)?;
        }
    }
    for (label, point) in series.iter().filter_map(|one| one.label.as_ref()) {
        draw_label(root, label, at(*point), point.1 > point.0)?;
    }
    draw_legend(&legend, series)
}

/// Draws a mark, which is full if the value is inside its tolerance; grey means all papers.
fn draw_mark<'a>(area: &Area<'a>, at: Pixel, place: Option<usize>, is_inside: bool) -> Result<(), Failure<'a>> {
    let outline: Vec<_> = outline(place, true).into_iter().map(|(x, y)| (x + at.0, y + at.1)).collect();
    let filling = if is_inside { colour(place) } else { WHITE };
    area.draw(&Polygon::new(outline.clone(), filling.filled()))?;
    area.draw(&PathElement::new(outline, pen(place)))
}

/// Writes the name of a value beside its mark, away from the diagonal. It moves up or down, and inside, if it is too long.
fn draw_label<'a>(area: &Area<'a>, label: &str, (x, y): Pixel, is_above: bool) -> Result<(), Failure<'a>> {
    let wide = width(label, TEXT) as i32;
    let (across, down, at) = match is_above {
        true if x - wide > LEFT => (HPos::Right, VPos::Center, (x - 12, y)),
        false if x + wide < SQUARE as i32 => (HPos::Left, VPos::Center, (x + 12, y)),
        true => (HPos::Left, VPos::Bottom, (LEFT + 6, y - 8)),
        false => (HPos::Right, VPos::Top, (SQUARE as i32 - 30, y + 8)),
    };
    area.draw_text(label, &text(TEXT, across, down).color(&GREY), at)
}

/// The corners of the part of the square between `1 - width` and `1 + width` times the diagonal.
fn band(width: f64, low: f64, high: f64) -> Vec<Point> {
    let (more, less) = (1.0 + width, 1.0 - width);
    vec![(low, low), (low, low * more), (high / more, high), (high, high), (high, high * less), (low / less, low)]
}

fn draw_legend<'a>(area: &Area<'a>, series: &[Series<'_>]) -> Result<(), Failure<'a>> {
    let style = text(TEXT, HPos::Left, VPos::Center);
    let mut y = TOP + ROW / 2;
    for (place, one) in series.iter().enumerate() {
        draw_mark(area, (16, y), Some(place), true)?;
        area.draw_text(one.paper, &style, (LABEL, y))?;
        let Score { findings, inside, median, .. } = one.score;
        let line = format!("{inside} of {findings} findings inside, median {}", percent(median));
        area.draw_text(&line, &style.color(&GREY), (LABEL, y + ROW - 3))?;
        y += 2 * ROW;
    }
    y += ROW / 2;
    for (is_inside, label) in [(true, "inside its tolerance"), (false, "outside")] {
        draw_mark(area, (16, y), None, is_inside)?;
        area.draw_text(label, &style, (LABEL, y))?;
        y += ROW;
    }
    for (index, (width, _)) in BANDS.iter().enumerate().rev() {
        for (_, dark) in &BANDS[..=index] {
            area.draw(&Rectangle::new([(2, y - 7), (30, y + 7)], GRID.mix(*dark).filled()))?;
        }
        area.draw_text(&format!("within {width} %"), &style, (LABEL, y))?;
        y += ROW;
    }
    y += ROW / 2;
    for line in NOTE {
        area.draw_text(line, &style.color(&GREY), (2, y))?;
        y += ROW - 2;
    }
    Ok(())
}
