//! Files of the hardware, and programs that print something only when they fail.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Most characters of a failure that are shown.
const MOST_SHOWN: usize = 2000;

/// The synthesizable sources below `hardware`, the package first.
pub(crate) fn designs(hardware: &Path) -> Result<Vec<PathBuf>, String> {
    let mut designs = list(&hardware.join("rtl"), &["sv"])?;
    designs.sort_by_key(|path| !path.ends_with("velo_pkg.sv"));
    Ok(designs)
}

/// The names of the synthesizable sources for a script of Yosys that runs in `hardware`.
pub(crate) fn design_names(hardware: &Path) -> Result<String, String> {
    let designs = designs(hardware)?;
    let names = designs.iter().filter_map(|path| path.file_name()?.to_str());
    Ok(names.map(|name| format!("rtl/{name}")).collect::<Vec<_>>().join(" "))
}

/// The files of a folder with one of these endings, by name.
pub(crate) fn list(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().and_then(|ending| ending.to_str()).is_some_and(|it| endings.contains(&it)));
    files.sort();
    Ok(files)
}

/// Creates an empty folder; removes what it contained.
pub(crate) fn renew(folder: &Path) -> Result<(), String> {
    let _absent = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs a program whose output matters only when it fails.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    output(command).map(|_| ())
}

/// Runs Yosys in `hardware`.
pub(crate) fn yosys(script: &str, hardware: &Path) -> Result<String, String> {
    output(Command::new("yosys").args(["-Q", "-T", "-q", "-p", script]).current_dir(hardware))
}

/// The standard output of a program that must succeed.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(format!("{program}: {}\n{}", output.status, beginning(&(text(&output.stderr) + &text(&output.stdout)))))
}

/// The first characters of a message.
pub(crate) fn beginning(text: &str) -> String {
    text.trim_end().chars().take(MOST_SHOWN).collect()
}
