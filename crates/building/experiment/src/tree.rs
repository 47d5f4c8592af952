//! The experiment as a tree of values that remember where they were written.

use crate::limits::MAX_DEPTH;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// The place where something was written: which text, and which bytes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// 0 is the experiment file, `n` the n-th `--set`.
    pub(crate) text: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A value and its origin; a default has none.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) origin: Option<Origin>,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Number(f64),
    Flag(bool),
    /// A value that no key takes, described with its article.
    Other(&'static str),
    List(Vec<Node>),
    Table(Table),
}

/// Keys and values in the order of the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table(pub(crate) Vec<Entry>);

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_origin: Option<Origin>,
    pub(crate) node: Node,
}

// Two trees are equal when they say the same, wherever it was written.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.node == other.node
    }
}

impl Origin {
    pub(crate) fn new(text: usize, span: Range<usize>) -> Self {
        Self { text, start: span.start, end: span.end }
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        Self { origin: None, value }
    }
}

impl Node {
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn integer(&self) -> Option<i64> {
        match self.value {
            Value::Integer(number) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn flag(&self) -> Option<bool> {
        match self.value {
            Value::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The same values, written nowhere.
    pub(crate) fn unplaced(&self) -> Self {
        let entry = |entry: &Entry| Entry { key: entry.key.clone(), key_origin: None, node: entry.node.unplaced() };
        match &self.value {
            Value::Table(table) => Value::Table(Table(table.0.iter().map(entry).collect())),
            Value::List(items) => Value::List(items.iter().map(Self::unplaced).collect()),
            plain => plain.clone(),
        }
        .into()
    }

    /// The node at a path such as `readout.unit.0.source`.
    pub(crate) fn at(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |node, step| match &node.value {
            Value::Table(table) => table.get(step),
            Value::List(items) => items.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// Puts `node` at a path, making the tables on the way there; false when the path leads past the end of a list.
    pub(crate) fn put(&mut self, path: &[&str], key_origin: Option<Origin>, node: Self) -> bool {
        let [step, rest @ ..] = path else {
            *self = node;
            return true;
        };
        if let Value::List(items) = &mut self.value {
            let item = step.parse::<usize>().ok().and_then(|index| items.get_mut(index));
            return item.is_some_and(|item| item.put(rest, key_origin, node));
        }
        if self.table().is_none() {
            *self = Self { origin: key_origin, value: Value::Table(Table::default()) };
        }
        let Value::Table(table) = &mut self.value else { return false };
        table.slot(step, key_origin).put(rest, key_origin, node)
    }
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.0.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node)
    }

    pub(crate) fn take(&mut self, key: &str) -> Option<Node> {
        let index = self.0.iter().position(|entry| entry.key == key)?;
        Some(self.0.remove(index).node)
    }

    pub(crate) fn push(&mut self, key: &str, node: Node) {
        self.0.push(Entry { key: key.to_owned(), key_origin: None, node });
    }

    /// The node of a key, made when it is not there.
    fn slot(&mut self, key: &str, key_origin: Option<Origin>) -> &mut Node {
        let found = self.0.iter().position(|entry| entry.key == key);
        let index = found.unwrap_or_else(|| {
            let node = Node { origin: key_origin, value: Value::Table(Self::default()) };
            self.0.push(Entry { key: key.to_owned(), key_origin, node });
            self.0.len() - 1
        });
        &mut self.0[index].node
    }
}

/// Copies a parsed TOML table; `shift` is where its text starts in the text with index `text`.
pub(crate) fn table(parsed: &DeTable<'_>, text: usize, shift: usize, depth: usize) -> Table {
    let mut entries: Vec<(usize, Entry)> = parsed
        .iter()
        .map(|(key, value)| {
            let node = node(value.get_ref(), value.span(), text, shift, depth + 1);
            let key_origin = Some(origin(text, key.span(), shift));
            (key.span().start, Entry { key: key.get_ref().to_string(), key_origin, node })
        })
        .collect();
    // The parser sorts by name; the order of a sweep is the order of the file.
    entries.sort_by_key(|(start, _)| *start);
    Table(entries.into_iter().map(|(_, entry)| entry).collect())
}

/// Copies a parsed TOML value.
pub(crate) fn node(parsed: &DeValue<'_>, span: Range<usize>, text: usize, shift: usize, depth: usize) -> Node {
    let value = match parsed {
        DeValue::Array(_) | DeValue::Table(_) if depth > MAX_DEPTH => Value::Other("a table nested too deep"),
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix())
            .map_or(Value::Other("one beyond 64 bits"), Value::Integer),
        DeValue::Float(digits) => {
            digits.as_str().parse().map_or(Value::Other("a number that cannot be read"), Value::Number)
        }
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => Value::Other("a date or time of day"),
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| node(item.get_ref(), item.span(), text, shift, depth + 1)).collect())
        }
        DeValue::Table(inner) => Value::Table(table(inner, text, shift, depth)),
    };
    Node { origin: Some(origin(text, span, shift)), value }
}

fn origin(text: usize, span: Range<usize>, shift: usize) -> Origin {
    Origin::new(text, span.start + shift..span.end + shift)
}

/// Puts a value where there is none.
pub(crate) fn put_default(root: &mut Node, path: &[&str], value: Value) {
    let parent = path.first().filter(|_| path.len() > 1).and_then(|section| root.at(section));
    let is_table = parent.is_none_or(|node| node.table().is_some());
    if is_table && root.at(&path.join(".")).is_none() {
        root.put(path, None, value.into());
    }
}
