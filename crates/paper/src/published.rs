//! Published values of a paper: the form of `published.toml`.

use evb_record::{Curve, Relation};
use serde::Deserialize;
use std::collections::BTreeMap;

/// All values of one paper that are compared or shown.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    /// Title of the paper.
    pub(crate) title: String,
    /// Year in which it was published.
    pub(crate) year: u16,
    /// Single values.
    #[serde(default, rename = "item")]
    pub(crate) items: Vec<Item>,
    /// Tables.
    #[serde(default, rename = "table")]
    pub(crate) tables: Vec<Table>,
    /// Figures.
    #[serde(default, rename = "figure")]
    pub(crate) figures: Vec<Figure>,
}

/// A single value. With none of `published`, `at_least` and `at_most`, the reproduced value is only shown.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) place: String,
    #[serde(default)]
    pub(crate) unit: String,
    published: Option<f64>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    #[serde(default)]
    pub(crate) tolerance: f64,
    /// The reason for the tolerance.
    #[serde(default)]
    because: String,
    /// The parameter that was set by this value, which then does not count.
    calibrated: Option<String>,
}

/// A table with one value for each row and column.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) place: String,
    #[serde(default)]
    pub(crate) unit: String,
    pub(crate) rows: Rows,
    #[serde(rename = "column")]
    pub(crate) columns: Vec<Column>,
}

/// The rows of a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rows {
    pub(crate) name: String,
    pub(crate) values: Vec<toml::Value>,
}

/// A column of a table; without `published`, the reproduced values are only shown.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Column {
    pub(crate) name: String,
    published: Option<Vec<f64>>,
    #[serde(default)]
    tolerance: f64,
    /// Largest mean of the absolute differences of all rows.
    mean_error: Option<f64>,
    #[serde(default)]
    because: String,
    /// The parameters that were set by these values, which then do not count.
    calibrated: Option<Calibrated>,
}

/// The values of a column that have set a parameter, and the parameter.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Calibrated {
    /// All values together.
    All(String),
    /// The values of some rows.
    Rows(BTreeMap<String, String>),
}

/// A figure and the points in it that the paper states.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) what: String,
    #[serde(default)]
    pub(crate) place: String,
    pub(crate) x: String,
    pub(crate) y: String,
    #[serde(default)]
    pub(crate) x_scale: Scale,
    #[serde(default)]
    pub(crate) y_scale: Scale,
    #[serde(default)]
    pub(crate) published: Vec<Curve>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scale {
    #[default]
    Linear,
    Log,
}

impl Published {
    /// Reads the text, and checks its content beyond the form.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut published: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for table in &published.tables {
            published.items.extend(table.cells()?);
        }
        published.items.iter().try_for_each(Item::check)?;
        let names = published.items.iter().map(|item| &item.name);
        let mut names: Vec<_> = names.chain(published.figures.iter().map(|figure| &figure.name)).collect();
        names.sort();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("{} is there twice", pair[0])),
            None => Ok(published),
        }
    }
}

impl Item {
    /// The relation and the value to compare with.
    pub(crate) fn expected(&self) -> (Relation, Option<f64>) {
        let relations =
            [(Relation::Equal, self.published), (Relation::AtLeast, self.at_least), (Relation::AtMost, self.at_most)];
        let given = relations.into_iter().find(|(_, value)| value.is_some());
        given.unwrap_or((Relation::Shown, None))
    }

    /// Returns true if a parameter was set by this value.
    pub(crate) fn is_calibrated(&self) -> bool {
        self.calibrated.is_some()
    }

    /// The reason for the tolerance, or the parameter that was set by the value.
    pub(crate) fn reason(&self) -> &str {
        self.calibrated.as_deref().unwrap_or(&self.because)
    }

    fn check(&self) -> Result<(), String> {
        let given = [self.published, self.at_least, self.at_most].iter().flatten().count();
        match () {
            () if given > 1 => Err(format!("{}: published, at_least and at_most exclude each other", self.name)),
            () if self.tolerance > 0.0 && self.reason().is_empty() => {
                Err(format!("{}: a tolerance needs its reason: `because` or `calibrated`", self.name))
            }
            () => Ok(()),
        }
    }
}

impl Column {
    /// The parameter that was set by the value of a row.
    fn calibrated_by(&self, row: &str) -> Option<String> {
        match self.calibrated.as_ref()? {
            Calibrated::All(what) => Some(what.clone()),
            Calibrated::Rows(rows) => rows.get(row).cloned(),
        }
    }
}

impl Table {
    /// Name of the item in a cell.
    pub(crate) fn cell(&self, column: &Column, row: usize) -> String {
        format!("{}.{}.{}", self.name, column.name, self.row(row))
    }

    /// Name of the item that is the mean absolute difference of a column.
    pub(crate) fn mean_error(&self, column: &Column) -> Option<String> {
        column.mean_error.map(|_| format!("{}.{}.mean-error", self.name, column.name))
    }

    /// The value of a row as text.
    pub(crate) fn row(&self, row: usize) -> String {
        match &self.rows.values[row] {
            toml::Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// The items of the cells.
    fn cells(&self) -> Result<Vec<Item>, String> {
        let mut items = Vec::new();
        for column in &self.columns {
            let published = column.published.as_deref();
            if published.is_some_and(|values| values.len() != self.rows.values.len()) {
                return Err(format!("{}.{} has not one value for each row", self.name, column.name));
            }
            for row in 0..self.rows.values.len() {
                let what = format!("{}: {}, {} = {}", self.what, column.name, self.rows.name, self.row(row));
                let published = published.map(|values| values[row]);
                let calibrated = column.calibrated_by(&self.row(row));
                items.push(Item { published, calibrated, ..self.item(column, self.cell(column, row), what) });
            }
            if let Some(name) = self.mean_error(column) {
                let what = format!("{}: {}, mean absolute difference", self.what, column.name);
                let (at_most, tolerance) = (column.mean_error, 0.0);
                items.push(Item { at_most, tolerance, ..self.item(column, name, what) });
            }
        }
        Ok(items)
    }

    fn item(&self, column: &Column, name: String, what: String) -> Item {
        Item {
            name,
            what,
            place: self.place.clone(),
            unit: self.unit.clone(),
            published: None,
            at_least: None,
            at_most: None,
            tolerance: column.tolerance,
            because: column.because.clone(),
            calibrated: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(item: &str) -> String {
        let text = format!("title = 't'\nyear = 2000\n[[item]]\nname = 'a'\nwhat = 'w'\nplace = 'p'\n{item}");
        Published::parse(&text).err().unwrap_or_default()
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert_eq!(problem("published = 1.0"), "");
        assert_eq!(
            problem("published = 1.0\ntolerance = 1.0"),
            "a: a tolerance needs its reason: `because` or `calibrated`"
        );
        assert_eq!(problem("published = 1.0\nat_most = 1.0"), "a: published, at_least and at_most exclude each other");
        assert_eq!(problem("[[item]]\nname = 'a'\nwhat = 'w'\nplace = 'p'"), "a is there twice");
        assert!(problem("tolerence = 1.0").contains("unknown field `tolerence`"));
        let table = "[[table]]\nname = 't'\nwhat = 'w'\nplace = 'p'\nrows = { name = 'N', values = [1, 2] }\n\
                     [[table.column]]\nname = 'c'\npublished = [1.0]";
        assert_eq!(problem(table), "t.c has not one value for each row");
    }
}
