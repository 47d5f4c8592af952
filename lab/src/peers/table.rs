//! The table: medians, spreads, ratios and verdicts.

use crate::spread::{ends, median, spread};
use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};

/// Times of a word between the cores that differ by more than this factor make a row untrusted, as in the records.
const MOST_DRIFT: f64 = 1.25;

/// The quantity that is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unit {
    /// Less is better.
    Nanoseconds,
    /// More is better.
    PerSecond,
}

/// The target of evb.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bar {
    /// The value of evb is at most this multiple of the peer's.
    AtMost(f64),
    /// The value of evb is at least this multiple of the peer's.
    AtLeast(f64),
    /// The value of evb is at least this one, independent of the peer's.
    OursAtLeast(f64),
}

/// The reason of a missing result.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Problem {
    Skipped(String),
    Failed(String),
}

/// The values of evb and of a peer at one size, one for each turn.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) what: String,
    pub(super) peer: String,
    pub(super) unit: Unit,
    pub(super) bar: Option<Bar>,
    pub(super) pinned: &'static str,
    pub(super) ours: Vec<f64>,
    pub(super) theirs: Vec<f64>,
    /// Nanoseconds that a word took from core to core, in the order of time.
    pub(super) cores: Vec<f64>,
    pub(super) problem: Option<Problem>,
}

impl Row {
    /// Marks the row as failed, unless it is skipped.
    pub(super) fn fail(&mut self, why: &str) {
        let why = why.lines().next().unwrap_or_default().to_owned();
        self.problem.get_or_insert(Problem::Failed(why));
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(self.problem, Some(Problem::Failed(_)))
    }

    /// The median of the ratios of the turns: disturbances of both sides of a turn cancel out.
    fn ratio(&self) -> Option<f64> {
        let ratios: Vec<_> = self.ours.iter().zip(&self.theirs).map(|(ours, theirs)| ours / theirs).collect();
        median(&ratios)
    }

    /// `met`, `missed`, a dash without a bar, or the reason of a missing result; with `?` if the cores changed meanwhile.
    pub(super) fn verdict(&self) -> String {
        match &self.problem {
            Some(Problem::Skipped(why)) => return format!("skipped: {why}"),
            Some(Problem::Failed(why)) => return format!("failed: {why}"),
            None => {}
        }
        let word = match self.is_met() {
            None => "-",
            Some(true) => "met",
            Some(false) => "missed",
        };
        if self.has_drifted() { format!("{word} ?") } else { word.into() }
    }

    fn is_met(&self) -> Option<bool> {
        Some(match self.bar? {
            Bar::AtMost(bar) => self.ratio()? <= bar,
            Bar::AtLeast(bar) => self.ratio()? >= bar,
            Bar::OursAtLeast(bar) => median(&self.ours)? >= bar,
        })
    }

    fn has_drifted(&self) -> bool {
        let (least, most) = ends(&self.cores);
        most > MOST_DRIFT * least
    }

    fn cells(&self) -> [String; 9] {
        let scale = match self.unit {
            Unit::Nanoseconds => 1.0,
            Unit::PerSecond => 1e6,
        };
        let bar = self.bar.map_or("-".into(), |bar| match bar {
            Bar::AtMost(bar) => format!("<= {bar}"),
            Bar::AtLeast(bar) => format!(">= {bar}"),
            Bar::OursAtLeast(bar) => format!("ours >= {}", bar / scale),
        });
        let unit = match self.unit {
            Unit::Nanoseconds => "ns",
            Unit::PerSecond => "M/s",
        };
        [
            format!("{} [{unit}]", self.what),
            spread(&self.ours, scale),
            self.peer.clone(),
            spread(&self.theirs, scale),
            self.ratio().map_or("-".into(), |ratio| format!("{ratio:.2}")),
            bar,
            self.verdict(),
            drift(&self.cores),
            if self.problem.is_some() { "-".into() } else { self.pinned.into() },
        ]
    }
}

