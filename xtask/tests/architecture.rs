//! The crates agree with crates/README.md: their folders, their dependencies, and the use of `std`.

use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Files that allow unsafe code, as paths from the root; a lint denies it elsewhere. Each needs a documented invariant and a
/// test of it.
const MAY_BE_UNSAFE: &[&str] = &[
    "crates/app/cli/src/allocator.rs",
    "crates/core/src/checksum.rs",
    "crates/data/filter/src/area.rs",
    "crates/data/filter/src/library.rs",
    "crates/data/filter/src/units/spawn.rs",
    "crates/transport/libfabric-abi/src/objects.rs",
    "crates/os/src/memory.rs",
    "crates/transport/ethernet/src/packet/ring.rs",
    "crates/transport/ethernet/src/packet/socket.rs",
    "crates/transport/mpi/src/ffi/mod.rs",
    "crates/transport/mpi/src/ffi/transfer.rs",
    "crates/transport/ofi/src/ffi/endpoint.rs",
    "crates/transport/ofi/src/ffi/endpoint/operations.rs",
    "crates/transport/ofi/src/ffi/info.rs",
    "crates/transport/ofi/src/ffi/library.rs",
    "crates/transport/ofi/src/ffi/memory.rs",
    "crates/transport/ofi/src/ffi/objects.rs",
    "crates/transport/ofi/src/ffi/rooms.rs",
    "python/src/mapping.rs",
    "velo/rtl/src/ffi.rs",
    "crates/transport/shm/src/shm/link.rs",
    "crates/transport/shm/src/shm/map.rs",
    "crates/transport/shm/src/shm/pool.rs",
    "velo/c/src/ffi.rs",
    "velo/device/src/fetch.rs",
    "velo/device/src/segment.rs",
    "velo/provider/src/endpoint.rs",
    "velo/provider/src/info.rs",
    "velo/provider/src/objects.rs",
];

/// Packages that are not in the table: programs for developers, on which no crate depends.
const TOOLS: &[&str] = &["evb-fuzz", "evb-hardware-tools", "evb-lab"];

/// Folders on which no package below `crates` depends: the hardware, its drivers, the papers and the tools.
const SEPARATE: &[&str] =
    &["velo/rtl", "velo/device", "velo/c", "velo/provider", "velo/hardware", "papers", "lab", "fuzz", "xtask"];

/// The dependencies that are allowed nevertheless: the registry opens simulated hardware by name, and `evb` reproduces the
/// papers.
const EXCEPTIONS: &[(&str, &str)] = &[("evb-transport-registry", "evb-velo-rtl"), ("evb", "evb-paper")];

/// A row of the table of crates.
#[derive(Debug)]
struct Row {
    /// The folder, from the root.
    folder: String,
    /// The name of the package.
    package: String,
    purpose: String,
    /// The packages that it uses outside of tests.
    uses: BTreeSet<String>,
}

/// A package of this repository as cargo reports it.
struct Package {
    /// The folder.
    folder: PathBuf,
    /// The packages of this repository that it uses outside of tests.
    uses: BTreeSet<String>,
    /// The packages of this repository that only its tests use.
    tests_use: BTreeSet<String>,
}

/// The table of crates/README.md, from top to bottom.
fn table() -> Vec<Row> {
    let page = fs::read_to_string(Path::new(ROOT).join("crates/README.md")).expect("crates/README.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [folder, package, purpose, uses] = cells[..] else { panic!("not four columns: {line}") };
        let uses = uses.split(',').map(str::trim).filter(|name| !name.is_empty()).map(full_name).collect();
        let name = |cell: &str| cell.trim_matches('`').to_owned();
        Row { folder: name(folder), package: name(package), purpose: purpose.into(), uses }
    })
    .collect()
}

/// The name of a package by its name in the table.
fn full_name(short: &str) -> String {
    if short == "evb" { short.to_owned() } else { format!("evb-{short}") }
}

