//! The JSON Schema of the experiment file, by a language server for TOML.

use crate::tools;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use xtask::{processes::Limited, workspace::Workspace};

/// The language server, as a package for Python.
const SERVER: &str = "taplo==0.9.3";
/// Longest time of its installation, and of a check.
const LIMIT: Duration = Duration::from_secs(120);
/// Files with a mistake that an editor should mark.
const WRONG: [&str; 7] = [
    "[triger]\nevents = 1\n",
    "[trigger]\ntype = \"rate\"\nrate = \"1 kB\"\n",
    "[trigger]\ntype = \"rat\"\n",
    "[readout]\nunits = -1\n",
    "[readout]\nsource = { type = \"fixed\", sise = \"1 kB\" }\n",
    "[readout]\nsource = { type = \"fixed\" }\n",
    "[[fault]]\nnode = \"ru\"\naction = \"kill\"\nat = \"1 s\"\n",
];

/// Checks that every experiment of the repository is valid by the schema, and that files with mistakes are not. Without the
/// language server it is skipped, unless tools are required.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let folder = workspace.root.join("target/editors");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let Some(server) = install(&folder) else {
        return tools::skip_without(SERVER);
    };
    let schema =
        Command::new(workspace.evb()).arg("schema").output().map_err(|error| format!("evb schema: {error}"))?;
    let file = folder.join("schema.json");
    fs::write(&file, schema.stdout).map_err(|error| format!("{}: {error}", file.display()))?;
    let is_valid = |experiment: &Path, faults| is_valid(&server, (&file, experiment), faults);
    for experiment in experiments(&workspace.root)? {
        if !is_valid(&experiment, Stdio::inherit())? {
            return Err(format!("{} is not valid by the schema", experiment.display()));
        }
    }
    for text in WRONG {
        let wrong = folder.join("wrong.toml");
        fs::write(&wrong, text).map_err(|error| format!("{}: {error}", wrong.display()))?;
        if is_valid(&wrong, Stdio::null())? {
            return Err(format!("the schema has no objection to\n{text}"));
        }
    }
    Ok(())
}

/// The language server; `None` if there is no way to install it.
fn install(folder: &Path) -> Option<PathBuf> {
    let server = folder.join("bin/taplo");
    if !server.exists() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--target"]).arg(folder).arg(SERVER);
        pip.stdout(Stdio::null()).stderr(Stdio::null());
        Limited::start(&mut pip, LIMIT).and_then(|mut pip| pip.wait().map_err(std::io::Error::other)).ok()?;
    }
    server.exists().then_some(server)
}

/// Returns true if an experiment is valid by the schema. The language server writes faults to `faults`.
fn is_valid(server: &Path, (schema, experiment): (&Path, &Path), faults: Stdio) -> Result<bool, String> {
    let mut command = Command::new(server);
    command.args(["check", "--schema"]).arg(format!("file://{}", schema.display())).arg(experiment).stderr(faults);
    let mut check = Limited::start(&mut command, LIMIT).map_err(|error| format!("taplo: {error}"))?;
    Ok(check.wait()?.0.success())
}

fn experiments(root: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = root.join("experiments");
    let files = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<_> = files.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.push(root.join("crates/building/experiment/tests/full.toml"));
    Ok(files)
}
