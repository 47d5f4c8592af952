//! Published values of a paper: the form of `published.toml`.

use crate::{
    finding,
    item::{Declared, Error, Item},
    parameter::Parameter,
};
use evb_record::Curve;
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
    /// True if its values are results of a theory, and not of measurements.
    #[serde(default)]
    pub(crate) theory: bool,
    /// Single values.
    #[serde(default, rename = "item")]
    pub(crate) items: Vec<Item>,
    /// Tables.
    #[serde(default, rename = "table")]
    pub(crate) tables: Vec<Table>,
    /// Figures.
    #[serde(default, rename = "figure")]
    pub(crate) figures: Vec<Figure>,
    /// Parameters of the experiments.
    #[serde(default, rename = "parameter")]
    pub(crate) parameters: Vec<Parameter>,
    /// Known differences.
    #[serde(default, rename = "difference")]
    pub(crate) differences: Vec<Difference>,
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
    /// True if its values are results of a theory, in a paper of measurements.
    #[serde(default)]
    pub(crate) theory: bool,
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
    /// Error and class of all rows, as of an item.
    error: Option<Error>,
    class: Option<Declared>,
    #[serde(default)]
    because: String,
    /// The finding that the column belongs to, if it is not one alone.
    finding: Option<String>,
    /// Rows that are implied, and by what.
    #[serde(default)]
    implied: BTreeMap<String, String>,
}

/// Items that are outside, and why. The list is committed: a change of it is a change of the result.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Difference {
    items: Vec<String>,
    pub(crate) because: String,
    /// Whether a value is outside depends on the seed.
    #[serde(default)]
    pub(crate) varies: bool,
    /// The cause in a few words, if these are not the first clause of `because`.
    cause: Option<String>,
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
        published.parameters.iter().try_for_each(Parameter::check)?;
        published.check_names()?;
        finding::check(&published.items)?;
        let names = published.items.iter().map(|item| &item.name);
        let mut names: Vec<_> = names.chain(published.figures.iter().map(|figure| &figure.name)).collect();
        names.sort();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("{} is there twice", pair[0])),
            None => Ok(published),
        }
    }

    /// The item of this name.
    pub(crate) fn item(&self, name: &str) -> Option<&Item> {
        self.items.iter().find(|item| item.name == name)
    }

    /// The known difference of an item.
    pub(crate) fn known(&self, item: &str) -> Option<&Difference> {
        self.differences.iter().find(|one| one.items.iter().any(|name| name == item))
    }

    /// Items are named by parameters that they set, and by known differences.
    fn check_names(&self) -> Result<(), String> {
        let setters = self.parameters.iter().flat_map(|parameter| &parameter.set_by);
        let listed = self.differences.iter().flat_map(|difference| &difference.items);
        for name in setters.clone().chain(listed) {
            self.item(name)
                .filter(|item| item.is_judged())
                .ok_or_else(|| format!("{name} is not an item with a verdict"))?;
        }
        match setters.clone().find(|name| self.item(name).is_some_and(|item| item.class.is_some())) {
            Some(name) => Err(format!("{name} sets a parameter, so it has no declared class")),
            None => Ok(()),
        }
    }
}

impl Difference {
    /// The reason in a few words.
    pub(crate) fn cause(&self) -> &str {
        let ends = [": ", "; ", ". "].iter().filter_map(|mark| self.because.find(mark));
        let first_clause = &self.because[..ends.min().unwrap_or(self.because.len())];
        self.cause.as_deref().unwrap_or(first_clause)
    }
}

impl Column {
    /// The class of a row, and the reason.
    fn class(&self, row: &str) -> (Option<Declared>, String) {
        match self.implied.get(row) {
            Some(reason) => (Some(Declared::Implied), reason.clone()),
            None => (self.class, self.because.clone()),
        }
    }
}

impl Table {
    /// Name of the item in a cell.
    pub(crate) fn cell(&self, column: &Column, row: usize) -> String {
        format!("{}.{}.{}", self.name, column.name, self.row(row))
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
            let finding = column.finding.clone().unwrap_or_else(|| format!("{}.{}", self.name, column.name));
            for row in 0..self.rows.values.len() {
                let (class, because) = column.class(&self.row(row));
                items.push(Item {
                    name: self.cell(column, row),
                    what: format!("{}: {}, {} = {}", self.what, column.name, self.rows.name, self.row(row)),
                    place: self.place.clone(),
                    unit: self.unit.clone(),
                    theory: self.theory,
                    finding: Some(finding.clone()),
                    published: published.map(|values| values[row]),
                    error: column.error.clone(),
                    class,
                    because,
                    ..Item::default()
                });
            }
        }
        Ok(items)
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
    fn invalid_tables_are_rejected() {
        assert_eq!(problem("published = 1.0"), "");
        let reason = "a: a class needs its reason, `because`, and nothing else has one";
        assert_eq!(problem("published = 1.0\nclass = 'words'"), reason);
        assert_eq!(problem("published = 1.0\nbecause = 'of it'"), reason);
        assert!(problem("published = 1.0\nclass = 'predicted'").contains("unknown variant"), "it is not declared");
        assert_eq!(problem("published = 1.0\nat_most = 1.0"), "a: published, at_least and at_most exclude each other");
        assert_eq!(problem("[[item]]\nname = 'a'\nwhat = 'w'\nplace = 'p'"), "a is there twice");
        assert!(problem("tolerence = 1.0").contains("unknown field `tolerence`"));
        let table = "[[table]]\nname = 't'\nwhat = 'w'\nplace = 'p'\nrows = { name = 'N', values = [1, 2] }\n\
                     [[table.column]]\nname = 'c'\npublished = [1.0]";
        assert_eq!(problem(table), "t.c has not one value for each row");
        let parameter = "published = 1.0\n[[parameter]]\nname = 'p'\nvalue = '1'\nbecause = 'b'\n";
        let with = |more: &str| problem(&format!("{parameter}{more}"));
        assert_eq!(with("basis = 'assumed'"), "parameter p: `vary` must give its range");
        assert!(with("basis = 'calibrated'").contains("`set_by`"));
        assert_eq!(with("basis = 'calibrated'\nset_by = ['b']\nvary = [['k=1']]"), "b is not an item with a verdict");
    }
}