/// The packages of this repository by name.
fn packages() -> BTreeMap<String, Package> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(ROOT);
    let output = command.output().expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    let ours = |package: &Value| {
        let name = package["name"].as_str()?;
        (["evb", "xtask"].contains(&name) || name.starts_with("evb-")).then(|| name.to_owned())
    };
    let packages = metadata["packages"].as_array().expect("packages").iter();
    packages
        .filter_map(|package| {
            let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
            let dependencies = || package["dependencies"].as_array().expect("dependencies").iter();
            let of_tests = |dependency: &&Value| dependency["kind"] == "dev";
            let uses = dependencies().filter(|dependency| !of_tests(dependency)).filter_map(ours).collect();
            let tests_use = dependencies().filter(of_tests).filter_map(ours).collect();
            let folder = manifest.parent().expect("a folder").to_owned();
            Some((ours(package)?, Package { folder, uses, tests_use }))
        })
        .collect()
}

#[test]
fn the_table_of_crates_agrees_with_cargo() {
    let (table, mut packages) = (table(), packages());
    packages.retain(|name, _| name != "xtask" && !TOOLS.contains(&name.as_str()));
    let listed: BTreeSet<_> = table.iter().map(|row| &row.package).collect();
    assert_eq!(listed, packages.keys().collect(), "table, and cargo");
    for row in &table {
        let Package { folder, uses, .. } = &packages[&row.package];
        assert!(folder.ends_with(&row.folder), "{} is in {}", row.package, folder.display());
        assert_eq!(&row.uses, uses, "the packages that `{}` may use, and those that it uses", row.package);
    }
}

#[test]
fn crates_depend_on_neither_hardware_nor_papers_nor_tools() {
    let (packages, root) = (packages(), Path::new(ROOT).canonicalize().expect("the root"));
    let is_in = |name: &str, folder: &str| packages[name].folder.starts_with(root.join(folder));
    let mut found = BTreeSet::new();
    for (name, package) in packages.iter().filter(|(name, _)| is_in(name, "crates")) {
        let used = package.uses.union(&package.tests_use);
        let separate = used.filter(|used| SEPARATE.iter().any(|folder| is_in(used, folder)));
        found.extend(separate.map(|used| (name.as_str(), used.as_str())));
    }
    assert_eq!(found, EXCEPTIONS.iter().copied().collect(), "dependencies, and allowed exceptions");
}

#[test]
fn packages_are_named_after_their_folders() {
    for row in table().iter().filter(|row| row.package != "evb") {
        let mut folders = row.folder.rsplit('/');
        let (folder, above) = (folders.next().unwrap_or_default(), folders.next().unwrap_or_default());
        let names = [format!("evb-{folder}"), format!("evb-{above}-{folder}"), format!("evb-{above}")];
        let is_named = match folder {
            "interface" | "model" => row.package == names[2],
            "crate" => row.package == "evb-paper",
            _ => names[..2].contains(&row.package),
        };
        assert!(is_named, "{} in {}", row.package, row.folder);
    }
}

#[test]
fn a_crate_uses_only_crates_above_it() {
    let mut above = BTreeSet::new();
    for row in table() {
        assert!(row.uses.is_subset(&above), "`{}` uses a crate below it", row.package);
        above.insert(row.package);
    }
}

#[test]
fn crates_without_std_are_those_of_the_table() {
    let table = table();
    for pure in table.iter().filter(|row| row.folder == "crates/core" || row.folder.starts_with("crates/machines/")) {
        assert!(
            pure.purpose.ends_with("`no_std`"),
            "`{}` must not use clocks, sockets, threads or files",
            pure.package
        );
    }
    for row in table.iter().filter(|row| row.package != "evb-cli") {
        let file = Path::new(ROOT).join(&row.folder).join("src/lib.rs");
        let text = fs::read_to_string(&file).expect("a library");
        let no_std = text.lines().any(|line| line == "#![no_std]");
        assert_eq!(no_std, row.purpose.ends_with("`no_std`"), "{}", file.display());
    }
}

#[test]
fn unsafe_code_is_only_in_listed_files() {
    let mut files = Vec::new();
    for folder in ["crates", "velo", "papers", "python", "lab", "fuzz"] {
        collect_sources(&Path::new(ROOT).join(folder), &mut files);
    }
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
