//! Paths of data files: `${NAME}` is the value of an environment variable, relative paths start from the data folder.

use crate::SourceError;
use std::path::{Path, PathBuf};

/// The file that `path` names.
///
/// # Errors
/// If a variable is not set or its braces are not closed.
pub fn resolve(path: &Path, data_directory: &Path) -> Result<PathBuf, SourceError> {
    let Some(text) = path.to_str() else {
        return Ok(data_directory.join(path)); // not Unicode: nothing in it that could be expanded
    };
    let directory = data_directory.to_str().map(expand).transpose()?;
    let directory = directory.as_deref().map_or(data_directory, Path::new);
    Ok(directory.join(expand(text)?))
}

fn expand(text: &str) -> Result<String, SourceError> {
    expand_with(text, |name| std::env::var(name).ok())
}

fn expand_with(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String, SourceError> {
    let braces = || SourceError::Braces { path: text.to_owned() };
    let (mut expanded, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let (name, tail) = after.split_once('}').filter(|(name, _)| is_name(name)).ok_or_else(braces)?;
        let value =
            variable(name).ok_or_else(|| SourceError::Variable { name: name.to_owned(), path: text.to_owned() })?;
        expanded.push_str(before);
        expanded.push_str(&value);
        rest = tail;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Returns true if the system accepts this as the name of a variable; `std::env::var` may panic on other names.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0', '$', '{'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, String> {
        let known = |name: &str| (name == "DATA").then(|| "/data".to_owned());
        expand_with(text, known).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_are_expanded() {
        assert_eq!(expanded("plain/file"), Ok("plain/file".into()));
        assert_eq!(expanded("${DATA}/a"), Ok("/data/a".into()));
        assert_eq!(expanded("x${DATA}y${DATA}"), Ok("x/datay/data".into()));
        assert_eq!(expanded("a$b}"), Ok("a$b}".into()));
    }

    #[test]
    fn unset_and_malformed_variables_are_errors() {
        let unset = expanded("${NOWHERE}/a").unwrap_err();
        assert_eq!(unset, r#"the environment variable NOWHERE in "${NOWHERE}/a" is not set"#);
        for text in ["${DATA", "${}", "a/${A=B}", "${${DATA}}"] {
            assert!(expanded(text).unwrap_err().contains("write ${NAME}"), "{text}");
        }
    }

    #[test]
    fn relative_paths_start_from_the_data_folder() {
        let resolved = |path| resolve(Path::new(path), Path::new("/base")).unwrap();
        assert_eq!(resolved("a.csv"), Path::new("/base/a.csv"));
        assert_eq!(resolved("/x/a.csv"), Path::new("/x/a.csv"));
    }
}
