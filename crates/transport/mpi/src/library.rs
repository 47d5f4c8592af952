//! Search for the shim: compiled once by the `mpicc` of the installed MPI, then kept in a cache folder.

use evb_os::compiled::{CacheError, said};
use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const SOURCE: &str = include_str!("../shim/evb_mpi.c");
/// The environment variable that names the compiler.
pub(crate) const MPICC: &str = "EVB_MPICC";

/// The reason why MPI cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MpiError {
    /// No compiler for MPI programs runs.
    #[error(
        "no MPI found: {tried} does not run: {source}\n\
         hint: install an MPI with its compiler (Debian: libopenmpi-dev openmpi-bin, or libmpich-dev mpich), or set \
         EVB_MPICC to the mpicc of yours"
    )]
    NoCompiler {
        /// The compilers that were tried.
        tried: String,
        /// The error of the last attempt.
        source: io::Error,
    },
    /// The compiler does not compile the shim.
    #[error("{mpicc} cannot build evb's MPI shim: {says}\nhint: set EVB_MPICC to an mpicc that builds MPI programs")]
    Build {
        /// The compiler.
        mpicc: String,
        /// The output of the compiler.
        says: String,
    },
    /// The cache folder cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The library exists, but cannot be opened.
    #[error(
        "the MPI of {mpicc} cannot be opened: {reason}\nhint: set EVB_MPICC to the mpicc of the MPI that is to run"
    )]
    Open {
        /// The compiler.
        mpicc: String,
        /// The reason.
        reason: String,
    },
    /// MPI cannot be started, or not a second time.
    #[error("MPI cannot be started: {0}")]
    Start(&'static str),
    /// The launcher belongs to another MPI.
    #[error(
        "the launcher started {launched} processes, but {version} knows of {size}\n\
         hint: set EVB_MPICC to the mpicc that belongs to this launcher"
    )]
    OtherLauncher {
        /// Number of processes according to the launcher.
        launched: usize,
        /// Number of processes according to MPI.
        size: usize,
        /// The MPI.
        version: String,
    },
    /// A node is placed on a rank that does not exist.
    #[error("{0}")]
    Placement(String),
}

/// The compiled shim, and the compiler that made it.
pub(crate) fn shim() -> Result<(PathBuf, String), MpiError> {
    let (mpicc, shows) = compiler()?;
    let file = evb_os::compiled::library("mpi", (SOURCE, &mpicc, &shows), |work| build(&mpicc, work))?;
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

/// The first compiler that runs, and its full command line, which changes with the MPI behind it.
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

fn build(mpicc: &str, work: &Path) -> Result<PathBuf, MpiError> {
    let error = |says: String| MpiError::Build { mpicc: mpicc.to_owned(), says };
    let (source, made) = (work.join("evb_mpi.c"), work.join("library"));
    fs::write(&source, SOURCE).map_err(|cause| error(cause.to_string()))?;
    let output = Command::new(mpicc).args(["-O2", "-shared", "-fPIC", "-o"]).arg(&made).arg(&source).output();
    let output = output.map_err(|cause| error(cause.to_string()))?;
    if output.status.success() { Ok(made) } else { Err(error(said(&output))) }
}
