//! Tables whose keys depend on a tag, and keys that take one of some words. Each variant and each word carries what it
//! means for the plan, so that none can be described and not be built.

use crate::{
    schema::{AnyChoice, AnyWords, Form, Key, KeyDefault},
    tree::Node,
    view::{CHECKED, View},
};

/// A table whose keys depend on one of them, its tag.
pub(crate) struct Choice<T: 'static> {
    pub(crate) tag: &'static str,
    /// Noun for the choice, as in "unknown shaping".
    pub(crate) what: &'static str,
    pub(crate) default: KeyDefault,
    /// Keys of every variant.
    pub(crate) common: &'static [Key],
    pub(crate) variants: &'static [Variant<T>],
}

/// One value of a tag.
pub(crate) struct Variant<T> {
    pub(crate) form: Form,
    /// Its meaning: in most tables the function that makes its part of the plan.
    pub(crate) means: T,
}

/// Makes a part of the plan from its table.
pub(crate) type Make<T> = fn(View<'_>) -> T;

/// The words that a key takes.
pub(crate) struct Words<T: 'static>(pub(crate) &'static [Word<T>]);

/// A word, and the value that it means.
pub(crate) struct Word<T> {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) means: T,
}

/// A choice whose tag is `type` and whose variants have no key in common.
pub(crate) const fn choice<T>(what: &'static str, default: KeyDefault, variants: &'static [Variant<T>]) -> Choice<T> {
    Choice { tag: "type", what, default, common: &[], variants }
}

pub(crate) const fn variant<T>(name: &'static str, doc: &'static str, keys: &'static [Key], means: T) -> Variant<T> {
    Variant { form: Form { name, doc, keys }, means }
}

pub(crate) const fn word<T>(name: &'static str, doc: &'static str, means: T) -> Word<T> {
    Word { name, doc, means }
}

impl<T> Choice<T> {
    /// The meaning of a tag.
    pub(crate) fn named(&self, name: &str) -> Option<&'static T> {
        self.variants.iter().find(|variant| variant.form.name == name).map(|variant| &variant.means)
    }

    /// The meaning of the tag of an unchecked table; that of the default when there is no tag.
    pub(crate) fn written(&self, table: Option<&Node>) -> Option<&'static T> {
        match (table.and_then(|table| table.at(self.tag)), &self.default) {
            (Some(tag), _) => self.named(tag.text()?),
            (None, KeyDefault::Text(name)) => self.named(name),
            (None, _) => None,
        }
    }

    /// The meaning of the tag of a checked table.
    pub(crate) fn of(&self, table: View<'_>) -> &'static T {
        self.named(table.text(self.tag)).expect(CHECKED)
    }
}

impl<T> Choice<Make<T>> {
    /// Makes the part of the plan that a checked table describes.
    pub(crate) fn make(&self, table: View<'_>) -> T {
        self.of(table)(table)
    }
}

impl<T: Copy> Words<T> {
    /// The value of a word.
    pub(crate) fn named(&self, name: &str) -> Option<T> {
        self.0.iter().find(|word| word.name == name).map(|word| word.means)
    }

    /// The value of the word at a path of a checked table.
    pub(crate) fn at(&self, table: View<'_>, path: &str) -> T {
        self.named(table.text(path)).expect(CHECKED)
    }
}

impl<T: Sync> AnyChoice for Choice<T> {
    fn tag(&self) -> &'static str {
        self.tag
    }

    fn what(&self) -> &'static str {
        self.what
    }

    fn default(&self) -> &KeyDefault {
        &self.default
    }

    fn common(&self) -> &'static [Key] {
        self.common
    }

    fn forms(&self) -> Vec<&'static Form> {
        self.variants.iter().map(|variant| &variant.form).collect()
    }
}

impl<T: Sync> AnyWords for Words<T> {
    fn all(&self) -> Vec<(&'static str, &'static str)> {
        self.0.iter().map(|word| (word.name, word.doc)).collect()
    }
}
