//! Typed reading of a tree that passed the checks.

use crate::{
    diagnostics::Problem,
    tree::{Node, Origin, Value},
};
use evb_core::QuantityError;
use std::{path::PathBuf, str::FromStr};

/// A checked table: its values are there and of their kinds.
#[derive(Clone, Copy)]
pub(crate) struct View<'a>(pub(crate) &'a Node);

pub(crate) const CHECKED: &str = "the tree passed the check against the table of keys";

impl<'a> View<'a> {
    pub(crate) fn text(self, path: &str) -> &'a str {
        self.0.at(path).and_then(Node::text).expect(CHECKED)
    }

    pub(crate) fn maybe_text(self, path: &str) -> Option<&'a str> {
        self.0.at(path).and_then(Node::text)
    }

    pub(crate) fn path(self, path: &str) -> PathBuf {
        self.text(path).into()
    }

    /// A whole number; the limits of its key keep it within `T`.
    pub(crate) fn integer<T: TryFrom<i64>>(self, path: &str) -> T {
        self.maybe_integer(path).expect(CHECKED)
    }

    pub(crate) fn maybe_integer<T: TryFrom<i64>>(self, path: &str) -> Option<T> {
        self.0.at(path)?.integer()?.try_into().ok()
    }

    pub(crate) fn number(self, path: &str) -> f64 {
        match self.0.at(path).map(|node| &node.value) {
            Some(Value::Number(number)) => *number,
            Some(Value::Integer(number)) => *number as f64,
            _ => unreachable!("{CHECKED}"),
        }
    }

    pub(crate) fn quantity<T: FromStr<Err = QuantityError>>(self, path: &str) -> T {
        self.maybe_quantity(path).expect(CHECKED)
    }

    pub(crate) fn maybe_quantity<T: FromStr<Err = QuantityError>>(self, path: &str) -> Option<T> {
        self.0.at(path)?.text()?.parse().ok()
    }

    /// The table at a path.
    pub(crate) fn below(self, path: &str) -> Self {
        Self(self.0.at(path).expect(CHECKED))
    }

    /// The table at a path, if there is one.
    pub(crate) fn table(self, path: &str) -> Option<Self> {
        self.0.at(path).filter(|node| node.table().is_some()).map(Self)
    }

    /// True if a flag is set.
    pub(crate) fn flag(self, path: &str) -> bool {
        self.0.at(path).and_then(Node::flag).expect(CHECKED)
    }

    /// True if there is a value at a path.
    pub(crate) fn has(self, path: &str) -> bool {
        self.0.at(path).is_some()
    }

    pub(crate) fn list(self, path: &str) -> &'a [Node] {
        self.0.at(path).and_then(Node::list).unwrap_or(&[])
    }

    /// The place where the value at `path` was written; `None` for a default.
    pub(crate) fn origin(self, path: &str) -> Option<Origin> {
        self.0.at(path)?.origin
    }
}

/// A rule on several keys, which finds at most one problem in a tree whose single values are good.
pub(crate) type Rule = fn(View<'_>) -> Option<Problem>;
