//! Keys of `[network]` whose defaults are those of the preset.

use crate::schema::*;

/// The default network: a crossbar with a port for each node.
pub(crate) const DEFAULT_NETWORK: &str = "ideal";
/// The value of the preset, which has every key that its own tags want.
pub(super) const PRESET: KeyDefault = KeyDefault::Derived("the preset's");

pub(super) const ONE: KeyDefault = KeyDefault::Integer(1);

pub(super) const fn of_preset(name: &'static str, kind: KeyKind, doc: &'static str) -> Key {
    key(name, kind, PRESET, doc)
}