/// The whole page.
pub(super) fn draw(rows: &[Row], cores: [u64; 2], repetitions: usize) -> String {
    let mut table = Table::new();
    // No lines between rows, and no wrapped rows, so that the table fits on a screen.
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    for line in [TableComponent::HorizontalLines, TableComponent::MiddleIntersections] {
        table.remove_style(line);
    }
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["what", "evb", "peer", "peer's", "ratio", "bar", "verdict", "core to core", "pinned"]);
    table.add_rows(rows.iter().map(Row::cells));
    for column in [1, 3, 4] {
        table.column_mut(column).expect("there are nine").set_cell_alignment(CellAlignment::Right);
    }
    let [first, second] = cores;
    format!(
        "{table}\n\
         Medians of {repetitions} turns, with minimum and maximum; the ratio is the median of the ratios of the turns.\n\
         Core to core: ns of a word between the cores before -> after, and all seen between. `?`: they differ by more than 25 %.\n\
         Pinned to cores {first} and {second}: one core each, or all processes to the two cores together."
    )
}

/// Before, after, minimum and maximum.
fn drift(cores: &[f64]) -> String {
    let (Some(before), Some(after)) = (cores.first(), cores.last()) else { return "-".into() };
    let (least, most) = ends(cores);
    format!("{before:.0} -> {after:.0} ({least:.0} to {most:.0})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bar: Option<Bar>, ours: &[f64], theirs: &[f64]) -> Row {
        Row {
            what: "it, 8 B".into(),
            peer: "peer".into(),
            unit: Unit::Nanoseconds,
            bar,
            pinned: "one core each",
            ours: ours.into(),
            theirs: theirs.into(),
            cores: vec![60.0, 61.0],
            problem: None,
        }
    }

    #[test]
    fn verdicts_follow_the_median_of_the_ratios() {
        // Ratios 1, 1.1 and 9: one bad turn does not decide.
        let turns = |bar| row(bar, &[100.0, 220.0, 900.0], &[100.0, 200.0, 100.0]).verdict();
        assert_eq!(turns(None), "-");
        assert_eq!(turns(Some(Bar::AtMost(1.15))), "met");
        assert_eq!(turns(Some(Bar::AtMost(1.05))), "missed");
        assert_eq!(turns(Some(Bar::AtLeast(1.05))), "met");
        assert_eq!(turns(Some(Bar::AtLeast(2.0))), "missed");
        assert_eq!(turns(Some(Bar::OursAtLeast(220.0))), "met");
        assert_eq!(turns(Some(Bar::OursAtLeast(221.0))), "missed");
    }

    #[test]
    fn cores_that_change_make_a_row_untrusted() {
        let mut row = row(Some(Bar::AtMost(1.0)), &[1.0], &[1.0]);
        row.cores = vec![60.0, 76.0, 60.0];
        assert_eq!(row.verdict(), "met ?");
        assert_eq!(drift(&row.cores), "60 -> 60 (60 to 76)");
        row.cores = vec![60.0, 75.0];
        assert_eq!(row.verdict(), "met");
        row.cores.clear();
        assert_eq!(row.verdict(), "met", "the cores were not measured");
    }

    #[test]
    fn a_problem_is_the_verdict() {
        let mut row = row(Some(Bar::AtMost(1.0)), &[], &[]);
        row.fail("it ended\nwith many lines");
        assert_eq!((row.verdict().as_str(), row.has_failed()), ("failed: it ended", true));
        row.problem = Some(Problem::Skipped("no tool".into()));
        row.fail("later");
        assert_eq!((row.verdict().as_str(), row.has_failed()), ("skipped: no tool", false));
    }

    #[test]
    fn the_page_has_every_number() {
        let page = draw(&[row(Some(Bar::AtMost(1.5)), &[90.0, 100.0, 120.5], &[50.0, 80.0, 60.25])], [0, 3], 3);
        for part in ["it, 8 B [ns]", "100 (90.0 to 120)", "60.2 (50.0 to 80.0)", "1.80", "<= 1.5", "missed", "0 and 3"]
        {
            assert!(page.contains(part), "{part}:\n{page}");
        }
    }
}
