//! The Python package: its wheel, and its tests as a user would have it, installed from the wheel.

use crate::tools;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use xtask::{
    processes::Limited,
    workspace::{Workspace, is_installed, run},
};

/// Longest time of the installation of packages, and of the tests.
const LIMIT: Duration = Duration::from_secs(600);
/// What the tests need beside the wheel.
const REQUIREMENTS: &str = "python/requirements-test.txt";

/// Builds the wheel and runs the tests with it.
pub(crate) fn test(workspace: &Workspace) -> Result<(), String> {
    if !is_installed("python3") {
        return tools::skip_without("python3");
    }
    let Some(environment) = Environment::prepare(workspace)? else {
        return tools::skip_without("a Python environment with the packages of python/requirements-test.txt");
    };
    let wheel = environment.build_wheel(workspace)?;
    environment.install_wheel(&wheel)?;
    let mut tests = environment.python();
    tests.args(["-m", "unittest", "discover", "-s", "tests"]).current_dir(workspace.root.join("python"));
    tests.env("PYTHONDONTWRITEBYTECODE", "1");
    limited(&mut tests)
}

/// Builds the wheel for users, and says where it is.
pub(crate) fn wheel() -> Result<(), String> {
    let workspace = Workspace::with_evb()?;
    let environment = Environment::prepare(&workspace)?.ok_or("python3 cannot install maturin")?;
    println!("{}", environment.build_wheel(&workspace)?.display());
    Ok(())
}

/// A virtual environment of Python.
struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// The environment with what the tests need; none if there is no way to install it.
    fn prepare(workspace: &Workspace) -> Result<Option<Self>, String> {
        let environment = Self { folder: workspace.target.join("python/environment") };
        let requirements = workspace.root.join(REQUIREMENTS);
        let wanted = fs::read_to_string(&requirements).map_err(|error| format!("{REQUIREMENTS}: {error}"))?;
        let installed = environment.folder.join("installed.txt");
        if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
            return Ok(Some(environment));
        }
        let _there_may_be_none = fs::remove_dir_all(&environment.folder);
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(&environment.folder);
        let mut install = environment.python();
        install
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
            .arg(requirements);
        if let Err(error) = limited(&mut create).and_then(|()| limited(&mut install)) {
            eprintln!("{error}");
            return Ok(None);
        }
        fs::write(&installed, wanted).map_err(|error| format!("{}: {error}", installed.display()))?;
        Ok(Some(environment))
    }

    /// Python with the packages of this environment and no others.
    fn python(&self) -> Command {
        let mut command = Command::new(self.folder.join("bin/python"));
        command.env_remove("PYTHONPATH").env_remove("PYTHONHOME");
        command
    }

    /// The wheel, with the built program `evb` in it.
    fn build_wheel(&self, workspace: &Workspace) -> Result<PathBuf, String> {
        put_program(workspace)?;
        let wheels = workspace.target.join("python/wheels");
        let _there_may_be_none = fs::remove_dir_all(&wheels);
        let mut maturin = self.python();
        maturin.args([
            "-m",
            "maturin",
            "build",
            "--locked",
            "--quiet",
            "--profile",
            workspace.profile().name(),
            "--out",
        ]);
        run(maturin.arg(&wheels).current_dir(workspace.root.join("python")))?;
        let mut files = fs::read_dir(&wheels).map_err(|error| format!("{}: {error}", wheels.display()))?.flatten();
        files
            .next()
            .map(|entry| entry.path())
            .ok_or_else(|| format!("maturin has put no wheel into {}", wheels.display()))
    }

    fn install_wheel(&self, wheel: &Path) -> Result<(), String> {
        let mut pip = self.python();
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--force-reinstall"]);
        limited(pip.arg(wheel))
    }
}

/// Puts the program to where the wheel takes it from, without what only debuggers read.
fn put_program(workspace: &Workspace) -> Result<(), String> {
    let folder = workspace.root.join("python/evb.data/scripts");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let program = folder.join("evb");
    if is_installed("strip") {
        return run(Command::new("strip").arg("-o").arg(&program).arg(workspace.evb()));
    }
    fs::copy(workspace.evb(), &program).map(drop).map_err(|error| format!("{}: {error}", program.display()))
}

fn limited(command: &mut Command) -> Result<(), String> {
    let mut process = Limited::start(command, LIMIT).map_err(|error| format!("python3: {error}"))?;
    let (status, output) = process.wait()?;
    if status.success() { Ok(()) } else { Err(format!("{status}\n{output}")) }
}
