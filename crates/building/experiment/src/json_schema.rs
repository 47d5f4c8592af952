//! The JSON Schema of the experiment file, made from the keys of the sections: editors complete and check files by it.

use crate::{
    limits::MAX_NAME,
    schema::{AnyChoice, Form, Key, KeyDefault, KeyKind, NONE, preset_names},
    sections::FILE,
};
use evb_core::QuantityError;
use serde_json::{Map, Value, json};
use std::{fmt::Display, str::FromStr};

/// The JSON Schema (draft 7) of the experiment file. A file that `evb check` accepts is valid; not every valid file is accepted,
/// for rules between keys are not in it.
///
/// ```
/// let schema: serde_json::Value = serde_json::from_str(&evb_experiment::json_schema()).unwrap();
/// assert!(schema["properties"]["trigger"].is_object());
/// ```
pub fn json_schema() -> String {
    let mut parts = Parts::default();
    let mut schema = parts.of_kind(&FILE);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("Experiment file of evb");
    schema["definitions"] = Value::Object(parts.made);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema has no maps with other keys than texts");
    text.push('\n');
    text
}

/// Tables that are in several places of the file.
#[derive(Default)]
struct Parts {
    made: Map<String, Value>,
    /// The name of each choice, by the names of its forms.
    names: Vec<(Vec<&'static str>, String)>,
}

impl Parts {
    fn of_key(&mut self, key: &Key) -> Value {
        let kind = self.of_kind(&key.kind);
        // Beside a reference, draft 7 ignores everything.
        let mut schema = if kind.get("$ref").is_some() { json!({ "allOf": [kind] }) } else { kind };
        schema["description"] = json!(match schema["description"].as_str() {
            Some(more) => format!("{} ({more})", key.doc),
            None => key.doc.to_owned(),
        });
        match key.default {
            KeyDefault::Text(text) => schema["default"] = json!(text),
            KeyDefault::Integer(number) => schema["default"] = json!(number),
            KeyDefault::Number(number) => schema["default"] = json!(number),
            KeyDefault::Flag(flag) => schema["default"] = json!(flag),
            KeyDefault::Required | KeyDefault::Absent | KeyDefault::Derived(_) => {}
        }
        schema
    }

