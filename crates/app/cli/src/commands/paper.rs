//! `evb paper`: published tables and figures, ours beside theirs.

use crate::{
    failure::Failure,
    folder::{prepare_again, unwritable},
    signals::stop_on_signals,
    simulations::HowArgs,
    terminal::{show as show_text, width},
};
use clap::Args;
use evb::{Part, Plan, Record, Reproduction, Variations, record::PaperReport};
use evb_record::Outcome;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The page in the folder of the results.
const PAGE: &str = "index.html";
/// The plot of the errors of all predicted values there.
const ERRORS: &str = "errors.svg";

#[derive(Args)]
pub(crate) struct PaperArgs {
    /// Folders of the papers, such as `velo-2008`; all by default
    #[arg(value_name = "SLUG")]
    slugs: Vec<String>,
    /// Seed of every random stream, instead of the one in the experiment files
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write a web page with all tables and figures, and the results as records, into this folder
    #[arg(long, value_name = "DIR")]
    html: Option<PathBuf>,
    /// Simulate again with each assumed and calibrated parameter at the ends of its range, and show which values hold
    /// and which hang on it; takes minutes
    #[arg(long, conflicts_with = "html")]
    sensitivity: bool,
    #[command(flatten)]
    how: HowArgs,
}

pub(crate) fn run(args: &PaperArgs) -> Result<Outcome, Failure> {
    if args.sensitivity {
        return sensitivity(args);
    }
    let reproduction = Reproduction::new(&args.slugs, &seed(args))?;
    if let Some(folder) = &args.html {
        prepare_again(folder, PAGE)?;
    }
    let reports = reproduction.reports(simulate(args, reproduction.plans())?)?;
    show(&reports, args.how.json)?;
    if let Some(folder) = &args.html {
        write(folder, &reports)?;
    }
    Ok(reports.iter().all(PaperReport::good).into())
}

/// The override of the seed, if there is one.
fn seed(args: &PaperArgs) -> Vec<String> {
    args.seed.map(|seed| format!("run.seed={seed}")).into_iter().collect()
}

fn simulate(args: &PaperArgs, plans: Vec<&Plan>) -> Result<Vec<Record>, Failure> {
    let stop = stop_on_signals("the simulations end, and nothing is shown")?;
    let all = plans.len();
    let records = args.how.simulate(plans, vec![Part::Open; all], &stop, &|_| Ok(None), &mut ())?;
    if records.len() < all {
        return Err(Failure::new(format!("stopped after {} of {all} simulations", records.len())));
    }
    Ok(records)
}

/// Shows what moves with each parameter.
fn sensitivity(args: &PaperArgs) -> Result<Outcome, Failure> {
    let variations = Variations::new(&args.slugs, &seed(args))?;
    for (report, sensitivities) in variations.sensitivities(simulate(args, variations.plans())?)? {
        match args.how.json {
            true => print!("{}", lines(sensitivities.iter().map(serde_json::to_string))?),
            false => show_text(&format!("{}\n", evb_report::sensitivity_summary(&report, &sensitivities, width()))),
        }
    }
    Ok(Outcome::Good)
}

fn show(reports: &[PaperReport], as_json: bool) -> Result<(), Failure> {
    if as_json {
        let items = reports.iter().flat_map(|report| &report.items);
        print!("{}", lines(items.map(serde_json::to_string))?);
        return Ok(());
    }
    for report in reports {
        show_text(&format!("{}\n", evb_report::paper_summary(report, width())));
    }
    if reports.len() > 1 {
        show_text(&evb_report::paper_totals(reports, width()));
    }
    Ok(())
}

/// JSON records, each on its own line.
fn lines(records: impl Iterator<Item = serde_json::Result<String>>) -> Result<String, Failure> {
    records.map(|line| Ok(line.map_err(Failure::new)? + "\n")).collect()
}

fn write(folder: &Path, reports: &[PaperReport]) -> Result<(), Failure> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| unwritable(&path, &error))
    };
    let mut figures = Vec::new();
    for report in reports {
        for figure in &report.figures {
            let Some(svg) = evb_report::figure(figure) else { continue };
            let name = format!("{}-{}.svg", report.slug, figure.name);
            write(&name, &svg)?;
            figures.push(name);
        }
    }
    let items: Vec<_> = reports.iter().flat_map(|report| report.items.iter().cloned()).collect();
    let errors = evb_report::paper_errors(&items);
    if let Some(svg) = &errors {
        write(ERRORS, svg)?;
        figures.push(ERRORS.to_owned());
    }
    write("records.jsonl", &lines(items.iter().map(serde_json::to_string))?)?;
    write(PAGE, &evb_report::paper_page(reports, |name| figures.iter().any(|figure| figure == name)))
}
