//! Makes plans from an experiment file.

use crate::{
    check,
    diagnostics::{Diagnostics, Problem, Texts},
    limits::{MAX_FILE, MAX_FOUND, MAX_SWEEP_SOURCES},
    parse,
    plan::Plan,
    print,
    sections::{
        self, data,
        network::{KnownNetwork, preset},
    },
    stages,
    sweep::Sweep,
    tree::{Node, Table, Value},
};
use std::{fs::File, io::Read, path::Path};

/// An experiment file, checked and resolved.
#[derive(Clone, Debug)]
pub struct Experiment {
    plans: Vec<Plan>,
    /// The values that all plans have in common, every default filled in.
    common: Node,
    sweep: Sweep,
}

impl Experiment {
    /// Reads an experiment file. Each of `overrides` is a text `key.path=value` as given to `--set`.
    ///
    /// # Errors
    /// The file cannot be read, is not UTF-8, or is not a good experiment.
    pub fn load(path: impl AsRef<Path>, overrides: &[String]) -> Result<Self, Diagnostics> {
        Self::parse(&Self::read(path.as_ref())?, &path.as_ref().to_string_lossy(), overrides)
    }

    /// Reads the text of an experiment file, for [`parse`](Self::parse). A pipe can be read only once.
    ///
    /// # Errors
    /// The file cannot be read, or is not UTF-8.
    pub fn read(path: impl AsRef<Path>) -> Result<String, Diagnostics> {
        read(path.as_ref())
    }

    /// Reads an experiment file, and the network from another file. It replaces the network of the experiment, except
    /// for the hosts of the nodes and the faults.
    ///
    /// # Errors
    /// As [`load`](Self::load), for both files.
    pub fn load_on(path: impl AsRef<Path>, network: &Path, overrides: &[String]) -> Result<Self, Diagnostics> {
        let text = read(path.as_ref())?;
        parse_all(&text, &path.as_ref().to_string_lossy(), Some(&Other::read(network)?), overrides)
    }

    /// Reads the text of an experiment file. Relative folders start from the folder in `file_name`.
    ///
    /// # Errors
    /// The text is not a good experiment.
    pub fn parse(text: &str, file_name: &str, overrides: &[String]) -> Result<Self, Diagnostics> {
        parse_all(text, file_name, None, overrides)
    }

    /// The plans, in the order of the sweep; just one without a sweep.
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// The experiment as a file with every default filled in. It returns the same plans again when it is parsed under a
    /// name without a folder. A default that differs between the points of a sweep is left out.
    pub fn resolved(&self) -> String {
        let mut table = self.common.table().cloned().unwrap_or_default();
        if let Some(sweep) = self.sweep.table() {
            table.push("sweep", Value::Table(sweep).into());
        }
        print::file(&table)
    }

    /// The file, without a sweep, that defines only the plan with this index.
    pub fn resolved_at(&self, index: usize) -> Option<String> {
        let mut root = self.common.clone();
        self.plans.get(index)?;
        self.sweep.apply(index, &mut root).ok()?;
        sections::fill(&mut root, "");
        let filled = check::check(&root).ok()?;
        filled.table().map(print::file)
    }
}

/// The text of a file beside the experiment.
#[derive(Clone, Debug)]
pub struct Other {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Other {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read or is not UTF-8.
    pub fn read(path: &Path) -> Result<Self, Diagnostics> {
        Ok(Self { name: path.to_string_lossy().into_owned(), text: read(path)? })
    }
}

fn parse_all(
    text: &str,
    file_name: &str,
    network: Option<&Other>,
    overrides: &[String],
) -> Result<Experiment, Diagnostics> {
    resolve(text, Path::new(file_name), network, overrides).map_err(|problems| {
        let texts = Texts::new(file_name, text, overrides);
        let texts = network.into_iter().fold(texts, |texts, other| texts.and(&other.name, &other.text));
        Diagnostics::new(file_name, problems, &texts)
    })
}

fn read(path: &Path) -> Result<String, Diagnostics> {
    let name = path.to_string_lossy();
    read_text(path).map_err(|problem| Diagnostics::new(&name, vec![problem], &Texts::new(&name, "", &[])))
}

fn read_text(path: &Path) -> Result<String, Problem> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| {
        Problem::new(format!("cannot read {shown}: {error}"), "give the path of an experiment file, a text in TOML")
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE.0 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE.0 {
        return Err(parse::too_large(MAX_FILE));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..good].iter().filter(|byte| **byte == b'\n').count();
        let message = format!("{shown} is not UTF-8 text: see byte {good}, on line {line}");
        Problem::new(message, "save it as UTF-8, or check that it is an experiment file at all")
    })
}

