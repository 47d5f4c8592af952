//! The Python package: its wheel, its tests as a user has it, installed from the wheel; and the site, whose notebooks use it.

use crate::{packages, tools};
use std::{fs, path::PathBuf, process::Command, time::Duration};
use xtask::{
    processes::Limited,
    workspace::{Workspace, is_installed, run},
};

/// Longest time of the installation of packages, and of the tests.
const LIMIT: Duration = Duration::from_secs(600);
/// What the tests need beside the wheel.
const REQUIREMENTS: &str = "python/requirements-test.txt";

/// Runs the tests with the installed wheel, and builds the site, whose notebooks use it.
pub(crate) fn test(workspace: &Workspace) -> Result<(), String> {
    if !is_installed("python3") {
        return tools::skip_without("python3");
    }
    let Some(environment) = Environment::prepare(workspace, Packages::All)? else {
        return tools::skip_without("a Python environment with the packages of python/requirements-test.txt");
    };
    environment.install_package(workspace)?;
    environment.run_tests(workspace)?;
    environment.build_site(workspace).map(drop)
}

/// Builds the wheel for users, and says where it is.
pub(crate) fn wheel() -> Result<(), String> {
    let workspace = Workspace::with_evb()?;
    println!("{}", Environment::required(&workspace, Packages::Build)?.build_wheel(&workspace)?.display());
    Ok(())
}

/// Builds the site of all pages, and says where it is.
pub(crate) fn site() -> Result<(), String> {
    let workspace = Workspace::with_evb()?;
    let environment = Environment::required(&workspace, Packages::All)?;
    environment.install_package(&workspace)?;
    println!("{}", environment.build_site(&workspace)?.join("index.html").display());
    Ok(())
}

/// Which of the required packages an environment has.
#[derive(Clone, Copy)]
enum Packages {
    All,
    /// What builds the wheel.
    Build,
}

impl Packages {
    const fn folder(self) -> &'static str {
        match self {
            Self::All => "python/environment",
            Self::Build => "python/build-environment",
        }
    }

    fn of(self, requirements: &str) -> String {
        let is_wanted = |line: &&str| matches!(self, Self::All) || line.starts_with("maturin==");
        requirements.lines().filter(is_wanted).map(|line| format!("{line}\n")).collect()
    }
}

/// A virtual environment of Python.
struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// The environment with these packages; none if there is no way to install them.
    fn prepare(workspace: &Workspace, packages: Packages) -> Result<Option<Self>, String> {
        let environment = Self { folder: workspace.target.join(packages.folder()) };
        let required = fs::read_to_string(workspace.root.join(REQUIREMENTS));
        let wanted = packages.of(&required.map_err(|error| format!("{REQUIREMENTS}: {error}"))?);
        let installed = environment.folder.join("installed.txt");
        if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
            return Ok(Some(environment));
        }
        let _there_may_be_none = fs::remove_dir_all(&environment.folder);
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(&environment.folder);
        let mut install = environment.python();
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        install.args(wanted.lines().filter(|line| !line.starts_with('#')));
        if let Err(error) = limited(&mut create).and_then(|()| limited(&mut install)) {
            eprintln!("{error}");
            return Ok(None);
        }
        fs::write(&installed, wanted).map_err(|error| format!("{}: {error}", installed.display()))?;
        Ok(Some(environment))
    }

    fn required(workspace: &Workspace, packages: Packages) -> Result<Self, String> {
        Self::prepare(workspace, packages)?.ok_or_else(|| format!("the packages of {REQUIREMENTS} cannot be installed"))
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

    /// Installs the wheel, and the kit of front ends.
    fn install_package(&self, workspace: &Workspace) -> Result<(), String> {
        let wheel = self.build_wheel(workspace)?;
        let mut pip = self.python();
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--force-reinstall"]);
        limited(pip.arg(wheel).arg(workspace.root.join("clients/front-end")))
    }

    fn run_tests(&self, workspace: &Workspace) -> Result<(), String> {
        let mut tests = self.python();
        // Python imports from the folder that it runs in first, and must find the installed package.
        tests.args(["-m", "unittest", "discover"]).current_dir(workspace.root.join("python/tests"));
        limited(tests.env("PYTHONDONTWRITEBYTECODE", "1"))
    }

    /// Builds the site and executes its notebooks. A broken link is an error, and so is a page that no other lists.
    fn build_site(&self, workspace: &Workspace) -> Result<PathBuf, String> {
        let site = workspace.target.join("site");
        let _there_may_be_none = fs::remove_dir_all(&site);
        let mut sphinx = self.python();
        sphinx.args(["-m", "sphinx", "-c", "docs", "--nitpicky", "--fail-on-warning", "--keep-going", "--quiet", "."]);
        limited(sphinx.arg(&site).current_dir(&workspace.root))?;
        let entrance = "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=docs/README.html\">\n";
        fs::write(site.join("index.html"), entrance).map_err(|error| format!("{}: {error}", site.display()))?;
        Ok(site)
    }
}

/// Puts the program to where the wheel takes it from.
fn put_program(workspace: &Workspace) -> Result<(), String> {
    let folder = workspace.root.join("python/evb.data/scripts");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    packages::copy_stripped(&workspace.evb(), &folder.join("evb"))
}

fn limited(command: &mut Command) -> Result<(), String> {
    let mut process = Limited::start(command, LIMIT).map_err(|error| format!("python3: {error}"))?;
    let (status, output) = process.wait()?;
    if status.success() { Ok(()) } else { Err(format!("{status}\n{output}")) }
}
