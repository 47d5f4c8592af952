//! Checks a tree against the table of keys and fills in the defaults. The result has every key, in the order of
//! the table, each with a value of its kind. Rules on several keys are those of the sections.

use crate::{
    diagnostics::Problem,
    limits::MAX_FOUND,
    scalar::{self, brief, closest},
    schema::{AnyChoice, Form, Key, KeyDefault, KeyKind, NONE},
    sections::ROOT,
    suggest::{for_key, table_name},
    tree::{Entry, Node, Table, Value},
};

/// Checks the whole file.
pub(crate) fn check(root: &Node) -> Result<Node, Vec<Problem>> {
    let mut checker = Checker { problems: Vec::new() };
    let table = checker.table(root, &ROOT.iter().collect::<Vec<_>>(), None, "");
    if checker.problems.is_empty() { Ok(Value::Table(table).into()) } else { Err(checker.problems) }
}

/// The choice that a table belongs to, and what was chosen.
struct Tag {
    choice: &'static dyn AnyChoice,
    chosen: &'static Form,
    is_default: bool,
}

struct Checker {
    problems: Vec<Problem>,
}

impl Checker {
    /// Checks every key of a table; `tag` is the choice that it belongs to.
    fn table(&mut self, node: &Node, keys: &[&'static Key], tag: Option<Tag>, path: &str) -> Table {
        let empty = Table::default();
        let found = node.table().unwrap_or(&empty);
        let names = || tag.iter().map(|tag| tag.choice.tag()).chain(keys.iter().map(|key| key.name));
        for entry in &found.0 {
            if !self.is_full() && !names().any(|name| name == entry.key) {
                let foreign = tag.as_ref().and_then(|tag| foreign_key(entry, tag));
                self.problems.push(foreign.unwrap_or_else(|| unknown_key(entry, names().collect(), path)));
            }
        }
        let mut filled = Table::default();
        for key in keys {
            let path = join(path, key.name);
            let value = match found.get(key.name) {
                Some(value) => self.value(key, value, &path),
                None => self.absent(key, node, &path),
            };
            if let Some(value) = value {
                filled.push(key.name, value);
            }
        }
        filled
    }

    /// Checks a value that is there.
    fn value(&mut self, key: &Key, node: &Node, path: &str) -> Option<Node> {
        let value = match &key.kind {
            KeyKind::SectionOrNone(_) if node.text() == Some(NONE) => node.value.clone(),
            KeyKind::SectionOrNone(_) if node.table().is_none() => {
                self.problems.push(neither_table_nor_none(node, path));
                return None;
            }
            KeyKind::Section(_) | KeyKind::SectionOrNone(_) | KeyKind::Choice(_) => {
                self.group(&key.kind, node, path)?
            }
            KeyKind::List { item, most } => self.list(key, item, *most, node, path)?,
            KeyKind::Keep { table, .. } if node.table().is_some() => {
                Value::Table(self.table(node, &table.iter().collect::<Vec<_>>(), None, path))
            }
            KeyKind::Keep { words, .. } if words.all().iter().any(|(name, _)| node.text() == Some(*name)) => {
                node.value.clone()
            }
            KeyKind::Like { .. } if node.table().is_none() => {
                self.problems.push(not_a_table(node, path));
                return None;
            }
            KeyKind::Like { .. } => node.value.clone(),
            // The sweep was taken out of the tree before.
            KeyKind::Sweep => return None,
            _ => match scalar::check(key, node, path) {
                Some(problem) => {
                    self.problems.push(problem);
                    return None;
                }
                None => node.value.clone(),
            },
        };
        Some(Node { origin: node.origin, value })
    }

    /// Checks a section or a tagged table.
    fn group(&mut self, kind: &KeyKind, node: &Node, path: &str) -> Option<Value> {
        let Some(table) = node.table() else {
            self.problems.push(not_a_table(node, path));
            return None;
        };
        let table = match kind {
            KeyKind::Choice(choice) => self.choice(*choice, table, node, path)?,
            _ => self.table(node, &kind.keys(), None, path),
        };
        Some(Value::Table(table))
    }

    fn choice(&mut self, choice: &'static dyn AnyChoice, table: &Table, node: &Node, path: &str) -> Option<Table> {
        let tag_path = join(path, choice.tag());
        let Some(tag) = table.get(choice.tag()).cloned().or_else(|| default_node(choice.default())) else {
            self.missing_tag(choice, table, node, path);
            return None;
        };
        let Some(chosen) = tag.text().and_then(|name| choice.form(name)) else {
            self.problems.push(unknown_variant(choice, &tag, &tag_path));
            return None;
        };
        let keys: Vec<_> = choice.common().iter().chain(chosen.keys).collect();
        // What is derived has no place in the text, as a plain default.
        let belongs = Tag { choice, chosen, is_default: tag.origin.is_none() };
        let rest = self.table(node, &keys, Some(belongs), path);
        let mut filled = Table::default();
        filled.push(choice.tag(), tag);
        filled.0.extend(rest.0);
        Some(filled)
    }

    fn missing_tag(&mut self, choice: &'static dyn AnyChoice, table: &Table, node: &Node, path: &str) {
        let keys = choice.keys();
        let unknown = table.0.iter().filter(|entry| !keys.iter().any(|key| key.name == entry.key));
        let names = || std::iter::once(choice.tag()).chain(keys.iter().map(|key| key.name)).collect();
        self.problems.extend(unknown.take(MAX_FOUND).map(|entry| unknown_key(entry, names(), path)));
        let message = format!("`{}` is missing", join(path, choice.tag()));
        let help = format!("add {} = ..., one of {}", choice.tag(), choice.names());
        self.problems.push(Problem::new(message, help).at(node.origin, format!("no `{}` here", choice.tag())));
    }

    fn list(&mut self, key: &Key, item: &KeyKind, most: usize, node: &Node, path: &str) -> Option<Value> {
        let Some(items) = node.list() else {
            let help = format!("write [[{path}]] with double brackets, once for each");
            let message = format!("`{path}` must be {}", key.kind.describe());
            self.problems.push(Problem::new(message, help).at(node.origin, "not a list"));
            return None;
        };
        if items.len() > most {
            let message = format!("`{path}` has {} tables, more than {most}", items.len());
            self.problems.push(Problem::new(message, "leave some out").at(node.origin, "too many"));
            return None;
        }
        let mut checked = Vec::new();
        for (index, inner) in items.iter().enumerate() {
            if self.is_full() {
                break;
            }
            let value = self.group(item, inner, &format!("{path}.{index}"));
            checked.extend(value.map(|value| Node { origin: inner.origin, value }));
        }
        Some(Value::List(checked))
    }

    /// True if enough is wrong to stop looking.
    fn is_full(&self) -> bool {
        self.problems.len() >= MAX_FOUND
    }

    /// Fills in a key that is not there, or says that it must be.
    fn absent(&mut self, key: &Key, place: &Node, path: &str) -> Option<Node> {
        if let Some(node) = default_node(&key.default) {
            return Some(node);
        }
        match (&key.kind, &key.default) {
            // A derived default is in the tree by now, unless what it follows from is missing too.
            (_, KeyDefault::Required | KeyDefault::Derived(_)) => {
                let table = table_name(path.rsplit_once('.').map_or("", |(table, _)| table));
                let help = format!("add {} = {} to {table}: {}", key.name, key.kind.example(), key.doc);
                let label = format!("no `{}` here", key.name);
                self.problems.push(Problem::new(format!("`{path}` is missing"), help).at(place.origin, label));
                None
            }
            // Sections are there even when they are empty; a choice inside one is not.
            (KeyKind::Section(_) | KeyKind::Choice(_), KeyDefault::Absent) if !path.contains('.') => {
                let nothing = Node::from(Value::Table(Table::default()));
                self.value(key, &nothing, path)
            }
            _ => None,
        }
    }
}

/// `path.name`, or just `name` at the top.
fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn default_node(default: &KeyDefault) -> Option<Node> {
    let value = match *default {
        KeyDefault::Text(text) => Value::Text(text.to_owned()),
        KeyDefault::Integer(number) => Value::Integer(number),
        KeyDefault::Number(number) => Value::Number(number),
        KeyDefault::Flag(flag) => Value::Flag(flag),
        KeyDefault::Required | KeyDefault::Absent | KeyDefault::Derived(_) => return None,
    };
    Some(value.into())
}

/// A key that the table at `path`, which takes `names`, does not have.
fn unknown_key(entry: &Entry, names: Vec<&str>, path: &str) -> Problem {
    let message = format!("unknown key {} in {}", brief(&entry.key), table_name(path));
    Problem::new(message, for_key(&entry.key, names, path)).at(entry.key_origin, "unknown key")
}

/// A key that would be good with another tag.
fn foreign_key(entry: &Entry, tag: &Tag) -> Option<Problem> {
    let Tag { choice, chosen, is_default } = tag;
    let has = |other: &&Form| other.keys.iter().any(|key| key.name == entry.key);
    let owner = choice.forms().into_iter().find(has)?.name;
    let (key, name, chosen) = (&entry.key, choice.tag(), chosen.name);
    let default = if *is_default { ", which is the default" } else { "" };
    let message = format!("`{key}` does not go with the {} {chosen:?}{default}", choice.what());
    let help = format!("remove `{key}`, or write {name} = {owner:?}, which has it");
    Some(Problem::new(message, help).at(entry.key_origin, format!("not a key of {chosen:?}")))
}

fn unknown_variant(choice: &'static dyn AnyChoice, tag: &Node, path: &str) -> Problem {
    let known = format!("this version has {}", choice.names());
    let Some(text) = tag.text() else {
        let message = format!("`{path}` must be a text");
        return Problem::new(message, known).at(tag.origin, "not a text");
    };
    let near = closest(text, choice.forms().into_iter().map(|form| form.name));
    let near = near.map(|near| format!("did you mean {near:?}? ")).unwrap_or_default();
    let message = format!("unknown {} {}", choice.what(), brief(text));
    Problem::new(message, format!("{near}{known}")).at(tag.origin, "unknown")
}

fn neither_table_nor_none(node: &Node, path: &str) -> Problem {
    let help = format!("write the keys of the table, or {NONE:?} if there is none, whatever the preset has");
    Problem::new(format!("`{path}` must be a table or {NONE:?}"), help).at(node.origin, "neither")
}

fn not_a_table(node: &Node, path: &str) -> Problem {
    let help = match path.contains('.') {
        true => format!("write a table, such as {} = {{ type = ... }}", path.rsplit('.').next().unwrap_or(path)),
        false => format!("begin a section with [{path}], and give its keys below it"),
    };
    Problem::new(format!("`{path}` must be a table"), help).at(node.origin, "not a table")
}
