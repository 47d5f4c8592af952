//! The description of keys. The modules of the sections hold the keys themselves, and the checks, the defaults and the
//! reference page all come from them.

use crate::limits::{MAX_BANDWIDTH, MAX_DELAY, MAX_WAIT, MIN_BANDWIDTH, MIN_WAIT};
use evb_core::{Bandwidth, ByteCount, Frequency, Span};

/// One key of the file.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: KeyKind,
    pub(crate) default: KeyDefault,
    /// Its meaning: a sentence fragment for the reference page.
    pub(crate) doc: &'static str,
}

/// The value of a key that the file leaves out.
pub(crate) enum KeyDefault {
    /// The file must say.
    Required,
    /// Nothing.
    Absent,
    Text(&'static str),
    Integer(i64),
    Number(f64),
    Flag(bool),
    /// Made from other keys before the check; the text describes the rule.
    Derived(&'static str),
}

/// What a file writes in the place of a table that its preset has, and it has not.
pub(crate) const NONE: &str = "none";

/// The values that a key takes.
pub(crate) enum KeyKind {
    Text,
    /// A text that can be part of a file name.
    Name,
    Path,
    /// `host:port`.
    Address,
    /// `evm`, `ru0`, `bu0` and so on.
    Unit,
    Integer {
        min: i64,
        max: i64,
    },
    Number {
        min: f64,
        max: f64,
    },
    Bytes {
        min: ByteCount,
        max: ByteCount,
    },
    Time {
        min: Span,
        max: Span,
    },
    Rate {
        min: Frequency,
        max: Frequency,
    },
    Bandwidth {
        min: Bandwidth,
        max: Bandwidth,
    },
    Flag,
    Word(&'static dyn AnyWords),
    /// The name of a preset of the network.
    Preset,
    /// A list of whole numbers.
    Integers {
        min: i64,
        max: i64,
        most: usize,
    },
    /// A list of two numbers, the lower one first.
    Range,
    /// A list of names.
    Names {
        least: usize,
        most: usize,
    },
    /// `"all"`, `"none"` or `{ one_in = n }`.
    Keep {
        words: &'static dyn AnyWords,
        table: &'static [Key],
    },
    /// A whole number, or a word instead.
    IntegerOr {
        min: i64,
        max: i64,
        word: &'static str,
    },
    Section(&'static [Key]),
    /// A table that a preset may have, or `"none"` in its place.
    SectionOrNone(&'static [Key]),
    Choice(&'static dyn AnyChoice),
    List {
        item: &'static KeyKind,
        most: usize,
    },
    /// A table with the keys of another section. It is checked in the tree that it becomes a part of.
    Like {
        section: &'static str,
        table: &'static KeyKind,
    },
    /// A table whose keys evb does not know: texts, numbers and flags for others.
    Free {
        most: usize,
    },
    /// Key paths and lists of values.
    Sweep,
}

pub(crate) const fn key(name: &'static str, kind: KeyKind, default: KeyDefault, doc: &'static str) -> Key {
    Key { name, kind, default, doc }
}

/// A key that must be in the file.
pub(crate) const fn required(name: &'static str, kind: KeyKind, doc: &'static str) -> Key {
    key(name, kind, KeyDefault::Required, doc)
}

/// A key without a value if it is not in the file.
pub(crate) const fn optional(name: &'static str, kind: KeyKind, doc: &'static str) -> Key {
    key(name, kind, KeyDefault::Absent, doc)
}

pub(crate) const fn integer(min: i64, max: i64) -> KeyKind {
    KeyKind::Integer { min, max }
}

pub(crate) const fn number(min: f64, max: f64) -> KeyKind {
    KeyKind::Number { min, max }
}

pub(crate) const fn bytes(min: u64, max: ByteCount) -> KeyKind {
    KeyKind::Bytes { min: ByteCount(min), max }
}

pub(crate) const fn bandwidth() -> KeyKind {
    KeyKind::Bandwidth { min: MIN_BANDWIDTH, max: MAX_BANDWIDTH }
}

/// A time from zero.
pub(crate) const fn time(max: Span) -> KeyKind {
    KeyKind::Time { min: Span::ZERO, max }
}

/// The delay of a part of the network.
pub(crate) const fn delay() -> KeyKind {
    time(MAX_DELAY)
}

pub(crate) const fn wait() -> KeyKind {
    KeyKind::Time { min: MIN_WAIT, max: MAX_WAIT }
}

impl KeyKind {
    /// The expected kind of value, with its article.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Self::Text | Self::Name => "a text",
            Self::Path => "a path",
            Self::Address => "an address",
            Self::Unit => "the name of a node",
            Self::Integer { .. } => "a whole number",
            Self::Number { .. } => "a number",
            Self::Bytes { .. } => "a byte count with its unit",
            Self::Time { .. } => "a time with its unit",
            Self::Rate { .. } => "a frequency with its unit",
            Self::Bandwidth { .. } => "a bandwidth with its unit",
            Self::Flag => "true or false",
            Self::Word(_) => "a word",
            Self::Preset => "the name of a preset",
            Self::Integers { .. } => "a list of whole numbers",
            Self::Range => "a list of two numbers",
            Self::Names { least: 2, most: 2 } => "a list of two names",
            Self::Names { .. } => "a list of names",
            Self::Keep { .. } => "\"all\", \"none\" or { one_in = 10 }",
            Self::IntegerOr { word: "auto", .. } => "a whole number or \"auto\"",
            Self::IntegerOr { .. } => "a whole number or \"any\"",
            Self::Section(_) | Self::Choice(_) | Self::Like { .. } | Self::Free { .. } | Self::Sweep => "a table",
            Self::SectionOrNone(_) => "a table or \"none\"",
            Self::List { .. } => "a list of tables",
        }
    }

    /// A good value, as written in the file.
    pub(crate) fn example(&self) -> String {
        match self {
            Self::Text | Self::Name => "\"first try\"".to_owned(),
            Self::Path => "\"${EVB_DATA}/file\"".to_owned(),
            Self::Address => "\"127.0.0.1:9000\"".to_owned(),
            Self::Unit => "\"ru0\"".to_owned(),
            Self::Integer { min, max } => 8.clamp(*min, *max).to_string(),
            Self::Number { .. } => "1.0".to_owned(),
            Self::Bytes { .. } => "\"2 kB\"".to_owned(),
            Self::Time { .. } => "\"1 s\"".to_owned(),
            Self::Rate { .. } => "\"100 kHz\"".to_owned(),
            Self::Bandwidth { .. } => "\"10 Gbit/s\"".to_owned(),
            Self::Flag => "true".to_owned(),
            Self::Preset => "\"ideal\"".to_owned(),
            Self::Integers { .. } => "[0, 1]".to_owned(),
            Self::Range => "[0, 100]".to_owned(),
            Self::Names { .. } => "[\"a\", \"b\"]".to_owned(),
            Self::Word(words) => format!("{:?}", words.all().first().map_or("", |(name, _)| *name)),
            Self::Keep { .. } => "\"all\"".to_owned(),
            Self::IntegerOr { word, .. } => format!("\"{word}\""),
            Self::Choice(choice) => {
                format!("{{ {} = {:?} }}", choice.tag(), choice.forms().first().map_or("", |form| form.name))
            }
            Self::Section(_) | Self::Like { .. } | Self::Free { .. } | Self::Sweep => "{}".to_owned(),
            Self::SectionOrNone(_) => format!("{NONE:?}"),
            Self::List { .. } => "[]".to_owned(),
        }
    }

    /// The keys that a table of this kind can have, with any tag.
    pub(crate) fn keys(&self) -> Vec<&'static Key> {
        match self {
            Self::Section(keys) | Self::SectionOrNone(keys) => keys.iter().collect(),
            Self::Choice(choice) => choice.keys(),
            Self::List { item, .. } => item.keys(),
            Self::Keep { table, .. } => table.iter().collect(),
            Self::Like { table, .. } => table.keys(),
            _ => Vec::new(),
        }
    }
}

/// Names in quotes, separated by commas.
pub(crate) fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

/// Names as code, separated by commas.
pub(crate) fn coded<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The names of all presets of the network.
pub(crate) fn preset_names() -> impl Iterator<Item = &'static str> + Clone {
    evb_fabric::presets().iter().map(|preset| preset.name)
}

/// The name of a variant, and the keys that go with it.
pub(crate) struct Form {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) keys: &'static [Key],
}

/// A choice without the meaning of its variants.
pub(crate) trait AnyChoice: Sync {
    fn tag(&self) -> &'static str;
    fn what(&self) -> &'static str;
    fn default(&self) -> &KeyDefault;
    fn common(&self) -> &'static [Key];
    fn forms(&self) -> Vec<&'static Form>;
}

impl dyn AnyChoice {
    /// The names of all variants, quoted, for a message.
    pub(crate) fn names(&self) -> String {
        quoted(self.forms().into_iter().map(|form| form.name))
    }

    /// The keys of all variants.
    pub(crate) fn keys(&self) -> Vec<&'static Key> {
        self.forms().into_iter().flat_map(|form| form.keys).chain(self.common()).collect()
    }

    pub(crate) fn form(&self, name: &str) -> Option<&'static Form> {
        self.forms().into_iter().find(|form| form.name == name)
    }
}

/// The words of a key without their values.
pub(crate) trait AnyWords: Sync {
    /// The name of each word and its meaning for the reader.
    fn all(&self) -> Vec<(&'static str, &'static str)>;
}
