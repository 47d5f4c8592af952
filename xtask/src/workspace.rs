//! The repository, and commands that run in it.

use serde_json::Value;
use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The repository and its build folder.
pub struct Workspace {
    /// The root of the repository.
    pub root: PathBuf,
    /// The folder in which cargo builds.
    pub target: PathBuf,
    profile: Profile,
}

/// A profile of cargo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The profile of the tests, with assertions.
    Dev,
    /// The profile for users and for measurements.
    Release,
}

impl Profile {
    /// Its name for cargo.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Release => "release",
        }
    }

    const fn folder(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release => "release",
        }
    }
}

impl Workspace {
    /// Finds the repository that contains this crate. Programs are built with `profile`.
    ///
    /// # Errors
    /// `cargo metadata` fails.
    pub fn find(profile: Profile) -> Result<Self, String> {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository").to_owned();
        let mut command = cargo(&root, &["metadata", "--no-deps", "--format-version", "1"]);
        let output = command.stderr(Stdio::inherit()).output().map_err(|error| format!("cargo: {error}"))?;
        let metadata: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
        let target = metadata["target_directory"].as_str().ok_or("cargo metadata names no target directory")?;
        Ok(Self { root, target: target.into(), profile })
    }

    /// Finds the repository and builds the `evb` command for a measurement.
    ///
    /// # Errors
    /// The build fails.
    pub fn with_evb() -> Result<Self, String> {
        let workspace = Self::find(Profile::Release)?;
        workspace.cargo(&["build", "--release", "--quiet", "--package", "evb-cli"])?;
        Ok(workspace)
    }

    /// The profile that programs are built with.
    #[must_use]
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// The path of the built `evb` command.
    #[must_use]
    pub fn evb(&self) -> PathBuf {
        self.built("evb")
    }

    /// The path of a built program; `name` is relative to the folder of the profile.
    #[must_use]
    pub fn built(&self, name: &str) -> PathBuf {
        self.target.join(self.profile.folder()).join(name).with_extension(env::consts::EXE_EXTENSION)
    }

    /// Builds all programs and examples that users get.
    ///
    /// # Errors
    /// The build fails.
    pub fn build(&self) -> Result<(), String> {
        let excluded = ["xtask", "evb-lab", "evb-hardware-tools", "evb-fuzz"].map(|package| ["--exclude", package]);
        let arguments = ["build", "--locked", "--workspace", "--bins", "--examples", "--profile", self.profile.name()];
        self.cargo(&[&arguments[..], excluded.as_flattened()].concat())
    }

    /// Runs cargo in the root of the repository.
    ///
    /// # Errors
    /// The command fails; the error contains the command line.
    pub fn cargo(&self, arguments: &[&str]) -> Result<(), String> {
        run(&mut cargo(&self.root, arguments))
    }
}

/// Cargo in the root of the repository.
#[must_use]
pub fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root);
    command
}

/// Runs a command that must succeed.
///
/// # Errors
/// The command fails; the error contains the command line.
pub fn run(command: &mut Command) -> Result<(), String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line = words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{line}: {status}")),
        Err(error) => Err(format!("{line}: {error}")),
    }
}

/// True if a program is on the path.
#[must_use]
pub fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
