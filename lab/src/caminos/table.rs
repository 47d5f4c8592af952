//! The table of the page: both sides, their difference, and the verdict.

use super::{cases::Case, samples::Sample};

/// Tolerance of a mean wait, as a part of that of CAMINOS, and of an accepted load in points: the rule of the papers.
const TOLERANCE: (f64, f64) = (0.05, 3.0);
/// Lines of the page around the table.
const MARKS: (&str, &str) = ("<!-- generated: comparison -->\n", "<!-- end -->\n");

/// One case, simulated.
pub(super) struct Row {
    pub(super) case: Case,
    pub(super) ours: Sample,
    pub(super) theirs: Sample,
}

impl Row {
    fn difference(&self) -> f64 {
        self.ours.mean - self.theirs.mean
    }

    fn tolerance(&self) -> f64 {
        match self.case.load {
            Some(_) => TOLERANCE.0 * self.theirs.mean,
            None => TOLERANCE.1,
        }
    }

    fn is_inside(&self) -> bool {
        self.difference().abs() <= self.tolerance()
    }

    /// The difference in standard errors of both means together.
    fn errors(&self) -> f64 {
        self.difference() / self.ours.error.hypot(self.theirs.error)
    }

    /// The cells of its line.
    fn cells(&self) -> [String; 10] {
        let load = self.case.load.map_or("saturated".into(), |load| format!("{:.0} %", 100.0 * load));
        let difference = match self.case.load {
            Some(_) => format!("{:+.2} %", 100.0 * self.difference() / self.theirs.mean),
            None => format!("{:+.2} points", self.difference()),
        };
        let tolerance = match self.case.load {
            Some(_) => format!("{:.0} %", 100.0 * TOLERANCE.0),
            None => format!("{:.0} points", TOLERANCE.1),
        };
        let verdict = if self.is_inside() { "inside" } else { "**outside**" };
        [
            self.case.network.name(),
            self.case.phits.to_string(),
            load,
            self.spread(self.ours),
            self.spread(self.theirs),
            self.case.theory().map_or(String::new(), |theory| format!("{theory:.2} %")),
            difference,
            tolerance,
            verdict.into(),
            format!("{:+.1}", self.errors()),
        ]
    }

    fn spread(&self, sample: Sample) -> String {
        let Sample { mean, least, most, .. } = sample;
        match self.case.load {
            Some(_) => format!("{mean:.3} ({least:.3} to {most:.3})"),
            None => format!("{mean:.2} % ({least:.2} to {most:.2})"),
        }
    }
}

const HEADER: &str = "\
| network | phits | load | evb | CAMINOS | theory | difference | tolerance | | in errors |
|---|---:|---:|---:|---:|---:|---:|---:|---|---:|
";

/// The table, and a line that counts.
pub(super) fn draw(rows: &[Row]) -> String {
    let lines: String = rows.iter().map(|row| format!("| {} |\n", row.cells().join(" | "))).collect();
    let outside = rows.iter().filter(|row| !row.is_inside()).count();
    format!("{HEADER}{lines}\n{} values: {} inside, {outside} outside.\n", rows.len(), rows.len() - outside)
}

/// The page with another table; `None` if the page has no marks for one.
pub(super) fn replace(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(MARKS.0)?;
    let (_, after) = rest.split_once(MARKS.1)?;
    Some(format!("{before}{}\n{table}\n{}{after}", MARKS.0, MARKS.1))
}

#[cfg(test)]
mod tests {
    use super::{super::cases::Network, *};

    fn row(load: Option<f64>, ours: f64, theirs: f64) -> Row {
        let sample = |mean: f64| Sample { mean, least: mean - 1.0, most: mean + 1.0, error: 0.5 };
        let case = Case { network: Network::Crossbar { ports: 8 }, phits: 16, load };
        Row { case, ours: sample(ours), theirs: sample(theirs) }
    }

    #[test]
    fn waits_have_a_relative_and_loads_an_absolute_tolerance() {
        assert!(row(Some(0.1), 105.0, 100.0).is_inside());
        assert!(!row(Some(0.1), 94.9, 100.0).is_inside());
        assert!(row(None, 53.0, 50.0).is_inside());
        assert!(!row(None, 46.9, 50.0).is_inside());
    }

    #[test]
    fn a_line_has_both_sides_and_marks_a_miss() {
        let table = draw(&[row(None, 60.0, 61.0), row(Some(0.5), 20.0, 10.0)]);
        let load = "| crossbar 8 x 8 | 16 | saturated | 60.00 % (59.00 to 61.00) | 61.00 % (60.00 to 62.00) | 61.84 % \
                    | -1.00 points | 3 points | inside | -1.4 |";
        let wait = "| crossbar 8 x 8 | 16 | 50 % | 20.000 (19.000 to 21.000) | 10.000 (9.000 to 11.000) |  | +100.00 % \
                     | 5 % | **outside** | +14.1 |";
        assert_eq!(table.lines().skip(2).take(2).collect::<Vec<_>>(), [load, wait]);
        assert!(table.ends_with("2 values: 1 inside, 1 outside.\n"));
    }

    #[test]
    fn a_page_gets_another_table() {
        let page = "before\n<!-- generated: comparison -->\nold\n<!-- end -->\nafter\n";
        let new = "before\n<!-- generated: comparison -->\n\nnew\n\n<!-- end -->\nafter\n";
        assert_eq!(replace(page, "new\n").as_deref(), Some(new));
        assert_eq!(replace("no place", "new\n"), None);
    }
}
