//! What users install without a compiler: the program with its manual pages, the completions of shells and the examples, as an archive
//! and as a Debian package.
//!
//! The program uses the libraries of the system and is not linked into one static file: it loads MPI, libfabric and the filters of
//! users when it runs, which a static program cannot do.

use crate::tools;
use std::{
    env::consts::ARCH,
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use xtask::workspace::{Workspace, is_installed, run};

/// The version of all crates.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Where each shell looks for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/evb"),
    ("zsh", "share/zsh/vendor-completions/_evb"),
    ("fish", "share/fish/vendor_completions.d/evb.fish"),
];
/// Files of the repository, and where they are installed.
const DOCUMENTS: [(&str, &str); 3] = [
    ("README.md", "share/doc/evb/README.md"),
    ("CHANGELOG.md", "share/doc/evb/CHANGELOG.md"),
    ("LICENSE", "share/doc/evb/copyright"),
];

/// Builds the archive, tries it, and says where it is.
pub(crate) fn archive() -> Result<(), String> {
    println!("{}", Tree::build(&Workspace::with_evb()?)?.tried_archive()?.display());
    Ok(())
}

/// Builds the Debian package, tries it, and says where it is.
pub(crate) fn deb() -> Result<(), String> {
    println!("{}", Tree::build(&Workspace::with_evb()?)?.tried_deb()?.display());
    Ok(())
}

/// Builds both from the built program, and tries them.
pub(crate) fn test(workspace: &Workspace) -> Result<(), String> {
    let tree = Tree::build(workspace)?;
    tree.tried_archive()?;
    match missing_tool() {
        Some(tool) => tools::skip_without(tool),
        None => tree.tried_deb().map(drop),
    }
}

/// Runs the program, and reads a manual page and an example.
fn try_program(folder: &Path) -> Result<(), String> {
    let program = folder.join("bin/evb");
    let version = output(Command::new(&program).arg("--version"))?;
    if !version.starts_with(&format!("evb {VERSION}")) {
        return Err(format!("{}: its version is {version}", folder.display()));
    }
    output(Command::new(&program).arg("check").arg(folder.join("share/doc/evb/examples/two-by-two.toml")))?;
    output(Command::new("gzip").arg("--test").arg(folder.join("share/man/man1/evb-run.1.gz"))).map(drop)
}

/// A program that a Debian package needs to be built, and that is missing.
fn missing_tool() -> Option<&'static str> {
    ["dpkg-deb", "dpkg-shlibdeps"].into_iter().find(|program| !is_installed(program))
}

/// The installed files, below `usr`.
struct Tree {
    /// The folder of the packages.
    packages: PathBuf,
    root: PathBuf,
}

impl Tree {
    /// Gathers the files around the built program.
    fn build(workspace: &Workspace) -> Result<Self, String> {
        let packages = workspace.target.join("packages");
        let tree = Self { root: packages.join("tree"), packages };
        let _there_may_be_none = fs::remove_dir_all(&tree.root);
        copy_stripped(&workspace.evb(), &tree.installed("bin/evb")?)?;
        tree.add_manual()?;
        for (shell, place) in COMPLETIONS {
            let text = output(Command::new(tree.program()).args(["completions", shell]))?;
            write(&tree.installed(place)?, &text)?;
        }
        for (file, place) in DOCUMENTS {
            copy(&workspace.root.join(file), &tree.installed(place)?)?;
        }
        tree.add_examples(&workspace.root.join("experiments"))?;
        Ok(tree)
    }

    /// The place of an installed file, whose folder is made.
    fn installed(&self, place: &str) -> Result<PathBuf, String> {
        let place = self.root.join("usr").join(place);
        let folder = place.parent().expect("it is below usr");
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(place)
    }

    /// The archive, whose program was run.
    fn tried_archive(&self) -> Result<PathBuf, String> {
        let (archive, folder) = (self.archive()?, self.empty("from-archive")?);
        run(Command::new("tar").args(["--strip-components=1", "-xzf"]).arg(&archive).arg("-C").arg(&folder))?;
        try_program(&folder)?;
        Ok(archive)
    }

    /// The Debian package, whose program was run.
    fn tried_deb(&self) -> Result<PathBuf, String> {
        let (deb, folder) = (self.deb()?, self.empty("from-deb")?);
        run(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(&folder))?;
        try_program(&folder.join("usr"))?;
        Ok(deb)
    }

