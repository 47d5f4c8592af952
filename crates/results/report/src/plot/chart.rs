//! A chart of lines with its legend on the right, where it hides no point; or several low ones below each other.

use super::{
    axis::Axis,
    mark::{colour, dashes, outline, pen},
    style::{GREY, GRID, INK, TEXT, TITLE, printable, text, themed, width},
};
use plotters::{
    element::{ComposedElement, DashedPathElement},
    prelude::*,
    style::text_anchor::{HPos, VPos},
};

/// One line of a chart, or its colour in a legend.
pub(super) struct Line {
    /// Index in the palette; past its end the colours repeat with other marks.
    pub(super) colour: usize,
    pub(super) stroke: Stroke,
    /// The points in the order of the line through them.
    pub(super) points: Vec<(f64, f64)>,
    /// Error bars of points: the horizontal position, and both ends.
    pub(super) bars: Vec<(f64, f64, f64)>,
    /// An area around the line: the horizontal position, and both edges.
    pub(super) area: Vec<(f64, f64, f64)>,
}

impl Line {
    /// A line without bars and area.
    pub(super) const fn new(colour: usize, stroke: Stroke, points: Vec<(f64, f64)>) -> Self {
        Self { colour, stroke, points, bars: Vec::new(), area: Vec::new() }
    }
}

/// The style of a line and its marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stroke {
    /// A line with full marks.
    Solid,
    /// A dashed line with hollow marks.
    Dashed,
    /// A line without marks, with individual dashes.
    Plain,
    /// Hollow marks without a line.
    Points,
}

/// One row of a legend.
pub(super) enum Entry {
    /// The property in which the following lines differ.
    Heading(String),
    /// A kind of line; without an index in the palette it means lines of all colours.
    Line { label: String, colour: Option<usize>, stroke: Stroke },
    /// The meaning of the error bars.
    Bars(String),
    /// The meaning of the area around a line; without an index in the palette it means those of all colours.
    Area { label: String, colour: Option<usize> },
}

impl Entry {
    fn label(&self) -> String {
        let (Self::Heading(label) | Self::Line { label, .. } | Self::Bars(label) | Self::Area { label, .. }) = self;
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
/// Length of a line in the legend, and start of its label.
const SAMPLE: i32 = 36;
const LABEL: i32 = 44;
/// Room above a chart with a title, and above one without.
const TOP: i32 = 44;
const CLOSE: i32 = 10;
/// Room below a chart for the labels of its axis, and below one without a title of that axis, which has no labels either.
const LABELS: i32 = 56;
const NO_LABELS: i32 = 8;
/// Height of what is between.
const PANEL: i32 = 100;
/// Most rows of a legend; all lines are drawn.
const MOST_ENTRIES: usize = 40;
/// Longest text in a legend, in characters.
const LONGEST: usize = 40;

type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
/// The inside and the outline of a mark at a point.
type Mark<'a, At> = ComposedElement<At, SVGBackend<'a>, Polygon<Pixel>, PathElement<Pixel>>;
type Pixel = (i32, i32);

/// Charts below each other as SVG, without their legends; `None` if no line has two points. Those with the same horizontal axis
/// need its title once.
pub(super) fn stacked(charts: &[Chart<'_>]) -> Option<String> {
    if charts.iter().all(Chart::is_empty) {
        return None;
    }
    let height = charts.iter().map(Chart::low).sum::<i32>();
    let mut svg = String::new();
    {
        let mut rest = SVGBackend::with_string(&mut svg, (WIDTH, height as u32)).into_drawing_area();
        for chart in charts {
            let (area, below) = rest.split_vertically(chart.low());
            chart.draw_on(&area).expect("a text takes all that is drawn on it");
            rest = below;
        }
    }
    Some(themed(svg))
}

impl Chart<'_> {
    /// The chart as SVG; `None` if no line has two points.
    pub(super) fn draw(&self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let legend_width = self.legend_width();
        let height = HEIGHT.max(TOP as u32 + (self.legend.len().min(MOST_ENTRIES) as u32 + 2) * ROW as u32);
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, (WIDTH + legend_width, height)).into_drawing_area();
            self.draw_on(&root).expect("a text takes all that is drawn on it");
        }
        Some(themed(svg))
    }

    fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.points.len() < 2)
    }

    fn above(&self) -> i32 {
        if self.title.is_empty() { CLOSE } else { TOP }
    }

    fn below(&self) -> i32 {
        if self.x_title.is_empty() { NO_LABELS } else { LABELS }
    }

    /// Height of the chart as one of several.
    fn low(&self) -> i32 {
        self.above() + PANEL + self.below()
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
            .margin_top(self.above())
            .margin_right(24)
            .margin_bottom(self.below().min(10))
            .margin_left(8)
            .x_label_area_size((self.below() - 10).max(0))
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
        let areas = self.lines.iter().filter(|line| line.area.len() > 1);
        chart.draw_series(areas.map(|line| Polygon::new(edges(&line.area), shade(Some(line.colour)))))?;
        for line in &self.lines {
            let place = Some(line.colour);
            let points = || line.points.iter().copied();
            match (line.stroke, dashes(place)) {
                (Stroke::Dashed, _) => drop(chart.draw_series(DashedLineSeries::new(points(), 6, 4, pen(place)))?),
                (Stroke::Plain, Some((on, off))) => {
                    chart.draw_series(DashedLineSeries::new(points(), on, off, pen(place)))?;
                }
                (Stroke::Solid | Stroke::Plain, _) => drop(chart.draw_series(LineSeries::new(points(), pen(place)))?),
                (Stroke::Points, _) => {}
            }
            let thin = colour(place).stroke_width(1);
            let upright = line.bars.iter().map(|&(x, low, high)| PathElement::new([(x, low), (x, high)], thin));
            chart.draw_series(upright)?;
            let ends = line.bars.iter().flat_map(|&(x, low, high)| [(x, low), (x, high)]);
            chart.draw_series(ends.map(|end| EmptyElement::at(end) + PathElement::new([(-4, 0), (4, 0)], thin)))?;
            if line.stroke != Stroke::Plain {
                chart.draw_series(points().map(|point| mark(point, place, line.stroke)))?;
            }
        }
        self.draw_legend(&right)
    }

    fn draw_legend<'a>(&self, area: &Area<'a>) -> Result<(), Failure<'a>> {
        let style = text(TEXT, HPos::Left, VPos::Center);
        let mut y = TOP + ROW / 2;
        for entry in self.legend.iter().take(MOST_ENTRIES) {
            let (ends, middle) = ([(0, y), (SAMPLE, y)], (SAMPLE / 2, y));
            match *entry {
                Entry::Heading(_) => {
                    area.draw_text(&entry.label(), &style, (0, y))?;
                    y += ROW;
                    continue;
                }
                Entry::Bars(_) => draw_sample_bar(area, middle)?,
                Entry::Area { colour, .. } => {
                    area.draw(&Rectangle::new([(0, y - 6), (SAMPLE, y + 6)], shade(colour)))?;
                }
                Entry::Line { colour, stroke, .. } => {
                    match (stroke, dashes(colour)) {
                        (Stroke::Dashed, _) => area.draw(&DashedPathElement::new(ends, 6, 4, pen(colour)))?,
                        (Stroke::Plain, Some((on, off))) => {
                            area.draw(&DashedPathElement::new(ends, on, off, pen(colour)))?;
                        }
                        (Stroke::Solid | Stroke::Plain, _) => area.draw(&PathElement::new(ends, pen(colour)))?,
                        (Stroke::Points, _) => {}
                    }
                    if stroke != Stroke::Plain {
                        area.draw(&mark(middle, colour, stroke))?;
                    }
                }
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

/// The outline of an area: along its upper edge, and back along the lower one.
fn edges(area: &[(f64, f64, f64)]) -> Vec<(f64, f64)> {
    let upper = area.iter().map(|&(x, _, high)| (x, high));
    upper.chain(area.iter().rev().map(|&(x, low, _)| (x, low))).collect()
}

/// The filling of an area, through which the grid is seen.
fn shade(place: Option<usize>) -> ShapeStyle {
    colour(place).mix(0.2).filled()
}

/// Draws an error bar for the legend.
fn draw_sample_bar<'a>(area: &Area<'a>, (x, y): (i32, i32)) -> Result<(), Failure<'a>> {
    for ends in [[(x, y - 7), (x, y + 7)], [(x - 4, y - 7), (x + 4, y - 7)], [(x - 4, y + 7), (x + 4, y + 7)]] {
        area.draw(&PathElement::new(ends, GREY.stroke_width(1)))?;
    }
    Ok(())
}

/// A mark, full or hollow; points under a hollow one without a line stay visible.
fn mark<'a, At: Clone + 'a>(at: At, place: Option<usize>, stroke: Stroke) -> Mark<'a, At> {
    let corners = outline(place, stroke != Stroke::Points);
    let inside = match stroke {
        Stroke::Dashed => WHITE.filled(),
        Stroke::Points => TRANSPARENT.filled(),
        Stroke::Solid | Stroke::Plain => colour(place).filled(),
    };
    EmptyElement::at(at) + Polygon::new(corners.clone(), inside) + PathElement::new(corners, pen(place))
}
