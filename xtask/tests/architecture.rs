//! The crates are what ARCHITECTURE.md says: their layers, what each may use, and where there is no `std`.

use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Files that allow unsafe code, as paths from the root; a lint denies it elsewhere. Each needs a written invariant and
/// a test of it.
const MAY_BE_UNSAFE: &[&str] = &[
    "crates/cli/src/allocator.rs",
    "crates/core/src/checksum.rs",
    "crates/filter/src/area.rs",
    "crates/filter/src/library.rs",
    "crates/filter/src/units/spawn.rs",
    "crates/libfabric-abi/src/objects.rs",
    "crates/memory/src/lib.rs",
    "crates/transport-ethernet/src/packet/ring.rs",
    "crates/transport-ethernet/src/packet/socket.rs",
    "crates/transport-ethernet/src/xdp.rs",
    "crates/transport-ethernet/src/xdp/program.rs",
    "crates/transport-mpi/src/ffi/mod.rs",
    "crates/transport-mpi/src/ffi/transfer.rs",
    "crates/transport-ofi/src/ffi/endpoint.rs",
    "crates/transport-ofi/src/ffi/endpoint/operations.rs",
    "crates/transport-ofi/src/ffi/info.rs",
    "crates/transport-ofi/src/ffi/library.rs",
    "crates/transport-ofi/src/ffi/memory.rs",
    "crates/transport-ofi/src/ffi/objects.rs",
    "crates/transport-ofi/src/ffi/rooms.rs",
    "crates/transport-rtl/src/ffi.rs",
    "crates/transport/src/shm/link.rs",
    "crates/transport/src/shm/map.rs",
    "crates/transport/src/shm/pool.rs",
    "crates/velo-c/src/ffi.rs",
    "crates/velo-device/src/fetch.rs",
    "crates/velo-device/src/segment.rs",
    "crates/velo-provider/src/endpoint.rs",
    "crates/velo-provider/src/info.rs",
    "crates/velo-provider/src/objects.rs",
];

#[derive(Debug)]
struct Row {
    layer: u8,
    purpose: String,
    may_use: BTreeSet<String>,
}

/// The table under "The crates", by short name.
fn table() -> BTreeMap<String, Row> {
    let page = fs::read_to_string(Path::new(ROOT).join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let section = page.split("\n## ").find(|section| section.starts_with("The crates\n")).expect("the section");
    let rows = section.lines().filter(|line| line.starts_with('|') && line.contains('`'));
    rows.map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [layer, name, purpose, may_use] = cells[..] else { panic!("not four columns: {line}") };
        let may_use = may_use.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let layer = layer.parse().unwrap_or_else(|_| panic!("no layer: {line}"));
        (name.trim_matches('`').to_owned(), Row { layer, purpose: purpose.to_owned(), may_use })
    })
    .collect()
}

/// The folder of `evb` and of each `evb-` package, and those of these packages that it uses outside of tests, as cargo
/// tells them.
fn packages() -> BTreeMap<String, (PathBuf, BTreeSet<String>)> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(ROOT);
    let output = command.output().expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    let short = |package: &Value| {
        let name = package["name"].as_str()?;
        if name == "evb" { Some(name.to_owned()) } else { name.strip_prefix("evb-").map(str::to_owned) }
    };
    let packages = metadata["packages"].as_array().expect("packages").iter();
    packages
        .filter_map(|package| {
            let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
            let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
            let used = dependencies.filter(|dependency| dependency["kind"] != "dev").filter_map(short).collect();
            Some((short(package)?, (manifest.parent().expect("a folder").to_owned(), used)))
        })
        .collect()
}

#[test]
fn the_table_of_crates_is_what_cargo_says() {
    let (table, packages) = (table(), packages());
    assert_eq!(table.keys().collect::<Vec<_>>(), packages.keys().collect::<Vec<_>>(), "table, and cargo");
    for (name, (folder, used)) in &packages {
        assert_eq!(folder.file_name().expect("a name"), name.as_str(), "folders carry the short name");
        assert_eq!(&table[name].may_use, used, "what `{name}` may use, and what it does use");
    }
}

#[test]
fn arrows_never_point_up() {
    let table = table();
    for (name, row) in &table {
        for used in &row.may_use {
            let below = table.get(used).unwrap_or_else(|| panic!("`{name}` may use `{used}`, which is no crate"));
            assert!(below.layer <= row.layer, "`{name}` in layer {} uses `{used}` above it", row.layer);
        }
    }
}

#[test]
fn crates_without_std_are_those_of_the_table() {
    let table = table();
    for pure in ["core", "protocol", "record"] {
        assert!(table[pure].purpose.ends_with("`no_std`"), "`{pure}` has no clock, socket, thread or file");
    }
    for (name, row) in table.iter().filter(|(name, _)| *name != "cli") {
        let file = Path::new(ROOT).join("crates").join(name).join("src/lib.rs");
        let text = fs::read_to_string(&file).expect("a library");
        let no_std = text.lines().any(|line| line == "#![no_std]");
        assert_eq!(no_std, row.purpose.ends_with("`no_std`"), "{}", file.display());
    }
}

#[test]
fn unsafe_code_stands_only_where_it_may() {
    let mut files = Vec::new();
    collect_sources(&Path::new(ROOT).join("crates"), &mut files);
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    files.retain(|file| {
        let text = fs::read_to_string(file).expect("a source file");
        text.split(|character| !is_word(character)).any(|word| matches!(word, "unsafe" | "unsafe_code"))
    });
    let listed = MAY_BE_UNSAFE.iter().map(|file| Path::new(ROOT).join(file));
    assert_eq!(BTreeSet::from_iter(files), BTreeSet::from_iter(listed), "sources, and the list");
}

fn collect_sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect_sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
