//! Libraries that are compiled on first use, from sources inside the binary, and kept in the user's cache folder.
//!
//! Several processes may compile at once: each works in a separate folder and renames the result, and all results are
//! equal. A library is only used if no other user can have written it.

use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Output,
};

/// The cache folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("what evb compiles cannot be kept in {folder}: {reason}\nhint: set XDG_CACHE_HOME to a folder of your own")]
pub struct CacheError {
    /// The folder.
    pub folder: PathBuf,
    /// The reason.
    pub reason: String,
}

/// The file of a library; `build` compiles it if it does not exist. `key` covers everything that the result depends on:
/// the sources and the compiler. `build` gets an empty folder to work in, which is removed afterwards, and returns the
/// path of the library in it.
///
/// # Errors
/// [`CacheError`], or the error of `build`.
pub fn library<E: From<CacheError>>(
    name: &str,
    key: impl Hash,
    build: impl FnOnce(&Path) -> Result<PathBuf, E>,
) -> Result<PathBuf, E> {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let folder = cache_folder();
    let file = folder.join(format!("{name}-{:016x}{}", hasher.finish(), env::consts::DLL_SUFFIX));
    let cache = |reason: String| CacheError { folder: folder.clone(), reason };
    let owner = claim(&folder).map_err(|error| cache(error.to_string()))?;
    if !file.exists() {
        let work = Work::begin(&folder).map_err(|error| cache(error.to_string()))?;
        let made = build(&work.0)?;
        keep(&made, &file).map_err(|error| cache(error.to_string()))?;
    }
    for path in [&folder, &file] {
        check_owner(path, owner).map_err(cache)?;
    }
    Ok(file)
}

/// The output of a tool that failed, or its exit status if it wrote nothing.
#[must_use]
pub fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if text.is_empty() { output.status.to_string() } else { text }
}

fn cache_folder() -> PathBuf {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".cache"));
    absolute("XDG_CACHE_HOME").or_else(home).unwrap_or_else(env::temp_dir).join("evb")
}

/// Creates the folder if needed, and returns the user that owns files created in it.
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

/// A name that no other process uses. Hosts may share the folder, and process ids are not unique across hosts.
fn temporary(folder: &Path, kind: &str) -> PathBuf {
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), kind);
    folder.join(format!(".{kind}-{}-{random:016x}", std::process::id()))
}

/// A folder to compile in.
struct Work(PathBuf);

impl Work {
    fn begin(cache: &Path) -> io::Result<Self> {
        let folder = temporary(cache, "work");
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // If it stays, it takes some room and nothing else.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn keep(made: &Path, file: &Path) -> io::Result<()> {
    fs::set_permissions(made, fs::Permissions::from_mode(0o700))?;
    fs::rename(made, file)
}

/// Refuses a file that others can write.
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
    fn libraries_that_others_can_write_are_refused() {
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

    #[test]
    fn a_library_moves_out_of_the_folder_where_it_was_made() {
        let folder = tempfile::tempdir().unwrap();
        let work = Work::begin(folder.path()).unwrap();
        let (made, file) = (work.0.join("made"), folder.path().join("kept"));
        fs::write(&made, "a library").unwrap();
        keep(&made, &file).unwrap();
        drop(work);
        assert_eq!(fs::read(&file).unwrap(), b"a library");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the folder is gone");
    }
}
