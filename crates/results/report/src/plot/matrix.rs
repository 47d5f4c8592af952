//! A chart of all pairs of nodes: how long messages took, and how much went through.

use super::{
    Plot,
    style::{GREY, INK, TEXT, TITLE, VERMILLION, printable, text, themed, width},
};
use crate::text::{metric, nanos};
use evb_record::{LinkVerdict, PairOfNodes, Qualification};
use plotters::{
    prelude::*,
    style::text_anchor::{HPos, VPos},
};

/// Widest chart without its margins, in pixels; most nodes whose values and names are written.
const WIDEST: i32 = 720;
const MOST_WRITTEN: usize = 12;
const MOST_NAMED: usize = 48;
/// Largest and smallest cell, in pixels.
const CELL: std::ops::RangeInclusive<i32> = 2..=60;
/// Space above the cells, and around the chart.
const TOP: i32 = 84;
const MARGIN: i32 = 16;
/// Longest name of a node, in characters.
const LONGEST: usize = 16;
/// Factor from the usual value at which a cell has the darkest colour.
const DARKEST: f64 = 4.0;

const LEGEND: &str = "bad: slower each time it was measured, also alone";

type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// The plots of a test of a fabric: round trips, and throughput from each node to each other.
pub fn qualification_plots(record: &Qualification) -> Vec<Plot> {
    let latency = Matrix {
        record,
        title: format!("half of the median round trip, {} B", record.size_bytes),
        usual: record.usual.half_round_trip_ns,
        value: |link, _| link.half_round_trip_ns.p50,
        slower: |value, usual| value / usual,
        label: nanos,
    };
    let throughput = Matrix {
        record,
        title: format!("bytes per second, {} B, from the node on the left to the one above", record.bulk_bytes),
        usual: record.usual.bytes_per_s,
        value: |link, direction| link.bytes_per_s[direction],
        slower: |value, usual| usual / value,
        label: |value| metric(value),
    };
    vec![
        Plot { name: "all-pairs-latency".into(), svg: latency.draw() },
        Plot { name: "all-pairs-throughput".into(), svg: throughput.draw() },
    ]
}

struct Matrix<'a> {
    record: &'a Qualification,
    title: String,
    usual: f64,
    /// The value of a link, in the direction from its first node (0) or from its second; 0 if nothing came through.
    value: fn(&PairOfNodes, usize) -> f64,
    /// The factor by which a value is slower than the usual one.
    slower: fn(f64, f64) -> f64,
    label: fn(f64) -> String,
}

impl Matrix<'_> {
    fn draw(&self) -> String {
        let mut svg = String::new();
        {
            let side = self.cell() * self.nodes() as i32;
            let texts = width(&self.title, TITLE).max(20 + width(LEGEND, TEXT)) as i32 + 2 * MARGIN;
            let size = ((self.left() + side + MARGIN).max(texts), TOP + side + 56);
            let root = SVGBackend::with_string(&mut svg, (size.0 as u32, size.1 as u32)).into_drawing_area();
            self.draw_on(&root).expect("a text takes all that is drawn on it");
        }
        themed(svg)
    }

    fn nodes(&self) -> usize {
        usize::from(self.record.nodes)
    }

    fn cell(&self) -> i32 {
        (WIDEST / self.nodes().max(1) as i32).clamp(*CELL.start(), *CELL.end())
    }

    fn name(&self, node: usize) -> String {
        let host = self.record.hosts.get(node);
        printable(&host.cloned().unwrap_or_else(|| format!("n{node}")), LONGEST)
    }

    /// Horizontal position at which the cells begin.
    fn left(&self) -> i32 {
        let named = if self.nodes() <= MOST_NAMED { self.nodes() } else { 0 };
        MARGIN + (0..named).map(|node| width(&self.name(node), TEXT) as i32).max().unwrap_or(0) + 8
    }

    fn draw_on<'a>(&self, root: &Area<'a>) -> Result<(), Failure<'a>> {
        root.fill(&WHITE)?;
        let plain = text(TEXT, HPos::Left, VPos::Center);
        let title = text(TITLE, HPos::Left, VPos::Center).font.style(FontStyle::Bold).color(&INK).pos(plain.pos);
        root.draw_text(&self.title, &title, (MARGIN, 20))?;
        let usual = format!("{}: median {}", self.record.transport, (self.label)(self.usual));
        root.draw_text(&usual, &plain, (MARGIN, 40))?;
        self.draw_names(root)?;
        for link in &self.record.links {
            let [first, second] = link.nodes.map(usize::from);
            self.draw_cell(root, link, (first, second), 0)?;
            self.draw_cell(root, link, (second, first), 1)?;
        }
        let bottom = TOP + self.cell() * self.nodes() as i32 + 24;
        root.draw(&Rectangle::new([(MARGIN, bottom - 6), (MARGIN + 12, bottom + 6)], VERMILLION.stroke_width(2)))?;
        root.draw_text(LEGEND, &plain, (MARGIN + 20, bottom))
    }

    fn draw_names<'a>(&self, root: &Area<'a>) -> Result<(), Failure<'a>> {
        if self.nodes() > MOST_NAMED {
            return Ok(());
        }
        let (cell, left) = (self.cell(), self.left());
        let beside = text(TEXT, HPos::Right, VPos::Center);
        for node in 0..self.nodes() {
            let middle = node as i32 * cell + cell / 2;
            root.draw_text(&self.name(node), &beside, (left - 8, TOP + middle))?;
            let above = text(TEXT, HPos::Left, VPos::Center).transform(FontTransform::Rotate270);
            if width(&self.name(node), TEXT) as i32 <= cell {
                let centred = text(TEXT, HPos::Center, VPos::Center);
                root.draw_text(&self.name(node), &centred, (left + middle, TOP - 12))?;
            } else {
                root.draw_text(&format!("n{node}"), &above, (left + middle, TOP - 4))?;
            }
        }
        Ok(())
    }

    fn draw_cell<'a>(
        &self,
        root: &Area<'a>,
        link: &PairOfNodes,
        (row, column): (usize, usize),
        direction: usize,
    ) -> Result<(), Failure<'a>> {
        let cell = self.cell();
        let corner = (self.left() + column as i32 * cell, TOP + row as i32 * cell);
        let gap = i32::from(cell > 4);
        let far = (corner.0 + cell - gap, corner.1 + cell - gap);
        let value = (self.value)(link, direction);
        let shade = shade(if value > 0.0 { (self.slower)(value, self.usual) } else { DARKEST });
        root.draw(&Rectangle::new([corner, far], shade.filled()))?;
        if link.verdict == LinkVerdict::Bad {
            root.draw(&Rectangle::new([corner, far], VERMILLION.stroke_width(2)))?;
        }
        if self.nodes() <= MOST_WRITTEN {
            let middle = (corner.0 + cell / 2, corner.1 + cell / 2);
            let small = text(10.0, HPos::Center, VPos::Center);
            let label = if value > 0.0 { (self.label)(value) } else { "none".into() };
            root.draw_text(&label, &small, middle)?;
        }
        Ok(())
    }
}

/// A grey that is darker the slower a link is, and light enough to be written on.
fn shade(slower: f64) -> RGBColor {
    let part = (slower.max(1.0).ln() / DARKEST.ln()).clamp(0.0, 1.0);
    let mix = |light: u8, dark: u8| (f64::from(light) + part * (f64::from(dark) - f64::from(light))) as u8;
    RGBColor(mix(0xF2, GREY.0 + 0x30), mix(0xF2, GREY.1 + 0x30), mix(0xF2, GREY.2 + 0x30))
}