    fn of_kind(&mut self, kind: &KeyKind) -> Value {
        match kind {
            KeyKind::Text | KeyKind::Path => json!({ "type": "string" }),
            KeyKind::Name => json!({ "type": "string", "minLength": 1, "maxLength": MAX_NAME }),
            KeyKind::Address => json!({ "type": "string", "pattern": ":[0-9]+$" }),
            KeyKind::Unit => json!({ "type": "string", "pattern": "^(evm|(ru|bu)[0-9]+)$" }),
            KeyKind::Integer { min, max } => integer(*min, *max),
            KeyKind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
            KeyKind::Bytes { min, max } => quantity(min, max),
            KeyKind::Time { min, max } => quantity(min, max),
            KeyKind::Rate { min, max } => quantity(min, max),
            KeyKind::Bandwidth { min, max } => quantity(min, max),
            KeyKind::Flag => json!({ "type": "boolean" }),
            KeyKind::Word(words) => one_of(words.all()),
            KeyKind::Preset => json!({ "enum": preset_names().collect::<Vec<_>>() }),
            KeyKind::Integers { min, max, most } => {
                json!({ "type": "array", "items": integer(*min, *max), "maxItems": most })
            }
            KeyKind::Range => json!({ "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2 }),
            KeyKind::Names { least, most } => json!({
                "type": "array", "items": { "type": "string", "minLength": 1 }, "minItems": least, "maxItems": most,
            }),
            KeyKind::Keep { words, table } => json!({ "anyOf": [one_of(words.all()), self.table(table, None)] }),
            KeyKind::IntegerOr { min, max, word } => json!({ "anyOf": [integer(*min, *max), { "const": word }] }),
            KeyKind::Section(keys) => self.table(keys, None),
            KeyKind::SectionOrNone(keys) => json!({ "anyOf": [self.table(keys, None), { "const": NONE }] }),
            KeyKind::Choice(choice) => self.part(*choice),
            KeyKind::List { item, most } => json!({ "type": "array", "items": self.of_kind(item), "maxItems": most }),
            KeyKind::Like { table, .. } => self.of_kind(table),
            KeyKind::Free { most } => json!({
                "type": "object", "maxProperties": most, "additionalProperties": { "type": ["string", "number", "boolean"] },
            }),
            KeyKind::Sweep => json!({ "type": "object" }),
        }
    }

    /// A reference to a choice, which is made where it is met first.
    fn part(&mut self, choice: &dyn AnyChoice) -> Value {
        let forms: Vec<_> = choice.forms().iter().map(|form| form.name).collect();
        let known = self.names.iter().find(|(known, _)| *known == forms).map(|(_, name)| name.clone());
        let name = known.unwrap_or_else(|| {
            let what = choice.what().replace(' ', "-");
            let others = self.names.iter().filter(|(_, name)| name.starts_with(&what)).count();
            let name = format!("{what}{}", "+".repeat(others));
            self.names.push((forms, name.clone()));
            let made = self.choice(choice);
            self.made.insert(name.clone(), made);
            name
        });
        json!({ "$ref": format!("#/definitions/{name}") })
    }

    /// A table with a variant for each form.
    fn choice(&mut self, choice: &dyn AnyChoice) -> Value {
        let forms = choice.forms().into_iter().map(|form| self.form(choice, form));
        json!({ "anyOf": forms.collect::<Vec<_>>() })
    }

    fn form(&mut self, choice: &dyn AnyChoice, form: &Form) -> Value {
        let mut table = self.table(choice.common(), Some(form.keys));
        table["title"] = json!(form.name);
        table["description"] = json!(form.doc);
        table["properties"][choice.tag()] = json!({ "const": form.name, "description": form.doc });
        let may_lack_tag = match choice.default() {
            KeyDefault::Text(name) => *name == form.name,
            default => !matches!(default, KeyDefault::Required),
        };
        let tag = (!may_lack_tag).then(|| choice.tag());
        let needed = form.keys.iter().filter(|key| matches!(key.default, KeyDefault::Required)).map(|key| key.name);
        table["required"] = tag.into_iter().chain(needed).collect();
        table
    }

    /// A table with these keys and no others. A section does not require its keys: a table of a list may have them from the section.
    fn table(&mut self, keys: &[Key], more: Option<&[Key]>) -> Value {
        let keys = keys.iter().chain(more.unwrap_or_default());
        let properties: Map<_, _> = keys.map(|key| (key.name.to_owned(), self.of_key(key))).collect();
        json!({ "type": "object", "properties": properties, "additionalProperties": false })
    }
}

fn integer(min: i64, max: i64) -> Value {
    json!({ "type": "integer", "minimum": min, "maximum": max })
}

/// Words with their meanings.
fn one_of(words: Vec<(&'static str, &'static str)>) -> Value {
    let described: Vec<_> = words.iter().map(|(word, doc)| format!("\"{word}\": {doc}")).collect();
    json!({ "enum": words.iter().map(|(word, _)| word).collect::<Vec<_>>(), "description": described.join("; ") })
}

/// A number with its unit.
fn quantity<T: FromStr<Err = QuantityError> + Display>(min: &T, max: &T) -> Value {
    // The error about an unknown unit has the known ones.
    let units = match "1 ?".parse::<T>() {
        Err(QuantityError::WrongUnit { known, .. }) => known.replace('"', "").replace(", ", "|"),
        _ => "\\S+".to_owned(),
    };
    json!({ "type": "string", "pattern": format!("^\\s*\\+?[0-9][0-9_.]*\\s*({units})\\s*$"), "description": format!("{min} to {max}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::ROOT;

    #[test]
    fn every_key_of_the_file_is_in_the_schema_and_every_reference_leads_somewhere() {
        let text = json_schema();
        let schema: Value = serde_json::from_str(&text).expect("JSON");
        assert!(ROOT.iter().all(|key| schema["properties"][key.name]["description"].is_string()));
        let references: Vec<_> =
            text.split("\"#/definitions/").skip(1).map(|rest| rest.split_once('"').unwrap().0).collect();
        assert!(references.len() > 10);
        assert!(references.iter().all(|name| schema["definitions"][name].is_object()), "{references:?}");
    }
}
