//! Who may do what: operators, their roles and their tokens.

use sha2::{Digest as _, Sha256};
use std::{fmt, fs, io, os::unix::fs::MetadataExt as _, path::Path};

/// Fewest characters of a token.
const SHORTEST: usize = 16;

/// What an operator may do. Each role may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// See everything, and change nothing.
    Watch,
    /// Command runs, and comment on them.
    Operate,
    /// Change the experiment, and end the service.
    Admin,
}

impl Role {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Watch, Self::Operate, Self::Admin].into_iter().find(|role| role.name() == name)
    }
}

/// An operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// Name of the operator, for the log.
    pub name: String,
    /// What the operator may do.
    pub role: Role,
}

/// All operators, by the hash of their token: the tokens themselves are kept nowhere.
#[derive(Clone, Default)]
pub struct Access(Vec<([u8; 32], Operator)>);

/// Hides even the hashes.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Access({} operators)", self.0.len())
    }
}

/// An error in a file of tokens.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The file cannot be read.
    #[error("the tokens {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// Others can read the file.
    #[error("the tokens {path} can be read by others: `chmod 600 {path}`")]
    Open {
        /// The file.
        path: String,
    },
    /// A line is wrong.
    #[error("the tokens {path}, line {line}: {what}")]
    Line {
        /// The file.
        path: String,
        /// Number of the line.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
}

impl Access {
    /// One operator who may do everything, with this token.
    pub fn admin(token: &str) -> Self {
        Self(vec![(hash(token), Operator { name: "admin".into(), role: Role::Admin })])
    }

    /// The operators of a file: a line for each, with name, role and token between spaces. Lines that begin with `#` are
    /// comments.
    ///
    /// # Errors
    /// [`AccessError`]; no error shows a token.
    pub fn load(path: &Path) -> Result<Self, AccessError> {
        let name = path.display().to_string();
        let read = |source| AccessError::Read { path: name.clone(), source };
        if fs::metadata(path).map_err(read)?.mode() & 0o077 != 0 {
            return Err(AccessError::Open { path: name });
        }
        let text = fs::read_to_string(path).map_err(read)?;
        let wrong = |(line, what)| AccessError::Line { path: name.clone(), line, what };
        Self::parse(&text).map_err(wrong)
    }

    fn parse(text: &str) -> Result<Self, (usize, &'static str)> {
        let mut operators = Vec::new();
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            let (Some(name), Some(role), Some(token), None) = (words.next(), words.next(), words.next(), words.next())
            else {
                return Err((number, "write name, role and token between spaces"));
            };
            let role = Role::named(role).ok_or((number, "the role is watch, operate or admin"))?;
            if token.len() < SHORTEST {
                return Err((number, "the token is shorter than 16 characters"));
            }
            operators.push((hash(token), Operator { name: name.to_owned(), role }));
        }
        if operators.is_empty() {
            return Err((0, "it names no operator"));
        }
        Ok(Self(operators))
    }

    /// The operator with this token. The time does not tell how much of a wrong one is right: hashes are compared, all of
    /// them.
    pub fn operator(&self, token: &str) -> Option<&Operator> {
        let shown = hash(token);
        self.0.iter().fold(None, |found, (known, operator)| match known == &shown {
            true => Some(operator),
            false => found,
        })
    }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn operators_have_their_roles_and_others_none() {
        let text = "# the night shift\nanna admin 0123456789abcdef\n\nben watch fedcba9876543210\n";
        let access = Access::parse(text).unwrap();
        assert_eq!(access.operator("0123456789abcdef").unwrap().role, Role::Admin);
        assert_eq!(access.operator("fedcba9876543210").unwrap().name, "ben");
        assert_eq!(access.operator("fedcba987654321"), None);
        assert!(Role::Watch < Role::Operate && Role::Operate < Role::Admin);
        assert_eq!(format!("{access:?}"), "Access(2 operators)");
    }

    #[test]
    fn wrong_files_are_refused_without_showing_a_token() {
        for (text, line) in [
            ("", 0),
            ("\nanna admin", 2),
            ("anna boss 0123456789abcdef", 1),
            ("anna admin short", 1),
            ("a admin b c", 1),
        ] {
            assert_eq!(Access::parse(text).unwrap_err().0, line, "{text}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        fs::write(&path, "anna admin 0123456789abcdef").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Access::load(&path), Err(AccessError::Open { .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(Access::load(&path).is_ok());
        fs::write(&path, "anna boss 0123456789abcdef").unwrap();
        let error = Access::load(&path).unwrap_err().to_string();
        assert!(error.contains("line 1") && !error.contains("0123456789abcdef"), "{error}");
    }
}
