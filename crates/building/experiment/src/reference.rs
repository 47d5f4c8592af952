//! The reference page of the experiment file, made from the keys of the sections.

use crate::{
    schema::{AnyChoice, Form, Key, KeyDefault, KeyKind, NONE, preset_names},
    sections::ROOT,
};

const HEAD: &str = "<!-- Made from the keys in crates/building/experiment/src/sections; do not edit. -->

# The experiment file

One TOML file describes one event builder. Every quantity is a text with its unit: `\"2 kB\"`, `\"100 kHz\"`, `\"4 us\"`;
kB = 1000 B, KiB = 1024 B. Where there is a choice, `type` makes it, and decides which other keys there are. Paths may
hold environment variables as `${NAME}`. `evb check FILE` prints a file with every default filled in, and
`--set key.path=value` changes a key from the command line.
";

const SWEEP: &str = "Each key is the path of another key, in quotes, and its value a list: one plan is made for each
combination, in the order of the file, the last key running fastest. A key given by `--set` is not swept. Tables in a
list are counted from 0, as in `\"fault.0.at\"`; a whole table can be swept as well. Several keys with commas between them get
the same value, or each its own from a list with one for each key:

```toml
[sweep]
\"readout.units, builder.units\" = [2, 4, 8]
\"readout.source.size, builder.slots\" = [[\"2 kB\", 64], [\"16 kB\", 8]]
\"shaping\" = [{ type = \"none\" }, { type = \"grouping\", packet = \"32 KiB\" }]
```
";

/// The reference page in Markdown.
pub fn reference() -> String {
    let (sections, plain): (Vec<&Key>, Vec<&Key>) = ROOT.iter().partition(|key| is_section(&key.kind));
    let mut page = format!("{HEAD}\n## At the top\n\n");
    table(&mut page, &plain);
    for key in sections {
        let header = if matches!(key.kind, KeyKind::List { .. }) {
            format!("[[{}]]", key.name)
        } else {
            format!("[{}]", key.name)
        };
        page.push_str(&format!("\n## `{header}`\n\n{}\n\n", key.doc));
        body(&mut page, &key.kind);
    }
    page
}

fn is_section(kind: &KeyKind) -> bool {
    matches!(kind, KeyKind::Section(_) | KeyKind::Choice(_) | KeyKind::List { .. } | KeyKind::Sweep)
}

/// Writes the text below the heading of a section, then the tables inside it, each under its path.
fn body(page: &mut String, kind: &KeyKind) {
    own(page, kind);
    let mut known = Vec::new();
    inner(page, kind, "", &mut known);
}

/// The keys of a table.
fn own(page: &mut String, kind: &KeyKind) {
    match kind {
        KeyKind::Section(keys) | KeyKind::SectionOrNone(keys) => table(page, &keys.iter().collect::<Vec<_>>()),
        KeyKind::Choice(inner) => choice(page, *inner),
        KeyKind::List { item, .. } => own(page, item),
        _ => page.push_str(SWEEP),
    }
}

