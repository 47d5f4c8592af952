//! The papers: every item is inside its tolerance and equals the stored result.

use crate::{processes::Limited, workspace::Workspace};
use serde_json::Value;
use std::{collections::BTreeMap, env, fs, process::Command, time::Duration};

/// Longest time for all papers on two cores.
const LIMIT: Duration = Duration::from_secs(600);

/// Seeds beside the one in the files, with which all verdicts must be the same.
const OTHER_SEEDS: [&str; 3] = ["2", "3", "4"];

/// Most differences that are shown.
const MOST_TOLD: usize = 10;

/// Reproduces all papers and compares the results with `expected.jsonl` in their folders; `long` does so with other
/// seeds, too. With `UPDATE_PAPERS=1` in the environment it writes these files instead.
pub(crate) fn run(workspace: &Workspace, long: bool) -> Result<(), String> {
    let lines = reproduce(workspace, None)?;
    for (paper, found) in &lines {
        let path = workspace.root.join("papers").join(paper).join("expected.jsonl");
        if env::var_os("UPDATE_PAPERS").is_some() {
            let text: String = found.iter().map(|item| format!("{item}\n")).collect();
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let expected = text.lines().map(parse).collect::<Result<Vec<_>, _>>()?;
        compare(paper, &expected, found, &["published", "tolerance", "reproduced", "verdict"])?;
        eprintln!("  {paper}: {} values", found.len());
    }
    for seed in OTHER_SEEDS.iter().filter(|_| long) {
        for (paper, found) in reproduce(workspace, Some(seed))? {
            compare(&paper, &lines[&paper], &found, &["verdict"])?;
        }
        eprintln!("  the same verdicts with seed {seed}");
    }
    Ok(())
}

/// The records of all items, by paper.
fn reproduce(workspace: &Workspace, seed: Option<&str>) -> Result<BTreeMap<String, Vec<Value>>, String> {
    let mut command = Command::new(workspace.evb());
    command.args(["paper", "--json", "--quiet"]).args(seed.map(|seed| format!("--seed={seed}")));
    let (status, output) = Limited::start(&mut command, LIMIT).map_err(|error| error.to_string())?.wait()?;
    let mut papers = BTreeMap::<String, Vec<Value>>::new();
    for line in output.lines() {
        let item = parse(line)?;
        if item["within"] != true {
            eprintln!("  outside its tolerance: {line}");
        }
        papers.entry(item["paper"].as_str().unwrap_or_default().to_owned()).or_default().push(item);
    }
    if status.success() { Ok(papers) } else { Err(format!("evb paper: {status}")) }
}

fn parse(line: &str) -> Result<Value, String> {
    serde_json::from_str(line).map_err(|error| format!("a record: {error}"))
}

/// Compares some fields of all items, which are in the same order.
fn compare(paper: &str, expected: &[Value], found: &[Value], fields: &[&str]) -> Result<(), String> {
    let mut differences = Vec::new();
    if expected.len() != found.len() {
        differences.push(format!("{} values instead of {}", found.len(), expected.len()));
    }
    for (expected, found) in expected.iter().zip(found) {
        for field in ["item"].iter().chain(fields).filter(|field| expected[**field] != found[**field]) {
            differences.push(format!("{}: {field} is {} and was {}", found["item"], found[field], expected[field]));
        }
    }
    if differences.is_empty() {
        return Ok(());
    }
    differences.truncate(MOST_TOLD);
    let hint = "if that is right, write it down with `UPDATE_PAPERS=1 cargo xtask test`, and read the change";
    Err(format!("{paper} is not as expected:\n  {}\nhint: {hint}", differences.join("\n  ")))
}
