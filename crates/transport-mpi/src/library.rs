//! How the shim is found: compiled once by the `mpicc` of the MPI that is there, then kept in a cache folder.
//!
//! Many ranks may do this at once: each compiles into a file of its own and renames it, and all results are equal. A
//! library is only opened if nobody else can have written it.

use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Output},
};

const SOURCE: &str = include_str!("../shim/evb_mpi.c");
/// The variable that names the compiler.
pub(crate) const MPICC: &str = "EVB_MPICC";

/// Why there is no MPI.
#[derive(Debug, thiserror::Error)]
pub enum MpiError {
    /// No compiler for MPI programs runs.
    #[error(
        "no MPI found: {tried} does not run: {source}\n\
         hint: install an MPI with its compiler (Debian: libopenmpi-dev openmpi-bin, or libmpich-dev mpich), or set \
         EVB_MPICC to the mpicc of yours"
    )]
    NoCompiler {
        /// What was tried.
        tried: String,
        /// What the last try said.
        source: io::Error,
    },
    /// The compiler does not compile the shim.
    #[error("{mpicc} cannot build evb's MPI shim: {says}\nhint: set EVB_MPICC to an mpicc that builds MPI programs")]
    Build {
        /// The compiler.
        mpicc: String,
        /// What it said.
        says: String,
    },
    /// The cache folder is of no use.
    #[error("evb's MPI shim cannot be kept in {folder}: {reason}\nhint: set XDG_CACHE_HOME to a folder of your own")]
    Cache {
        /// The folder.
        folder: PathBuf,
        /// Why.
        reason: String,
    },
    /// The library is there, but does not open.
    #[error(
        "the MPI of {mpicc} cannot be opened: {reason}\nhint: set EVB_MPICC to the mpicc of the MPI that is to run"
    )]
    Open {
        /// The compiler.
        mpicc: String,
        /// Why.
        reason: String,
    },
    /// MPI cannot be started (again).
    #[error("MPI cannot be started: {0}")]
    Start(&'static str),
    /// The launcher belongs to another MPI.
    #[error(
        "the launcher started {launched} processes, but {version} knows of {size}\n\
         hint: set EVB_MPICC to the mpicc that belongs to this launcher"
    )]
    OtherLauncher {
        /// As many as the launcher says.
        launched: usize,
        /// As many as MPI says.
        size: usize,
        /// The MPI.
        version: String,
    },
    /// The nodes are not placed on the ranks that there are.
    #[error("{0}")]
    Placement(String),
}

/// The compiled shim, and the compiler that made it.
pub(crate) fn shim() -> Result<(PathBuf, String), MpiError> {
    let (mpicc, shows) = compiler()?;
    let mut hasher = DefaultHasher::new();
    (SOURCE, &mpicc, &shows).hash(&mut hasher);
    let folder = cache_folder();
    let file = folder.join(format!("mpi-{:016x}{}", hasher.finish(), env::consts::DLL_SUFFIX));
    let cache = |reason: String| MpiError::Cache { folder: folder.clone(), reason };
    let owner = claim(&folder).map_err(|error| cache(error.to_string()))?;
    if !file.exists() {
        build(&mpicc, &folder, &file)?;
    }
    for path in [&folder, &file] {
        check_owner(path, owner).map_err(cache)?;
    }
    Ok((file, mpicc))
}

/// The compilers that may belong to the MPI that started this process, the best first.
fn candidates() -> Vec<String> {
    if let Some(mpicc) = env::var_os(MPICC) {
        return vec![mpicc.to_string_lossy().into_owned()];
    }
    let is_set = |name: &str| env::var_os(name).is_some();
    let names: &[&str] = if is_set("OMPI_COMM_WORLD_SIZE") {
        &["mpicc.openmpi", "mpicc"]
    } else if is_set("PMI_SIZE") || is_set("HYDI_CONTROL_FD") {
        &["mpicc.mpich", "mpicc"]
    } else {
        &["mpicc"]
    };
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The first compiler that runs, and the command line that it would use: it changes with the MPI behind it.
fn compiler() -> Result<(String, String), MpiError> {
    let (candidates, mut last) = (candidates(), None);
    for mpicc in &candidates {
        match Command::new(mpicc).arg("-show").output() {
            Ok(Output { status, stdout, .. }) if status.success() => {
                return Ok((mpicc.clone(), String::from_utf8_lossy(&stdout).into_owned()));
            }
            Ok(output) => last = Some(io::Error::other(said(&output))),
            Err(error) => last = Some(error),
        }
    }
    let source = last.unwrap_or_else(|| io::ErrorKind::NotFound.into());
    Err(MpiError::NoCompiler { tried: candidates.join(", "), source })
}

fn cache_folder() -> PathBuf {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".cache"));
    absolute("XDG_CACHE_HOME").or_else(home).unwrap_or_else(env::temp_dir).join("evb")
}

/// Makes the folder if it is not there, and gives the user that files made in it belong to.
fn claim(folder: &Path) -> io::Result<u32> {
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let probe = temporary(folder, "probe");
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&probe)?;
    let owner = file.metadata()?.uid();
    fs::remove_file(&probe)?;
    Ok(owner)
}

/// A name that no other process uses. Hosts may share the folder, and process ids say nothing across hosts.
fn temporary(folder: &Path, kind: &str) -> PathBuf {
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), kind);
    folder.join(format!(".{kind}-{}-{random:016x}", std::process::id()))
}

fn build(mpicc: &str, folder: &Path, file: &Path) -> Result<(), MpiError> {
    let error = |says: String| MpiError::Build { mpicc: mpicc.to_owned(), says };
    let (source, made) = (temporary(folder, "source").with_extension("c"), temporary(folder, "library"));
    fs::write(&source, SOURCE).map_err(|cause| error(cause.to_string()))?;
    let output = Command::new(mpicc).args(["-O2", "-shared", "-fPIC", "-o"]).arg(&made).arg(&source).output();
    // Of no use any more; if it stays, it takes some kilobytes.
    let _ = fs::remove_file(&source);
    let output = output.map_err(|cause| error(cause.to_string()))?;
    if !output.status.success() {
        return Err(error(said(&output)));
    }
    let keep = || {
        fs::set_permissions(&made, fs::Permissions::from_mode(0o700))?;
        fs::rename(&made, file)
    };
    keep().map_err(|cause| error(cause.to_string()))
}

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if text.is_empty() { output.status.to_string() } else { text }
}

/// What others can write is not opened.
fn check_owner(path: &Path, owner: u32) -> Result<(), String> {
    let metadata = fs::symlink_metadata(path).map_err(|error| error.to_string())?;
    if metadata.is_symlink() || metadata.uid() != owner || metadata.mode() & 0o022 != 0 {
        return Err(format!("{} belongs to or can be written by others", path.display()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_can_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("evb");
        let owner = claim(&cache).unwrap();
        assert_eq!(claim(&cache).unwrap(), owner, "the second time, too");
        assert_eq!(fs::metadata(&cache).unwrap().mode() & 0o777, 0o700);
        assert_eq!(check_owner(&cache, owner), Ok(()));
        assert!(check_owner(&cache, owner + 1).is_err(), "of somebody else");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&cache, &link).unwrap();
        assert!(check_owner(&link, owner).is_err(), "a link");
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o770)).unwrap();
        assert!(check_owner(&cache, owner).is_err(), "open to the group");
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 0, "nothing is left");
    }
}