fn resolve(text: &str, file: &Path, network: Option<&Other>, overrides: &[String]) -> Result<Experiment, Vec<Problem>> {
    let mut root = parse::file(text)?;
    if let Some(other) = network {
        preset::replace(&mut root, parse::other(&other.text, 1 + overrides.len())?)?;
    }
    let set = parse::overrides(&mut root, overrides)?;
    let mut sweep = Sweep::take(&mut root, &set)?;
    let folder = file.parent().unwrap_or(Path::new("")).to_string_lossy();
    data::anchor(&mut root, &folder);
    sweep.values_mut().for_each(|(path, value)| data::anchor_swept(path, value, &folder));
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let (mut plans, mut problems) = (Vec::new(), Vec::new());
    let (mut common, mut sources): (Option<Table>, usize) = (None, 0);
    let mut network = KnownNetwork::default();
    for point in 0..sweep.points() {
        match resolve_point(&root, &sweep, point, &stem, &mut network) {
            Ok((plan, filled)) => {
                sources += plan.sources.len();
                plans.push(plan);
                common = Some(common.map_or_else(|| filled.clone(), |so_far| shared(so_far, &filled)));
            }
            Err(found) => found.into_iter().for_each(|problem| note(&mut problems, problem)),
        }
        if sources > MAX_SWEEP_SOURCES {
            let message = format!("the sweep has more than {MAX_SWEEP_SOURCES} readout units in all its points");
            note(&mut problems, Problem::new(message, "sweep fewer values, or write several files"));
        }
        if problems.len() >= MAX_FOUND || sources > MAX_SWEEP_SOURCES {
            break;
        }
    }
    match common {
        Some(common) if problems.is_empty() => Ok(Experiment { plans, common: Value::Table(common).into(), sweep }),
        _ => Err(problems),
    }
}

/// Drops repeated problems: the points of a sweep often share one.
fn note(problems: &mut Vec<Problem>, problem: Problem) {
    if !problems.contains(&problem) {
        problems.push(problem);
    }
}

fn resolve_point(
    root: &Node,
    sweep: &Sweep,
    point: usize,
    stem: &str,
    network: &mut KnownNetwork,
) -> Result<(Plan, Table), Vec<Problem>> {
    let mut root = root.clone();
    sweep.apply(point, &mut root)?;
    sections::fill(&mut root, stem);
    let filled = check::check(&root)?;
    sections::check(&filled, network)?;
    let mut plan = sections::plan(&filled, sweep.names(point), network);
    plan.stages = stages::stages(&filled, &plan)?;
    let Value::Table(table) = filled.value else { return Err(Vec::new()) };
    Ok((plan, table))
}

/// The entries that two filled trees have in common.
fn shared(mut one: Table, other: &Table) -> Table {
    one.0.retain_mut(|entry| other.get(&entry.key).is_some_and(|node| keep_shared(&mut entry.node, node)));
    one
}

/// Reduces `one` to the part in common with `other`; returns false when there is none.
fn keep_shared(one: &mut Node, other: &Node) -> bool {
    if one == other {
        return true;
    }
    match (&mut one.value, &other.value) {
        (Value::Table(mine), Value::Table(theirs)) => {
            *mine = shared(std::mem::take(mine), theirs);
            !mine.0.is_empty()
        }
        // Tables keep their place in the list, even when nothing of them is left.
        (Value::List(mine), Value::List(theirs)) if mine.len() == theirs.len() => {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                keep_shared(mine, theirs);
            }
            true
        }
        _ => false,
    }
}
