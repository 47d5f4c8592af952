//! A chart of lines with its legend on the right, where it hides no point.

use super::{
    axis::Axis,
    style::{GREY, GRID, INK, PALETTE, TEXT, TITLE, printable, text, width},
};
use plotters::{
    element::DashedPathElement,
    prelude::*,
    style::text_anchor::{HPos, VPos},
};

/// One line of a chart, or its place in the palette in a legend.
pub(super) struct Line {
    /// Place in the palette; past its end the colours come again with other marks.
    pub(super) colour: usize,
    pub(super) stroke: Stroke,
    /// The points in the order in which they are joined.
    pub(super) points: Vec<(f64, f64)>,
}

/// How the points of a line are joined and marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stroke {
    /// A line with full marks.
    Solid,
    /// A dashed line with hollow marks.
    Dashed,
    /// A line without marks.
    Plain,
    /// Crosses that nothing joins.
    Crosses,
}

/// One row of a legend.
pub(super) enum Entry {
    /// What the lines below it differ in.
    Heading(String),
    /// A kind of line; without a place in the palette it stands for lines of all colours.
    Line { label: String, colour: Option<usize>, stroke: Stroke },
}

impl Entry {
    fn label(&self) -> String {
        let (Self::Heading(label) | Self::Line { label, .. }) = self;
        printable(label, LONGEST)
    }
}

/// A chart.
pub(super) struct Chart<'a> {
    pub(super) title: &'a str,
    pub(super) x: Axis,
    pub(super) x_title: &'a str,
    pub(super) y: Axis,
    pub(super) y_title: &'a str,
    pub(super) lines: Vec<Line>,
    pub(super) legend: Vec<Entry>,
}

const WIDTH: u32 = 720;
const HEIGHT: u32 = 460;
const ROW: i32 = 20;
/// Length of a line in the legend, and where its label begins.
const SAMPLE: i32 = 36;
const LABEL: i32 = 44;
/// Room above the legend.
const TOP: i32 = 44;
/// Most rows of a legend; all lines are drawn.
const MOST_ENTRIES: usize = 40;
/// Longest text in a legend, in characters.
const LONGEST: usize = 40;

type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

impl Chart<'_> {
    /// The chart as SVG, or nothing when no line has two points.
    pub(super) fn draw(&self) -> Option<String> {
        if self.lines.iter().all(|line| line.points.len() < 2) {
            return None;
        }
        let legend_width = self.legend_width();
        let height = HEIGHT.max(TOP as u32 + (self.legend.len().min(MOST_ENTRIES) as u32 + 2) * ROW as u32);
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, (WIDTH + legend_width, height)).into_drawing_area();
            self.draw_on(&root).expect("a text takes all that is drawn on it");
        }
        Some(svg)
    }

    fn legend_width(&self) -> u32 {
        let wide = self.legend.iter().map(|entry| width(&entry.label(), TEXT) + LABEL as u32 + 12);
        let widest = wide.max().unwrap_or(0);
        if self.legend.len() > MOST_ENTRIES { widest.max(width("and 10000 more", TEXT)) } else { widest }
    }

    fn draw_on<'a>(&self, root: &Area<'a>) -> Result<(), Failure<'a>> {
        root.fill(&WHITE)?;
        let title = text(TITLE, HPos::Left, VPos::Top).font.style(FontStyle::Bold);
        root.draw_text(&printable(self.title, 68), &title.color(&INK), (72, 14))?;
        let (left, right) = root.split_horizontally(WIDTH);
        let mut chart = ChartBuilder::on(&left)
            .margin_top(TOP)
            .margin_right(24)
            .margin_bottom(10)
            .margin_left(8)
            .x_label_area_size(46)
            .y_label_area_size(64)
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        chart
            .configure_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(GREY)
            .label_style(text(TEXT, HPos::Center, VPos::Center))
            .axis_desc_style(text(TEXT, HPos::Center, VPos::Center))
            .x_desc(printable(self.x_title, 80))
            .y_desc(self.y_title)
            .draw()?;
        for line in &self.lines {
            let style = pen(Some(line.colour));
            let points = line.points.iter().copied();
            match line.stroke {
                Stroke::Solid => drop(chart.draw_series(LineSeries::new(points.clone(), style))?),
                Stroke::Dashed => drop(chart.draw_series(DashedLineSeries::new(points.clone(), 6, 4, style))?),
                Stroke::Plain => {
                    chart.draw_series(LineSeries::new(points, style))?;
                    continue;
                }
                Stroke::Crosses => {
                    chart.draw_series(points.map(|point| cross(point, Some(line.colour))))?;
                    continue;
                }
            }
            chart.draw_series(points.flat_map(|point| mark(point, Some(line.colour), line.stroke)))?;
        }
        self.draw_legend(&right)
    }

    fn draw_legend<'a>(&self, area: &Area<'a>) -> Result<(), Failure<'a>> {
        let style = text(TEXT, HPos::Left, VPos::Center);
        let mut y = TOP + ROW / 2;
        for entry in self.legend.iter().take(MOST_ENTRIES) {
            let Entry::Line { colour, stroke, .. } = *entry else {
                area.draw_text(&entry.label(), &style, (0, y))?;
                y += ROW;
                continue;
            };
            let ends = [(0, y), (SAMPLE, y)];
            let middle = (SAMPLE / 2, y);
            match stroke {
                Stroke::Solid | Stroke::Plain => area.draw(&PathElement::new(ends, pen(colour)))?,
                Stroke::Dashed => area.draw(&DashedPathElement::new(ends, 6, 4, pen(colour)))?,
                Stroke::Crosses => area.draw(&cross(middle, colour))?,
            }
            if matches!(stroke, Stroke::Solid | Stroke::Dashed) {
                mark(middle, colour, stroke).iter().try_for_each(|circle| area.draw(circle))?;
            }
            area.draw_text(&entry.label(), &style, (LABEL, y))?;
            y += ROW;
        }
        if self.legend.len() > MOST_ENTRIES {
            area.draw_text(&format!("and {} more", self.legend.len() - MOST_ENTRIES), &style, (0, y))?;
        }
        Ok(())
    }
}

fn colour(place: Option<usize>) -> RGBColor {
    place.map_or(GREY, |place| PALETTE[place % PALETTE.len()])
}

fn pen(place: Option<usize>) -> ShapeStyle {
    colour(place).stroke_width(2)
}

/// A point of a line; smaller when the palette begins again.
fn mark<At: Clone>(at: At, place: Option<usize>, stroke: Stroke) -> [Circle<At, i32>; 2] {
    let inside = if stroke == Stroke::Dashed { WHITE } else { colour(place) };
    let radius = if place.is_some_and(|place| place / PALETTE.len() % 2 == 1) { 2 } else { 4 };
    [Circle::new(at.clone(), radius, inside.filled()), Circle::new(at, radius, pen(place))]
}

/// A point that no line joins.
fn cross<At>(at: At, place: Option<usize>) -> Cross<At, i32> {
    Cross::new(at, 5, pen(place))
}
