//! Results of checks that passed, each stored with a hash over its inputs: a check runs again when one of them changes.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    time::Instant,
};

/// The inputs of a check.
#[derive(Clone, Default)]
pub struct Inputs(DefaultHasher);

impl Inputs {
    /// Adds a command, options or parameters.
    #[must_use]
    pub fn and(mut self, input: impl Hash) -> Self {
        input.hash(&mut self.0);
        self
    }

    /// Adds the name and the contents of a file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn and_file(self, path: &Path) -> Result<Self, String> {
        let contents = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(self.and((path.file_name(), contents)))
    }

    /// The hash as text.
    #[must_use]
    pub fn hash(&self) -> String {
        format!("{:016x}", self.0.finish())
    }
}

/// The stored results.
pub struct Cache {
    folder: PathBuf,
    /// Ignore stored results.
    fresh: bool,
}

impl Cache {
    /// Opens the cache in a folder. If `fresh`, all checks run again.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn open(folder: PathBuf, fresh: bool) -> Result<Self, String> {
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self { folder, fresh })
    }

    /// Returns the output of a check that passed with the same inputs, or runs it and stores its output.
    ///
    /// # Errors
    /// The check fails, or its output cannot be stored.
    pub fn check(
        &self,
        name: &str,
        inputs: &Inputs,
        check: impl FnOnce() -> Result<String, String>,
    ) -> Result<String, String> {
        let (path, hash, start) = (self.folder.join(name), inputs.hash(), Instant::now());
        let stored = fs::read_to_string(&path).ok().filter(|_| !self.fresh);
        // The hash is at the end: a file that was not written completely does not count.
        if let Some(output) = stored.as_ref().and_then(|text| text.strip_suffix(&hash)) {
            eprintln!("  {name}: passed before with the same inputs");
            return Ok(output.to_owned());
        }
        let result = check().and_then(|output| {
            fs::write(&path, format!("{output}{hash}")).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok(output)
        });
        let verdict = if result.is_ok() { "passed" } else { "failed" };
        eprintln!("  {name}: {verdict}, {:.1} s", start.elapsed().as_secs_f64());
        result.map_err(|why| format!("{name}: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_check_runs_again_after_a_failure_or_a_change() {
        let folder = std::env::temp_dir().join(format!("xtask-cache-{}", std::process::id()));
        let (open, runs) = (|fresh| Cache::open(folder.clone(), fresh).unwrap(), Cell::new(0));
        let check = |fresh: bool, input: u32, result: Result<&str, &str>| {
            let found = open(fresh).check("it", &Inputs::default().and(input), || {
                runs.set(runs.get() + 1);
                result.map(str::to_owned).map_err(str::to_owned)
            });
            (found, runs.get())
        };
        assert_eq!(check(false, 1, Err("it broke")), (Err("it: it broke".into()), 1));
        assert_eq!(check(false, 1, Ok("output")), (Ok("output".into()), 2));
        assert_eq!(check(false, 1, Ok("not run")), (Ok("output".into()), 2));
        assert_eq!(check(false, 2, Err("it broke")), (Err("it: it broke".into()), 3));
        assert_eq!(check(false, 1, Ok("not run")), (Ok("output".into()), 3));
        assert_eq!(check(true, 1, Ok("again")), (Ok("again".into()), 4));
        fs::remove_dir_all(folder).unwrap();
    }
}
