//! The table of reproduced values beside the published ones.

use crate::{
    PaperError,
    fit::mean_absolute_difference,
    published::{self, Published, Scale},
};
use evb_record::{Curve, Figure, Kind, PaperColumn, PaperItem, PaperReport, PaperTable, Relation, Verdict};

/// The reproduced value of an item, and the tool of its measurement unless it is a simulation of a network.
#[derive(Clone, Debug)]
struct Value {
    number: f64,
    tool: Option<String>,
}

/// The items, tables and figures of one paper while they are filled in.
pub(crate) struct ReportBuilder {
    slug: &'static str,
    published: Published,
    seed: u64,
    version: String,
    values: Vec<Option<Value>>,
    curves: Vec<Vec<Curve>>,
}

impl ReportBuilder {
    pub(crate) fn new(slug: &'static str, published: Published, seed: u64, version: &str) -> Self {
        let (values, curves) = (vec![None; published.items.len()], vec![Vec::new(); published.figures.len()]);
        Self { slug, published, seed, version: version.to_owned(), values, curves }
    }

    /// Sets the value of an item, in the unit of the item.
    pub(crate) fn item(&mut self, name: &str, value: f64) -> Result<(), PaperError> {
        self.write(name, Value { number: value, tool: None })
    }

    /// Sets the value of an item that was measured with this tool.
    pub(crate) fn measured(&mut self, name: &str, value: f64, tool: &str) -> Result<(), PaperError> {
        self.write(name, Value { number: value, tool: Some(tool.to_owned()) })
    }

    fn write(&mut self, name: &str, value: Value) -> Result<(), PaperError> {
        let index = self.published.items.iter().position(|item| item.name == name);
        let free = index.and_then(|index| self.values.get_mut(index)).filter(|value| value.is_none());
        *free.ok_or_else(|| PaperError::Unknown { name: name.to_owned() })? = Some(value);
        Ok(())
    }

    /// Sets a column of a table, one value for each row.
    pub(crate) fn column(&mut self, table: &str, column: &str, values: &[f64]) -> Result<(), PaperError> {
        let unknown = || PaperError::Unknown { name: format!("{table}.{column}") };
        let place = self.published.tables.iter().find(|one| one.name == table).ok_or_else(unknown)?;
        let found = place.columns.iter().find(|one| one.name == column).ok_or_else(unknown)?;
        if values.len() != place.rows.values.len() {
            return Err(unknown());
        }
        let names: Vec<_> = (0..values.len()).map(|row| place.cell(found, row)).collect();
        let mean_error = place.mean_error(found);
        names.iter().zip(values).try_for_each(|(name, value)| self.item(name, *value))?;
        let Some(mean_error) = mean_error else { return Ok(()) };
        let published: Vec<_> = names.iter().filter_map(|name| self.expected(name)).collect();
        self.item(&mean_error, mean_absolute_difference(values, &published))
    }

    /// Adds a curve to a figure.
    pub(crate) fn curve(&mut self, figure: &str, label: &str, points: Vec<(f64, f64)>) -> Result<(), PaperError> {
        let index = self.published.figures.iter().position(|one| one.name == figure);
        let index = index.ok_or_else(|| PaperError::Unknown { name: figure.to_owned() })?;
        self.curves[index].push(Curve { label: label.to_owned(), points });
        Ok(())
    }

    fn expected(&self, name: &str) -> Option<f64> {
        self.published.items.iter().find(|item| item.name == name)?.expected().1
    }

    /// The report; every published item must have its value, and every figure a curve.
    pub(crate) fn finish(self) -> Result<PaperReport, PaperError> {
        let missing = |name: &str| PaperError::Missing { name: name.to_owned() };
        let mut items = Vec::new();
        for (item, value) in self.published.items.iter().zip(&self.values) {
            items.push(self.judge(item, value.as_ref().ok_or_else(|| missing(&item.name))?));
        }
        if let Some((figure, _)) = self.published.figures.iter().zip(&self.curves).find(|(_, curves)| curves.is_empty())
        {
            return Err(missing(&figure.name));
        }
        let tables = self.published.tables.iter().map(|table| self.table(table)).collect();
        let figures = self.published.figures.into_iter().zip(self.curves);
        Ok(PaperReport {
            slug: self.slug.to_owned(),
            title: self.published.title,
            year: self.published.year,
            items,
            tables,
            figures: figures.map(|(figure, curves)| draw(figure, curves)).collect(),
        })
    }

