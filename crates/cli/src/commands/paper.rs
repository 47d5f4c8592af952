//! `evb paper`: published tables and figures, ours beside theirs.

use crate::{
    failure::Failure,
    folder::{prepare, unwritable},
    signals::stop_on_signals,
    simulations::HowArgs,
    terminal::{show as show_text, width},
};
use clap::Args;
use evb::{
    Reproduction,
    record::{PaperItem, PaperReport},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The page in the folder of the results.
const PAGE: &str = "index.html";

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
    #[command(flatten)]
    how: HowArgs,
}

pub(crate) fn run(args: &PaperArgs) -> Result<bool, Failure> {
    let seed: Vec<_> = args.seed.map(|seed| format!("run.seed={seed}")).into_iter().collect();
    let reproduction = Reproduction::new(&args.slugs, &seed)?;
    let stop = stop_on_signals("the simulations end, and nothing is shown")?;
    if let Some(folder) = &args.html {
        prepare(folder, PAGE)?;
    }
    let plans = reproduction.plans();
    let all = plans.len();
    let records = args.how.simulate(plans, &stop, &|_| Ok(None), &mut |_| Ok(()))?;
    if records.len() < all {
        return Err(Failure::new(format!("stopped after {} of {all} simulations", records.len())));
    }
    let reports = reproduction.reports(records)?;
    show(&reports, args.how.json)?;
    if let Some(folder) = &args.html {
        write(folder, &reports)?;
    }
    Ok(reports.iter().all(PaperReport::good))
}

fn show(reports: &[PaperReport], as_json: bool) -> Result<(), Failure> {
    let items: Vec<_> = reports.iter().flat_map(|report| report.items.iter().cloned()).collect();
    if as_json {
        print!("{}", lines(&items)?);
        return Ok(());
    }
    for report in reports {
        show_text(&format!("{}\n", evb_report::paper_summary(report, width())));
    }
    if reports.len() > 1 {
        show_text(&evb_report::paper_totals(&items, width()));
    }
    Ok(())
}

/// One JSON record for each item, each on a line of its own.
fn lines(items: &[PaperItem]) -> Result<String, Failure> {
    let lines: Result<Vec<_>, _> = items.iter().map(serde_json::to_string).collect();
    Ok(lines.map_err(Failure::new)?.into_iter().map(|line| line + "\n").collect())
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
    write("records.jsonl", &lines(&items)?)?;
    write(PAGE, &evb_report::paper_page(reports, |name| figures.iter().any(|figure| figure == name)))
}