/// The tables inside a table. A part in several places, as `source` and `framing`, is described once.
fn inner(page: &mut String, kind: &KeyKind, path: &str, known: &mut Vec<(&'static str, usize)>) {
    for key in kind.keys() {
        if !has_tables(&key.kind) {
            continue;
        }
        let part = match &key.kind {
            KeyKind::Choice(choice) => (choice.what(), 0),
            kind => (key.name, kind.keys().len()),
        };
        if known.contains(&part) {
            continue;
        }
        known.push(part);
        let path = if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
        page.push_str(&format!("\n### `{path}`\n\n"));
        own(page, &key.kind);
        inner(page, &key.kind, &path, known);
    }
}

fn has_tables(kind: &KeyKind) -> bool {
    matches!(kind, KeyKind::Section(_) | KeyKind::SectionOrNone(_) | KeyKind::Choice(_) | KeyKind::List { .. })
}

fn choice(page: &mut String, choice: &dyn AnyChoice) {
    let (tag, forms) = (choice.tag(), choice.forms());
    page.push_str(&format!("| `{tag}` | meaning | keys |\n|---|---|---|\n"));
    for form in &forms {
        page.push_str(&format!("| `\"{}\"` | {} | {} |\n", form.name, form.doc, key_names(form)));
    }
    page.push_str(&match choice.default() {
        KeyDefault::Required => format!("\n`{tag}` must be given.\n\n"),
        given => format!("\nDefault: {}.\n\n", default(given)),
    });
    let mut keys: Vec<&Key> = Vec::new();
    for key in choice.common().iter().chain(forms.iter().flat_map(|form| form.keys)) {
        if !keys.iter().any(|known| known.name == key.name && known.doc == key.doc) {
            keys.push(key);
        }
    }
    table(page, &keys);
}

fn key_names(form: &Form) -> String {
    form.keys.iter().map(|key| format!("`{}`", key.name)).collect::<Vec<_>>().join(", ")
}

fn table(page: &mut String, keys: &[&Key]) {
    page.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
    for key in keys {
        let (name, value, default) = (key.name, value(&key.kind), default(&key.default));
        page.push_str(&format!("| `{name}` | {value} | {default} | {} |\n", key.doc));
    }
}

fn default(default: &KeyDefault) -> String {
    match default {
        KeyDefault::Required => "must be given".to_owned(),
        KeyDefault::Absent => "none".to_owned(),
        KeyDefault::Text(text) => format!("`{text:?}`"),
        KeyDefault::Integer(number) => format!("`{number}`"),
        KeyDefault::Number(number) => format!("`{number:?}`"),
        KeyDefault::Flag(flag) => format!("`{flag}`"),
        KeyDefault::Derived(how) => (*how).to_owned(),
    }
}

fn value(kind: &KeyKind) -> String {
    match kind {
        KeyKind::Text | KeyKind::Name => "text".to_owned(),
        KeyKind::Path => "path".to_owned(),
        KeyKind::Address => "`\"host:port\"`".to_owned(),
        KeyKind::Unit => "name of a node".to_owned(),
        KeyKind::Integer { min, max: i64::MAX } => format!("whole number from {min}"),
        KeyKind::Integer { min, max } => format!("whole number, {min} to {max}"),
        KeyKind::Number { min, max } => format!("number, {min} to {max}"),
        KeyKind::Bytes { min, max } => format!("byte count, {min} to {max}"),
        KeyKind::Time { min, max } => format!("time, {min} to {max}"),
        KeyKind::Rate { min, max } => format!("frequency, {min} to {max}"),
        KeyKind::Bandwidth { min, max } => format!("bandwidth, {min} to {max}"),
        KeyKind::Flag => "`true` or `false`".to_owned(),
        KeyKind::Preset => preset_names().map(|name| format!("`{name:?}`")).collect::<Vec<_>>().join(" or "),
        KeyKind::Integers { min, max, .. } => format!("list of whole numbers, each {min} to {max}"),
        KeyKind::Range => "list of two numbers, the lower one first".to_owned(),
        KeyKind::Names { least: 2, most: 2 } => "list of two names".to_owned(),
        KeyKind::Names { .. } => "list of names".to_owned(),
        KeyKind::Word(words) => {
            words.all().into_iter().map(|(name, doc)| format!("`{name:?}` ({doc})")).collect::<Vec<_>>().join(" or ")
        }
        KeyKind::Keep { .. } => "`\"all\"`, `\"none\"`, or `{ one_in = 10 }`".to_owned(),
        KeyKind::IntegerOr { min, max: i64::MAX, word } => format!("`\"{word}\"`, or a whole number from {min}"),
        KeyKind::IntegerOr { min, max, word } => format!("`\"{word}\"`, or a whole number, {min} to {max}"),
        KeyKind::Section(_) | KeyKind::Choice(_) | KeyKind::Sweep => "table, see below".to_owned(),
        KeyKind::SectionOrNone(_) => format!("table, see below, or `{NONE:?}`"),
        KeyKind::Free { most } => format!("table of texts, numbers and flags, at most {most}"),
        KeyKind::Like { section, .. } => format!("table, as `[{section}]`"),
        KeyKind::List { .. } => "list of tables".to_owned(),
    }
}
