//! The keys of `[transport]`, made from the registry of transports.

use super::key;
use crate::schema::{Choice, Default, Key, Kind, Variant};
use evb_transports::{ALL, Setting, SettingValue};

pub(super) static TRANSPORT: Choice =
    Choice { tag: "type", what: "transport", default: Default::Text(ALL[0].name), variants: &VARIANTS, common: &[] };

/// The transports, each with its part of [`KEYS`].
static VARIANTS: [Variant; ALL.len()] = {
    let mut variants = [const { Variant { name: "", doc: "", keys: &[] } }; ALL.len()];
    let (mut index, mut rest): (usize, &[Key]) = (0, &KEYS);
    while index < ALL.len() {
        let (keys, behind) = rest.split_at(ALL[index].settings.len());
        variants[index] = Variant { name: ALL[index].name, doc: ALL[index].doc, keys };
        (index, rest) = (index + 1, behind);
    }
    variants
};

/// The settings of all transports, one after another.
static KEYS: [Key; count()] = {
    let mut keys = [const { key("", Kind::Text, Default::Absent, "") }; count()];
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
        SettingValue::Text { default } => (Kind::Text, Default::Text(default)),
        SettingValue::Integer { min, max, default } => (Kind::Integer { min, max }, Default::Integer(default)),
    };
    key(setting.name, kind, default, setting.doc)
}
