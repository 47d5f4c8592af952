//! Every preset is a network, has a page, and says what the papers say.

use crate::support::*;
use evb_core::Bandwidth;
use evb_fabric::*;
use std::path::Path;

fn read(preset: &Preset) -> NetworkConfig {
    toml::from_str(preset.toml).unwrap_or_else(|error| panic!("{}: {error}", preset.name))
}

/// All keys of a table, with those of the tables in it.
fn keys(table: &toml::Table, prefix: &str, into: &mut Vec<String>) {
    for (key, value) in table {
        let path = format!("{prefix}{key}");
        match value.as_table() {
            Some(inner) => keys(inner, &format!("{path}."), into),
            None => into.push(path),
        }
    }
}

#[test]
fn presets_are_valid_networks() {
    for preset in presets() {
        let network = Network::build(&read(preset)).unwrap_or_else(|error| panic!("{}: {error}", preset.name));
        let routes = all_routes(&network);
        assert_eq!(routes.check(&network), Ok(()), "{}", preset.name);
        assert_eq!(network.cyclic_dependency(&routes), None, "{}", preset.name);
        assert!(network.hosts() >= 2, "{}", preset.name);
    }
}

#[test]
fn all_keys_of_presets_are_read() {
    for preset in presets() {
        let config = NetworkConfig { preset: preset.name.to_owned(), ..read(preset) };
        let [mut given, mut known] = [Vec::new(), vec![]];
        keys(&preset.toml.parse().expect("it was read before"), "", &mut given);
        keys(&toml::Table::try_from(config).expect("a description is a table"), "", &mut known);
        known.retain(|key| key != "preset");
        given.sort();
        known.sort();
        assert_eq!(given, known, "{}", preset.name);
    }
}

#[test]
fn numbers_have_a_source() {
    for preset in presets() {
        for line in preset.toml.lines().filter(|line| line.chars().any(|c| c.is_ascii_digit())) {
            let said = line.contains('#') || line.ends_with("= 1") || line.ends_with("\"0 B\"");
            assert!(said, "{}: {line}", preset.name);
        }
    }
}

#[test]
fn presets_have_pages_and_names() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/networks");
    let index = std::fs::read_to_string(docs.join("README.md")).expect("there is an index");
    for known in presets() {
        assert_eq!(preset(known.name), Some(known));
        let page = std::fs::read_to_string(docs.join(format!("{}.md", known.name))).unwrap_or_default();
        assert!(page.contains("\n## Compared with theory\n"), "{} has no page, or compares nothing", known.name);
        assert!(index.contains(&format!("({}.md)", known.name)), "{} is not in the index", known.name);
    }
    assert_eq!(preset("token-ring"), None);
    assert_eq!(presets()[0].name, "ideal");
}

#[test]
fn pages_show_every_value() {
    for preset in presets() {
        let page =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../../docs/reference/networks/{}.md", preset.name));
        let page = std::fs::read_to_string(page).expect("it has a page");
        for line in preset.toml.lines().filter(|line| !line.starts_with('#')) {
            let (key, value) = line.split(" # ").next().and_then(|line| line.split_once(" = ")).expect("a key");
            let row = format!("| `{key}` | `{}` |", value.trim());
            assert!(page.contains(&row), "{} has no row {row}", preset.name);
        }
    }
}

#[test]
fn presets_agree_with_the_papers() {
    let build = |name| Network::build(&read(preset(name).expect("it is there"))).expect("it is good");
    let demonstrator = build("myrinet-oct-sw8");
    assert_eq!((demonstrator.hosts(), demonstrator.switches.len()), (16, 8));
    assert_eq!(demonstrator.config.nic.rate, Some(Bandwidth(132 * 8_000_000)));
    let preseries = build("myrinet-clos-128");
    assert_eq!((preseries.endpoints.len(), preseries.hosts()), (128, 64));
    for name in ["ds-link-clos", "ds-link-grid", "ds-link-torus"] {
        let network = build(name);
        assert_eq!(network.hosts(), 256, "{name}");
        assert!(network.switches.iter().all(|switch| switch.outputs.len() <= 32), "an STC104 has 32 ports");
    }
}
