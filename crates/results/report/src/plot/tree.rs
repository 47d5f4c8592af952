//! A diagram of a tree of switches.

use super::style::{BLUE, GREY, INK, TEXT, TITLE, printable, text, themed};
use crate::text::metric;
use evb_record::PlanCandidate;
use plotters::{
    prelude::*,
    style::text_anchor::{HPos, VPos},
};

const WIDTH: i32 = 900;
/// The part of the width that has switches; their description is on the right.
const TREE: i32 = 560;
const TOP: i32 = 70;
/// Height of a level.
const LEVEL: i32 = 110;
/// A switch.
const BOX: (i32, i32) = (34, 22);
/// Most switches of a level that are drawn.
const MOST: u32 = 12;

type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// The levels of a network, the highest on top, with the hosts below. Of many switches the first ones are drawn.
pub(crate) fn tree_diagram(title: &str, candidate: &PlanCandidate, hosts: u16) -> String {
    let diagram = Diagram { title, candidate, hosts };
    let mut svg = String::new();
    {
        let height = TOP + (candidate.levels.len() as i32 + 1) * LEVEL;
        let root = SVGBackend::with_string(&mut svg, (WIDTH as u32, height as u32)).into_drawing_area();
        diagram.draw_on(&root).expect("a text takes all that is drawn on it");
    }
    themed(svg)
}

struct Diagram<'a> {
    title: &'a str,
    candidate: &'a PlanCandidate,
    hosts: u16,
}

impl Diagram<'_> {
    fn draw_on<'a>(&self, root: &Area<'a>) -> Result<(), Failure<'a>> {
        root.fill(&WHITE)?;
        let plain = text(TEXT, HPos::Left, VPos::Center);
        let title = text(TITLE, HPos::Left, VPos::Center).font.style(FontStyle::Bold).color(&INK).pos(plain.pos);
        root.draw_text(&printable(self.title, 70), &title, (16, 20))?;
        root.draw_text(&printable(&self.candidate.network, 110), &plain, (16, 42))?;
        let levels = &self.candidate.levels;
        for index in 0..levels.len() {
            self.draw_cables(root, index)?;
        }
        for (index, level) in levels.iter().enumerate() {
            self.draw_row(root, self.height(index), level.switches, BLUE)?;
            let up = match level.up {
                0 => String::new(),
                count => format!("{count} x {} up", rate(level.up_bits_per_s)),
            };
            let hosts = if index == 0 { format!(", {}", rate(self.candidate.host_bits_per_s)) } else { String::new() };
            let lines = [format!("{} x {}", level.switches, level.switch), up, format!("{} down{hosts}", level.down)];
            let lines = lines.into_iter().filter(|line| !line.is_empty());
            for (n, line) in (0..).zip(lines) {
                root.draw_text(&line, &plain, (TREE + 20, self.height(index) - 16 + 17 * n))?;
            }
        }
        let below = self.height(0) + LEVEL;
        self.draw_row(root, below, self.hosts.into(), GREY)?;
        root.draw_text(&format!("{} hosts", self.hosts), &plain, (TREE + 20, below))
    }

    /// The middle of a level.
    fn height(&self, level: usize) -> i32 {
        TOP + LEVEL / 2 + (self.candidate.levels.len() - 1 - level) as i32 * LEVEL
    }

    /// Switches as boxes, and dots for those that are not drawn.
    fn draw_row<'a>(&self, root: &Area<'a>, y: i32, count: u32, colour: RGBColor) -> Result<(), Failure<'a>> {
        for index in 0..count.min(MOST) {
            let x = place(index, count);
            let corners = [(x - BOX.0 / 2, y - BOX.1 / 2), (x + BOX.0 / 2, y + BOX.1 / 2)];
            root.draw(&Rectangle::new(corners, colour.filled()))?;
        }
        if count > MOST {
            let dots = text(TITLE, HPos::Left, VPos::Center);
            root.draw_text("...", &dots, (place(MOST - 1, count) + BOX.0 / 2 + 4, y))?;
        }
        Ok(())
    }

    /// The cables of a level to the level below.
    fn draw_cables<'a>(&self, root: &Area<'a>, index: usize) -> Result<(), Failure<'a>> {
        let levels = &self.candidate.levels;
        let upper = levels[index].switches;
        let (lower, y) = match index.checked_sub(1) {
            Some(below) => (levels[below].switches, self.height(below)),
            None => (self.hosts.into(), self.height(0) + LEVEL),
        };
        let is_joined = |above: u32, below: u32| match index {
            // Hosts have one cable each.
            0 => below * upper.min(MOST) / lower.min(MOST) == above,
            // Groups of switches are joined among themselves.
            1 if levels.len() == 3 => {
                let groups = levels[2].down.max(1);
                above * groups / upper == below * groups / lower
            }
            _ => true,
        };
        for above in 0..upper.min(MOST) {
            for below in (0..lower.min(MOST)).filter(|&below| is_joined(above, below)) {
                let ends = [(place(above, upper), self.height(index)), (place(below, lower), y)];
                root.draw(&PathElement::new(ends, GREY))?;
            }
        }
        Ok(())
    }
}

/// The middle of one of several switches.
fn place(index: u32, count: u32) -> i32 {
    let drawn = count.clamp(1, MOST) as i32;
    24 + (2 * index as i32 + 1) * (TREE - 48) / (2 * drawn)
}

fn rate(bits_per_s: u64) -> String {
    format!("{}bit/s", metric(bits_per_s as f64))
}
