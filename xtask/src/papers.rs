//! The papers: every value, its class and its verdict equal the stored ones, and so does the list of what moves with each
//! parameter.

use crate::steps::Options;
use serde_json::Value;
use std::{collections::BTreeMap, env, fs, io, process::Command, time::Duration};
use xtask::{
    cache::{Cache, Inputs},
    processes::Limited,
    workspace::Workspace,
};

/// Longest time for all papers on two cores.
const LIMIT: Duration = Duration::from_secs(600);
/// Longest time for the sensitivity of all papers.
const SENSITIVITY_LIMIT: Duration = Duration::from_secs(3600);

/// The fields that must equal the stored ones.
const JUDGED: [&str; 6] = ["published", "tolerance", "reproduced", "class", "verdict", "known"];

/// Seeds beside the one in the files, with which all classes and verdicts must be the same.
const OTHER_SEEDS: [&str; 3] = ["2", "3", "4"];

/// Most differences that are shown.
const MOST_SHOWN: usize = 10;

/// Reproduces all papers and compares the results with `expected.jsonl` in their folders, in a long test with other seeds,
/// too. With `UPDATE_PAPERS=1` in the environment it writes these files instead.
///
/// A simulation depends only on the program and the seed, so papers that passed with the same program are not repeated.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<(), String> {
    if env::var_os("UPDATE_PAPERS").is_some() {
        return reproduce(workspace, options);
    }
    let mut inputs = Inputs::default().and((JUDGED, OTHER_SEEDS, options.long)).and_file(&workspace.evb())?;
    let folders = fs::read_dir(workspace.root.join("papers")).map_err(|error| format!("papers: {error}"))?;
    let mut expected: Vec<_> = folders.flatten().map(|folder| folder.path().join("expected.jsonl")).collect();
    expected.sort();
    for path in expected.iter().filter(|path| path.is_file()) {
        inputs = inputs.and_file(path)?;
    }
    let cache = Cache::open(workspace.target.join("xtask-passed"), options.fresh)?;
    cache.check("papers", &inputs, || reproduce(workspace, options).map(|()| String::new())).map(drop)
}

fn reproduce(workspace: &Workspace, options: Options) -> Result<(), String> {
    let (lines, is_good) = evb_paper(workspace, &[], LIMIT)?;
    for (paper, found) in &lines {
        store_or_compare(workspace, paper, "expected.jsonl", found, &["item"], &JUDGED)?;
        eprintln!("  {paper}: {} values", found.len());
    }
    if !is_good {
        return Err("evb paper: the values outside the tolerances differ from the lists of known differences".into());
    }
    for seed in OTHER_SEEDS.iter().filter(|_| options.long) {
        for (paper, found) in evb_paper(workspace, &[&format!("--seed={seed}")], LIMIT)?.0 {
            let [expected, found] = [&lines[&paper], &found].map(|records| without_varying(records));
            compare(&paper, &expected, &found, &["item", "class", "verdict"])?;
        }
        eprintln!("  the same classes and verdicts with seed {seed}");
    }
    Ok(())
}

/// Varies the parameters of all papers and compares what moves with `sensitivity.jsonl` in their folders, which determine
/// the classes. With `UPDATE_PAPERS=1` in the environment it writes these files instead.
pub(crate) fn sensitivity(workspace: &Workspace) -> Result<(), String> {
    for (paper, found) in evb_paper(workspace, &["--sensitivity"], SENSITIVITY_LIMIT)?.0 {
        store_or_compare(workspace, &paper, "sensitivity.jsonl", &found, &["parameter"], &["values", "items"])?;
        eprintln!("  {paper}: {} parameters", found.len());
    }
    Ok(())
}

/// The records of all papers, and true if `evb paper` reported success.
fn evb_paper(
    workspace: &Workspace,
    options: &[&str],
    limit: Duration,
) -> Result<(BTreeMap<String, Vec<Value>>, bool), String> {
    let mut command = Command::new(workspace.evb());
    command.args(["paper", "--json", "--quiet"]).args(options);
    let (status, output) = Limited::start(&mut command, limit).map_err(|error| error.to_string())?.wait()?;
    if !matches!(status.code(), Some(0 | 1)) {
        return Err(format!("evb paper: {status}"));
    }
    let mut papers = BTreeMap::<String, Vec<Value>>::new();
    for line in output.lines() {
        let record = parse(line)?;
        if record["kind"] == "paper" && (record["verdict"] == "outside") == record["known"].is_null() {
            eprintln!("  differs from the list of known differences: {line}");
        }
        papers.entry(record["paper"].as_str().unwrap_or_default().to_owned()).or_default().push(record);
    }
    Ok((papers, status.success()))
}

/// Compares records with those in a file of the folder of a paper, or stores them there.
fn store_or_compare(
    workspace: &Workspace,
    paper: &str,
    file: &str,
    found: &[Value],
    names: &[&str],
    fields: &[&str],
) -> Result<(), String> {
    let path = workspace.root.join("papers").join(paper).join(file);
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    if env::var_os("UPDATE_PAPERS").is_some() {
        let text: String = found.iter().map(|record| format!("{record}\n")).collect();
        return fs::write(&path, text).map_err(failed);
    }
    let expected = fs::read_to_string(&path).map_err(failed)?;
    let expected = expected.lines().map(parse).collect::<Result<Vec<_>, _>>()?;
    compare(paper, &expected, found, &[names, fields].concat())
}

/// The records of values whose verdict does not depend on the seed.
fn without_varying(records: &[Value]) -> Vec<Value> {
    records.iter().filter(|record| record["varies"] != true).cloned().collect()
}

fn parse(line: &str) -> Result<Value, String> {
    serde_json::from_str(line).map_err(|error| format!("a record: {error}"))
}

/// Compares some fields of all records, which are in the same order; the first field is the name.
fn compare(paper: &str, expected: &[Value], found: &[Value], fields: &[&str]) -> Result<(), String> {
    let mut differences = Vec::new();
    if expected.len() != found.len() {
        differences.push(format!("{} records instead of {}", found.len(), expected.len()));
    }
    for (expected, found) in expected.iter().zip(found) {
        for field in fields.iter().filter(|field| expected[**field] != found[**field]) {
            let name = &found[fields[0]];
            differences.push(format!("{name}: {field} is {} and was {}", found[field], expected[field]));
        }
    }
    if differences.is_empty() {
        return Ok(());
    }
    differences.truncate(MOST_SHOWN);
    let hint = "if that is right, store it with `UPDATE_PAPERS=1 cargo xtask papers`, and review the change";
    Err(format!("{paper} differs from the stored results:\n  {}\nhint: {hint}", differences.join("\n  ")))
}
