//! The repository, and commands that are run in it.

use serde_json::Value;
use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Facts of the repository that a step needs.
pub(crate) struct Workspace {
    /// The root of the repository.
    pub(crate) root: PathBuf,
    /// Folder in which cargo builds.
    pub(crate) target: PathBuf,
    /// How what the steps run is built.
    profile: Profile,
}

/// A profile of cargo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// As tests are: with assertions, and built for them anyway.
    Dev,
    /// As users build it. Measurements need it.
    Release,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self, String> {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository").to_owned();
        let mut command = cargo(&root, &["metadata", "--no-deps", "--format-version", "1"]);
        let output = command.stderr(Stdio::inherit()).output().map_err(|error| format!("cargo: {error}"))?;
        let metadata: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
        let target = metadata["target_directory"].as_str().ok_or("cargo metadata names no target directory")?;
        Ok(Self { root, target: target.into(), profile: Profile::Release })
    }

    /// The same repository with another profile.
    pub(crate) fn with(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// The built `evb` command.
    pub(crate) fn evb(&self) -> PathBuf {
        self.built("evb")
    }

    /// A program that cargo has built, by its path below the folder of the profile.
    pub(crate) fn built(&self, name: &str) -> PathBuf {
        let folder = if self.profile == Profile::Dev { "debug" } else { "release" };
        self.target.join(folder).join(name).with_extension(env::consts::EXE_EXTENSION)
    }

    /// Builds all programs and examples.
    pub(crate) fn build(&self) -> Result<(), String> {
        let profile = if self.profile == Profile::Dev { "dev" } else { "release" };
        self.cargo(&["build", "--workspace", "--bins", "--examples", "--profile", profile])
    }

    pub(crate) fn cargo(&self, arguments: &[&str]) -> Result<(), String> {
        run(&mut cargo(&self.root, arguments))
    }
}

/// Cargo in the root of the repository.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root);
    command
}

/// Runs a command that must succeed; the error has its words.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line = words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{line}: {status}")),
        Err(error) => Err(format!("{line}: {error}")),
    }
}
