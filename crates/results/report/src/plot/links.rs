//! A chart of the links: the parts of the time in which each was used and blocked.

use super::style::{BLUE, GRID, INK, TEXT, TITLE, VERMILLION, printable, text, themed, width};
use evb_record::{LinkRecord, Record};
use plotters::{
    prelude::*,
    style::text_anchor::{HPos, VPos},
};
use std::cmp::Ordering;

/// Most links that are drawn.
const MOST_LINKS: usize = 64;
/// Height of a row, and of the bar in it.
const ROW: i32 = 18;
const BAR: i32 = 12;
/// Pixels for one per cent of the time.
const PER_CENT: i32 = 5;
/// Space above the bars.
const TOP: i32 = 78;
/// Longest name of a link, in characters.
const LONGEST: usize = 40;

type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// One bar for each link of a simulation; `None` if no link was used or blocked.
pub(super) fn draw(record: &Record) -> Option<String> {
    let links = &record.simulation.as_ref()?.network.links;
    let mut busiest: Vec<_> = links.iter().filter(|link| busy(link) > 0.0).collect();
    if busiest.is_empty() {
        return None;
    }
    busiest.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
    busiest.truncate(MOST_LINKS);
    let map = Map { record, left_out: links.len() - busiest.len(), groups: groups(busiest) };
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, map.size()).into_drawing_area();
        map.draw_on(&root).expect("a text takes all that is drawn on it");
    }
    Some(themed(svg))
}

struct Map<'a> {
    record: &'a Record,
    left_out: usize,
    groups: Vec<(&'static str, Vec<&'a LinkRecord>)>,
}

impl Map<'_> {
    fn size(&self) -> (u32, u32) {
        let (left, bottom) = (self.left(), self.bottom());
        ((left + 100 * PER_CENT + 40) as u32, (bottom + 66) as u32)
    }

    /// Horizontal position at which the bars begin.
    fn left(&self) -> i32 {
        let links = self.groups.iter().flat_map(|group| &group.1);
        let names = links.map(|link| width(&printable(&link.name, LONGEST), TEXT) as i32);
        names.max().unwrap_or(0).max(124) + 24
    }

    /// Vertical position at which the bars end.
    fn bottom(&self) -> i32 {
        let rows: usize = self.groups.iter().map(|group| group.1.len() + 1).sum();
        TOP + rows as i32 * ROW + 6
    }

    fn draw_on<'a>(&self, root: &Area<'a>) -> Result<(), Failure<'a>> {
        root.fill(&WHITE)?;
        self.draw_titles(root)?;
        self.draw_grid(root)?;
        let left = self.left();
        let name = text(TEXT, HPos::Right, VPos::Center);
        let group_name = text(TEXT, HPos::Left, VPos::Center).font.style(FontStyle::Italic).color(&INK);
        let group_name = group_name.pos(text(TEXT, HPos::Right, VPos::Center).pos);
        let mut y = TOP + ROW / 2;
        for (title, links) in &self.groups {
            root.draw_text(title, &group_name, (left - 8, y))?;
            y += ROW;
            for link in links {
                root.draw_text(&printable(&link.name, LONGEST), &name, (left - 8, y))?;
                self.draw_bar(root, link, y)?;
                y += ROW;
            }
        }
        Ok(())
    }

    fn draw_bar<'a>(&self, root: &Area<'a>, link: &LinkRecord, y: i32) -> Result<(), Failure<'a>> {
        let pixels = |part: f64| (part * f64::from(100 * PER_CENT)).round() as i32;
        let start = self.left();
        let middle = start + pixels(part(link.used));
        let end = start + pixels(busy(link));
        let bar =
            |from, to, colour: RGBColor| Rectangle::new([(from, y - BAR / 2), (to, y + BAR / 2)], colour.filled());
        root.draw(&bar(start, middle, BLUE))?;
        root.draw(&bar(middle, end, VERMILLION))
    }

    fn draw_titles<'a>(&self, root: &Area<'a>) -> Result<(), Failure<'a>> {
        let left = self.left();
        let plain = text(TEXT, HPos::Left, VPos::Center);
        let title = text(TITLE, HPos::Left, VPos::Center).font.style(FontStyle::Bold).color(&INK).pos(plain.pos);
        root.draw_text(&printable(&self.record.experiment, 70), &title, (16, 20))?;
        let point: Vec<_> = self.record.sweep.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        root.draw_text(&printable(&point.join(", "), 80), &plain, (16, 40))?;
        for (x, colour, label) in [(left, BLUE, "used"), (left + 80, VERMILLION, "blocked")] {
            root.draw(&Rectangle::new([(x, 56), (x + 14, 68)], colour.filled()))?;
            root.draw_text(label, &plain, (x + 20, 62))?;
        }
        Ok(())
    }

    fn draw_grid<'a>(&self, root: &Area<'a>) -> Result<(), Failure<'a>> {
        let (left, bottom) = (self.left(), self.bottom());
        let label = text(TEXT, HPos::Center, VPos::Center);
        for tick in (0..=100).step_by(20) {
            let x = left + tick * PER_CENT;
            root.draw(&PathElement::new([(x, TOP), (x, bottom)], GRID))?;
            root.draw_text(&tick.to_string(), &label, (x, bottom + 12))?;
        }
        root.draw_text("part of the time (%)", &label, (left + 50 * PER_CENT, bottom + 34))?;
        if self.left_out > 0 {
            let note = format!("{} links that did less are left out", self.left_out);
            root.draw_text(&note, &text(TEXT, HPos::Left, VPos::Center), (16, bottom + 54))?;
        }
        Ok(())
    }
}

/// The links from hosts, to hosts and between switches, each in the order of their names.
fn groups(links: Vec<&LinkRecord>) -> Vec<(&'static str, Vec<&LinkRecord>)> {
    let mut groups = vec![("from hosts", Vec::new()), ("to hosts", Vec::new()), ("between switches", Vec::new())];
    for link in links {
        let (from, to) = link.name.split_once('>').unwrap_or((&link.name, ""));
        let group = if is_host(from) {
            0
        } else if is_host(to) {
            1
        } else {
            2
        };
        groups[group].1.push(link);
    }
    groups.retain(|group| !group.1.is_empty());
    for group in &mut groups {
        group.1.sort_by(|a, b| natural(&a.name, &b.name));
    }
    groups
}

/// Returns true if this end of a link is a port of a host: `h3`, `h3.1`.
fn is_host(end: &str) -> bool {
    end.strip_prefix('h').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Natural order: `h2` before `h10`.
fn natural(a: &str, b: &str) -> Ordering {
    pieces(a).cmp(pieces(b)).then_with(|| a.cmp(b))
}

/// A name in pieces: runs of digits as a length and the digits, so that longer numbers come later, and single
/// characters.
fn pieces(name: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (piece, tail) = rest.split_at(digits.max(first.len_utf8()));
        rest = tail;
        Some(if digits > 0 {
            (piece.trim_start_matches('0').len() + 1, piece.trim_start_matches('0'))
        } else {
            (0, piece)
        })
    })
}

/// A part of the time, clamped to the range from 0 to 1.
fn part(value: f64) -> f64 {
    // A comparison with NaN is false, so that it does not count.
    if value > 0.0 { value.min(1.0) } else { 0.0 }
}

fn busy(link: &LinkRecord) -> f64 {
    part(part(link.used) + part(link.blocked))
}