    /// An empty folder to unpack a package in.
    fn empty(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.packages.join(name);
        let _there_may_be_none = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(folder)
    }

    fn program(&self) -> PathBuf {
        self.root.join("usr/bin/evb")
    }

    fn add_manual(&self) -> Result<(), String> {
        let folder = self.installed("share/man/man1")?;
        run(Command::new(self.program()).arg("man").arg(&folder))?;
        run(Command::new("gzip").args(["-9", "-n"]).args(files(&folder)?))
    }

    fn add_examples(&self, experiments: &Path) -> Result<(), String> {
        let is_example = |file: &&PathBuf| file.extension().is_some_and(|ending| ending == "toml");
        let mut examples: Vec<_> = files(experiments)?.into_iter().filter(|file| is_example(&file)).collect();
        for folder in ["fabric", "plans"] {
            examples.extend(files(&experiments.join(folder))?);
        }
        for file in &examples {
            let name = file.strip_prefix(experiments).expect("it is in the folder").display();
            copy(file, &self.installed(&format!("share/doc/evb/examples/{name}"))?)?;
        }
        Ok(())
    }

    /// `evb-VERSION-linux-PROCESSOR.tar.gz`, with one folder of that name.
    fn archive(&self) -> Result<PathBuf, String> {
        let name = format!("evb-{VERSION}-linux-{ARCH}");
        let archive = self.packages.join(format!("{name}.tar.gz"));
        let mut tar = Command::new("tar");
        tar.args(["--owner=0", "--group=0", "--sort=name"]).arg(format!("--transform=s,^usr,{name},"));
        run(tar.arg("-czf").arg(&archive).arg("-C").arg(&self.root).arg("usr"))?;
        Ok(archive)
    }

    /// `evb_VERSION_PROCESSOR.deb`.
    fn deb(&self) -> Result<PathBuf, String> {
        if let Some(tool) = missing_tool() {
            return Err(format!("{tool} is not installed\nhint: Debian's dpkg-dev"));
        }
        let processor = output(Command::new("dpkg").arg("--print-architecture"))?;
        let package = self.packages.join(format!("evb_{VERSION}_{}.deb", processor.trim()));
        let control = self.root.join("DEBIAN");
        fs::create_dir_all(&control).map_err(|error| format!("{}: {error}", control.display()))?;
        write(&control.join("control"), &self.control(processor.trim())?)?;
        run(Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).arg(&self.root).arg(&package))?;
        Ok(package)
    }

    fn control(&self, processor: &str) -> Result<String, String> {
        let libraries = self.libraries()?;
        Ok(format!(
            "Package: evb\nVersion: {VERSION}\nArchitecture: {processor}\nSection: science\nPriority: optional\n\
             Maintainer: the evb authors\nDepends: {libraries}\nSuggests: libfabric1, openmpi-bin | mpich\n\
             Description: event building for physics data acquisition\n \
             Readout units send the fragments of each event, builder units assemble, check and\n \
             store them. evb simulates an event builder on a network, and runs it on machines.\n"
        ))
    }

    /// The Debian packages that the program needs, with their least versions.
    fn libraries(&self) -> Result<String, String> {
        // dpkg-shlibdeps wants a source package around it.
        let source = self.packages.join("source");
        fs::create_dir_all(source.join("debian")).map_err(|error| format!("{}: {error}", source.display()))?;
        write(&source.join("debian/control"), "Source: evb\n\nPackage: evb\nArchitecture: any\n")?;
        let found = output(Command::new("dpkg-shlibdeps").arg("-O").arg(self.program()).current_dir(&source))?;
        let libraries = found.trim().strip_prefix("shlibs:Depends=");
        libraries.map(str::to_owned).ok_or_else(|| format!("dpkg-shlibdeps says {found:?}"))
    }
}

/// Copies a program without what only debuggers read.
pub(crate) fn copy_stripped(program: &Path, place: &Path) -> Result<(), String> {
    if is_installed("strip") {
        return run(Command::new("strip").arg("-o").arg(place).arg(program));
    }
    copy(program, place)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

fn copy(file: &Path, place: &Path) -> Result<(), String> {
    fs::copy(file, place).map(drop).map_err(|error| format!("{}: {error}", file.display()))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

/// The standard output of a command that must succeed.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{name}: {error}"))
}
