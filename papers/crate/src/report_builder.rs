//! The table of reproduced values beside the published ones.

use crate::{
    PaperError,
    class::classify,
    finding::findings,
    item::Item,
    published::{self, Published, Scale},
};
use evb_record::{Curve, Figure, PaperColumn, PaperItem, PaperReport, PaperTable, RecordKind, Sensitivity, Verdict};

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
        names.iter().zip(values).try_for_each(|(name, value)| self.item(name, *value))
    }

    /// Adds a curve to a figure.
    pub(crate) fn curve(&mut self, figure: &str, label: &str, points: Vec<(f64, f64)>) -> Result<(), PaperError> {
        let index = self.published.figures.iter().position(|one| one.name == figure);
        let index = index.ok_or_else(|| PaperError::Unknown { name: figure.to_owned() })?;
        self.curves[index].push(Curve { label: label.to_owned(), points });
        Ok(())
    }

    /// The report; every modelled item must have its value, and every figure a curve. `sensitivity` has what the
    /// classes follow from.
    pub(crate) fn finish(self, sensitivity: &[Sensitivity]) -> Result<PaperReport, PaperError> {
        let missing = |name: &str| PaperError::Missing { name: name.to_owned() };
        let mut items = Vec::new();
        for (item, value) in self.published.items.iter().zip(&self.values) {
            if value.is_some() != item.is_modelled() {
                return Err(missing(&item.name));
            }
            items.push(self.judge(item, value.as_ref(), sensitivity));
        }
        if let Some((figure, _)) = self.published.figures.iter().zip(&self.curves).find(|(_, curves)| curves.is_empty())
        {
            return Err(missing(&figure.name));
        }
        let findings = findings(&self.published, &items);
        let tables = self.published.tables.iter().map(|table| self.table(table)).collect();
        let figures = self.published.figures.into_iter().zip(self.curves);
        Ok(PaperReport {
            slug: self.slug.to_owned(),
            title: self.published.title,
            year: self.published.year,
            items,
            findings,
            tables,
            figures: figures.map(|(figure, curves)| draw(figure, curves)).collect(),
        })
    }

    fn judge(&self, item: &Item, value: Option<&Value>, sensitivity: &[Sensitivity]) -> PaperItem {
        let reproduced = value.map(|value| value.number).filter(|number| number.is_finite());
        let (relation, published) = item.expected();
        let known = self.published.known(&item.name);
        let (class, because) = classify(item, &self.published, sensitivity);
        let verdict = match () {
            () if !item.is_judged() => Verdict::NotJudged,
            () if reproduced.is_some_and(|number| item.is_inside(number)) => Verdict::Inside,
            () => Verdict::Outside,
        };
        PaperItem {
            kind: RecordKind::Paper,
            paper: self.slug.to_owned(),
            item: item.name.clone(),
            what: item.what.clone(),
            place: item.place.clone(),
            unit: item.unit.clone(),
            relation,
            published,
            reproduced,
            difference: published.zip(reproduced).map(|(published, reproduced)| reproduced - published),
            tolerance: item.is_judged().then(|| item.tolerance()),
            error_from: item.error.as_ref().map(|error| error.from.clone()).unwrap_or_default(),
            class,
            because,
            verdict,
            theory: self.published.theory || item.theory,
            known: known.map(|difference| difference.because.clone()),
            varies: known.is_some_and(|difference| difference.varies),
            measured_with: value.and_then(|value| value.tool.clone()),
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
item = [
  { name = "near", what = "a number", place = "table 1", published = 10.0 },
  { name = "least", what = "a bound", place = "table 1", at_least = 95 },
  { name = "far", what = "a number", place = "table 1", published = 10.0 },
  { name = "other", what = "a number", place = "", published = 1.0, class = "different", because = "another tool" },
  { name = "none", what = "a number", place = "", class = "not_modelled", because = "no memory" },
]
difference = [{ items = ["far"], because = "a reason" }]

[[table]]
name = "table"
what = "two rows"
place = "table 2"
rows = { name = "N", values = [1, 2] }
theory = true
column = [{ name = "a", published = [1.0, 2.0], implied = { "1" = "one is one" } }]

[[figure]]
name = "figure"
what = "a curve"
x = "x"
y = "y"
"#;

    fn filled(near: f64, far: f64) -> ReportBuilder {
        let mut report = ReportBuilder::new("slug", Published::parse(PUBLISHED).unwrap(), 7, "0");
        for (name, value) in [("near", near), ("least", 95.0), ("far", far), ("other", 9.0)] {
            report.item(name, value).unwrap();
        }
        report.column("table", "a", &[1.0, 2.0]).unwrap();
        report.curve("figure", "ours", vec![(0.0, 1.0)]).unwrap();
        report
    }

    #[test]
    fn each_value_has_its_class_and_its_verdict() {
        use Verdict::{Inside, NotJudged, Outside};
        use evb_record::Class::{Different, Implied, NotModelled, Predicted};
        let report = filled(10.5, 11.0).finish(&[]).unwrap();
        let found = report.items.iter().map(|item| (item.class, item.verdict));
        let expected = [
            (Predicted, Inside),
            (Predicted, Inside),
            (Predicted, Outside),
            (Different, NotJudged),
            (NotModelled, NotJudged),
            (Implied, Inside),
            (Predicted, Inside),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        let of_theory = report.items.iter().filter(|item| item.theory).map(|item| item.item.as_str());
        assert_eq!(of_theory.collect::<Vec<_>>(), ["table.a.1", "table.a.2"]);
        assert!(report.good(), "the list has all that is outside");
    }

    #[test]
    fn a_new_difference_and_one_that_is_gone_are_not_good() {
        assert!(!filled(11.0, 11.0).finish(&[]).unwrap().good());
        assert!(!filled(f64::NAN, 11.0).finish(&[]).unwrap().good());
        assert!(!filled(10.0, 10.0).finish(&[]).unwrap().good());
    }

    #[test]
    fn nothing_is_computed_twice_or_left_out() {
        let mut report = filled(10.0, 11.0);
        assert_eq!(report.item("near", 1.0), Err(PaperError::Unknown { name: "near".into() }));
        assert_eq!(report.item("unheard", 1.0), Err(PaperError::Unknown { name: "unheard".into() }));
        assert_eq!(report.column("table", "b", &[1.0]), Err(PaperError::Unknown { name: "table.b".into() }));
        report.item("none", 1.0).unwrap();
        assert_eq!(report.finish(&[]), Err(PaperError::Missing { name: "none".into() }), "not modelled, with a value");
        let empty = ReportBuilder::new("slug", Published::parse(PUBLISHED).unwrap(), 7, "0");
        assert_eq!(empty.finish(&[]), Err(PaperError::Missing { name: "near".into() }));
    }
}
