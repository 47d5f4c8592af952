//! Problems of an experiment: their places, and how to mend them.

use crate::{limits::MAX_PROBLEMS, tree::Origin};
use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use std::{error::Error, fmt, sync::Arc};

/// All problems of an experiment file or a `--set`, most with a place in the text.
#[derive(Debug)]
pub struct Diagnostics {
    file_name: String,
    problems: Vec<Located>,
    /// Problems beyond those that are shown.
    more: usize,
}

/// One problem as plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProblemText<'a> {
    /// What is wrong.
    pub message: &'a str,
    /// How to mend it.
    pub hint: &'a str,
    /// Where it is, if it is at one place.
    pub place: Option<Place<'a>>,
}

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// Name of the file, or `--set`.
    pub file: &'a str,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
}

/// One problem, as the checks find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    message: String,
    help: String,
    labels: Vec<(Origin, String)>,
}

/// The texts that origins point into: the file, then each `--set`, then other files.
pub(crate) struct Texts(Vec<Arc<NamedSource<String>>>);

/// One problem with its text.
#[derive(Debug)]
struct Located {
    problem: Problem,
    text: Option<Arc<NamedSource<String>>>,
}

impl Diagnostics {
    /// Puts the problems into the order of the texts.
    pub(crate) fn new(file_name: &str, mut problems: Vec<Problem>, texts: &Texts) -> Self {
        problems.sort_by_key(|problem| match problem.labels.first() {
            Some((origin, _)) => (origin.text, origin.start),
            None => (usize::MAX, 0),
        });
        // A mistake in a table that several sources share is one mistake.
        problems.dedup_by(|later, earlier| !later.labels.is_empty() && later.labels == earlier.labels);
        let more = problems.len().saturating_sub(MAX_PROBLEMS);
        let problems = problems.into_iter().take(MAX_PROBLEMS).map(|problem| texts.locate(problem)).collect();
        Self { file_name: file_name.to_owned(), problems, more }
    }

    /// The problems as plain text, in the order of their places.
    pub fn problems(&self) -> impl Iterator<Item = ProblemText<'_>> {
        self.problems.iter().map(Located::text)
    }

    /// The one problem, when there is just one.
    fn single(&self) -> Option<&Located> {
        match (&*self.problems, self.more) {
            ([only], 0) => Some(only),
            _ => None,
        }
    }
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into(), labels: Vec::new() }
    }

    /// Says in which part of the experiment it is.
    pub(crate) fn within(self, part: &str) -> Self {
        Self { message: format!("{part}: {}", self.message), ..self }
    }

    /// Points at a place. Places in another text than the first, and defaults (which have none), are left out.
    pub(crate) fn at(mut self, origin: Option<Origin>, label: impl Into<String>) -> Self {
        if let Some(origin) = origin
            && self.labels.first().is_none_or(|(first, _)| first.text == origin.text)
        {
            self.labels.push((origin, label.into()));
        }
        self
    }
}

impl Texts {
    pub(crate) fn new(file_name: &str, text: &str, overrides: &[String]) -> Self {
        let named = |name: &str, text: &str| Arc::new(NamedSource::new(name, text.to_owned()));
        let overrides = overrides.iter().map(|text| named("--set", text));
        Self(std::iter::once(named(file_name, text)).chain(overrides).collect())
    }

    /// Adds one more file.
    pub(crate) fn and(mut self, name: &str, text: &str) -> Self {
        self.0.push(Arc::new(NamedSource::new(name, text.to_owned())));
        self
    }

    fn locate(&self, problem: Problem) -> Located {
        let text = problem.labels.first().and_then(|(origin, _)| self.0.get(origin.text)).cloned();
        Located { problem, text }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.single() {
            Some(located) => located.fmt(f),
            None => write!(f, "{} problems in {}", self.problems.len() + self.more, self.file_name),
        }
    }
}

impl Error for Diagnostics {}

impl Diagnostic for Diagnostics {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        match self.single() {
            Some(located) => located.help(),
            None if self.more > 0 => Some(Box::new(format!("mend these first: {} more are not shown", self.more))),
            None => None,
        }
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.single()?.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.single()?.labels()
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        let all = || self.problems.iter().map(|located| located as &dyn Diagnostic);
        self.single().is_none().then(|| Box::new(all()) as Box<dyn Iterator<Item = _>>)
    }
}

impl Located {
    fn text(&self) -> ProblemText<'_> {
        let Problem { message, help, .. } = &self.problem;
        ProblemText { message, hint: help, place: self.place() }
    }

    fn place(&self) -> Option<Place<'_>> {
        let (source, (origin, _)) = (self.text.as_ref()?, self.problem.labels.first()?);
        let before = source.inner().get(..origin.start)?;
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |start| start.chars().count()) + 1;
        Some(Place { file: source.name(), line, column })
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem.message)
    }
}

impl Error for Located {}

impl Diagnostic for Located {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.problem.help))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.text.as_deref().map(|text| text as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = |(origin, label): &(Origin, String)| {
            LabeledSpan::new(Some(label.clone()), origin.start, origin.end - origin.start)
        };
        Some(Box::new(self.problem.labels.iter().map(span)))
    }
}