    fn judge(&self, item: &published::Item, value: &Value) -> PaperItem {
        let reproduced = value.number;
        let (relation, published) = item.expected();
        let difference = published.map(|published| reproduced - published);
        let off = match (relation, difference) {
            (Relation::Equal, Some(difference)) => difference.abs(),
            (Relation::AtLeast, Some(difference)) => -difference,
            (Relation::AtMost, Some(difference)) => difference,
            _ => 0.0,
        };
        // A sum of decimal fractions is off by some units in its last place. What is no number is outside.
        let within = reproduced.is_finite() && off <= item.tolerance + 1e-9 * reproduced.abs();
        let verdict = match relation {
            _ if !within => Verdict::Outside,
            Relation::Shown => Verdict::Shown,
            _ if item.is_calibrated() => Verdict::Calibrated,
            _ => Verdict::Within,
        };
        PaperItem {
            kind: Kind::Paper,
            paper: self.slug.to_owned(),
            item: item.name.clone(),
            what: item.what.clone(),
            place: item.place.clone(),
            unit: item.unit.clone(),
            relation,
            published,
            reproduced,
            difference,
            tolerance: item.tolerance,
            within,
            verdict,
            because: item.reason().to_owned(),
            measured_with: value.tool.clone(),
            seed: self.seed,
            version: self.version.clone(),
        }
    }

    fn table(&self, table: &published::Table) -> PaperTable {
        let index = |name: String| self.published.items.iter().position(|item| item.name == name);
        let rows = 0..table.rows.values.len();
        let column = |column: &published::Column| PaperColumn {
            name: column.name.clone(),
            items: rows.clone().filter_map(|row| index(table.cell(column, row))).collect(),
        };
        PaperTable {
            name: table.name.clone(),
            what: table.what.clone(),
            place: table.place.clone(),
            unit: table.unit.clone(),
            row_name: table.rows.name.clone(),
            rows: rows.clone().map(|row| table.row(row)).collect(),
            columns: table.columns.iter().map(column).collect(),
        }
    }
}

fn draw(figure: published::Figure, curves: Vec<Curve>) -> Figure {
    Figure {
        name: figure.name,
        what: figure.what,
        place: figure.place,
        x: figure.x,
        y: figure.y,
        x_log: figure.x_scale == Scale::Log,
        y_log: figure.y_scale == Scale::Log,
        curves,
        published: figure.published,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: &str = r#"
title = "A paper"
year = 2000

[[item]]
name = "near"
what = "a number"
place = "table 1"
published = 10.0
tolerance = 1.0
because = "its last digit"

[[item]]
name = "least"
what = "a bound"
place = "table 1"
at_least = 95

[[item]]
name = "most"
what = "a bound"
place = "table 1"
at_most = 5

[[item]]
name = "set"
what = "a number"
place = "table 1"
published = 2.0
tolerance = 0.1
calibrated = "a parameter"

[[item]]
name = "shown"
what = "nobody published it"
place = ""

[[table]]
name = "table"
what = "two rows"
place = "table 2"
rows = { name = "N", values = [1, 2] }

[[table.column]]
name = "a"
published = [1.0, 2.0]
tolerance = 1.0
mean_error = 0.5
because = "spread"

[[figure]]
name = "figure"
what = "a curve"
x = "x"
y = "y"
"#;

    fn filled(near: f64, column: [f64; 2]) -> ReportBuilder {
        let mut report = ReportBuilder::new("slug", Published::parse(PUBLISHED).unwrap(), 7, "0");
        for (name, value) in [("near", near), ("least", 95.0), ("most", 6.0), ("set", 2.0), ("shown", 1.0)] {
            report.item(name, value).unwrap();
        }
        report.column("table", "a", &column).unwrap();
        report.curve("figure", "ours", vec![(0.0, 1.0)]).unwrap();
        report
    }

    fn verdicts(report: ReportBuilder) -> Vec<(String, Verdict)> {
        report.finish().unwrap().items.into_iter().map(|item| (item.item, item.verdict)).collect()
    }

    #[test]
    fn each_relation_has_its_verdict() {
        use Verdict::*;
        let expected = [
            ("near", Within),
            ("least", Within),
            ("most", Outside),
            ("set", Calibrated),
            ("shown", Shown),
            ("table.a.1", Within),
            ("table.a.2", Within),
            ("table.a.mean-error", Outside),
        ];
        let found = verdicts(filled(11.0, [1.2, 3.0]));
        assert_eq!(found, expected.map(|(name, verdict)| (name.to_owned(), verdict)));
    }

    #[test]
    fn what_is_no_number_is_outside() {
        assert_eq!(verdicts(filled(f64::NAN, [1.0, 2.0]))[0].1, Verdict::Outside);
        assert_eq!(verdicts(filled(11.1, [1.0, 2.0]))[0].1, Verdict::Outside);
    }

    #[test]
    fn nothing_is_computed_twice_or_left_out() {
        let mut report = filled(10.0, [1.0, 2.0]);
        assert_eq!(report.item("near", 1.0), Err(PaperError::Unknown { name: "near".into() }));
        assert_eq!(report.item("far", 1.0), Err(PaperError::Unknown { name: "far".into() }));
        assert_eq!(report.column("table", "b", &[1.0]), Err(PaperError::Unknown { name: "table.b".into() }));
        let empty = ReportBuilder::new("slug", Published::parse(PUBLISHED).unwrap(), 7, "0");
        assert_eq!(empty.finish(), Err(PaperError::Missing { name: "near".into() }));
    }
}
