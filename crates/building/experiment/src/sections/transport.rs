//! `[transport]`: how nodes talk. Its keys are made from the registry of transports.

use crate::{
    choice::{Choice, Variant},
    schema::{Form, Key, KeyDefault, KeyKind, key},
    tree::Value,
    view::View,
};
use evb_transport_registry::{ALL, Setting, SettingValue, TransportChoice, TransportInfo};

/// The transports, each with its part of [`KEYS`].
pub(super) static TRANSPORT: Choice<&'static TransportInfo> =
    Choice { tag: "type", what: "transport", default: KeyDefault::Text(ALL[0].name), variants: &VARIANTS, common: &[] };

/// The transport of a checked table, with all its settings.
pub(super) fn choice_of(table: View<'_>) -> TransportChoice {
    let about = TRANSPORT.of(table);
    let value = |name: &'static str| match &table.0.at(name)?.value {
        Value::Text(text) => Some((name.to_owned(), text.clone())),
        Value::Integer(number) => Some((name.to_owned(), number.to_string())),
        _ => None,
    };
    TransportChoice::new(about, about.settings.iter().filter_map(|setting| value(setting.name)).collect())
}

static VARIANTS: [Variant<&'static TransportInfo>; ALL.len()] = {
    let mut variants = [const { Variant { form: Form { name: "", doc: "", keys: &[] }, means: ALL[0] } }; ALL.len()];
    let (mut index, mut rest): (usize, &[Key]) = (0, &KEYS);
    while index < ALL.len() {
        let (keys, behind) = rest.split_at(ALL[index].settings.len());
        let form = Form { name: ALL[index].name, doc: ALL[index].doc, keys };
        variants[index] = Variant { form, means: ALL[index] };
        (index, rest) = (index + 1, behind);
    }
    variants
};

/// The settings of all transports, one after another.
static KEYS: [Key; count()] = {
    let mut keys = [const { key("", KeyKind::Text, KeyDefault::Absent, "") }; count()];
    let (mut index, mut next) = (0, 0);
    while index < ALL.len() {
        let (settings, mut own) = (ALL[index].settings, 0);
        while own < settings.len() {
            keys[next] = of_setting(&settings[own]);
            (own, next) = (own + 1, next + 1);
        }
        index += 1;
    }
    keys
};

const fn count() -> usize {
    let (mut index, mut count) = (0, 0);
    while index < ALL.len() {
        (count, index) = (count + ALL[index].settings.len(), index + 1);
    }
    count
}

const fn of_setting(setting: &'static Setting) -> Key {
    let (kind, default) = match setting.value {
        SettingValue::Text { default } => (KeyKind::Text, KeyDefault::Text(default)),
        SettingValue::Integer { min, max, default } => (KeyKind::Integer { min, max }, KeyDefault::Integer(default)),
    };
    key(setting.name, kind, default, setting.doc)
}
