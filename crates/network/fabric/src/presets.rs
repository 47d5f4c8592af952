//! Networks of past experiments, and some of today, each as the `[network]` table of an experiment file.

/// A network with a name. Its page, with the source of every number, is `docs/reference/networks/<name>.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name, as in `preset = "ideal"`.
    pub name: &'static str,
    /// The content of the `[network]` table, with comments.
    pub toml: &'static str,
}

/// All presets, the default network first.
pub fn presets() -> &'static [Preset] {
    PRESETS
}

/// The preset with this name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(Preset { name: $name, toml: include_str!(concat!("../presets/", $name, ".toml")) }),*]
    };
}

const PRESETS: &[Preset] = presets![
    "ideal",
    "myrinet-oct-sw8",
    "myrinet-clos-128",
    "ds-link-clos",
    "ds-link-grid",
    "ds-link-torus",
    "fast-ethernet",
    "gigabit-ethernet",
    "atm-155",
    "velo-prototype",
    "infiniband-hdr-fat-tree",
    "infiniband-ndr-fat-tree",
    "slingshot-dragonfly",
    "ethernet-25g-rack",
    "roce-100g-clos",
    "ethernet-400g-leaf-spine",
    "ethernet-800g-leaf-spine",
];
