//! Tables, CSV and plots from records. This crate reads records and nothing else, so all of them can be drawn again
//! later. Texts for people fit a width, in columns of a terminal; sentences with reasons may be longer.

mod advice;
mod benchmark;
mod bundles;
mod compare;
mod connections;
mod csv;
mod explain;
mod faults;
mod histograms;
mod network_faults;
mod paper;
mod planning;
mod plot;
mod qualification;
mod rates;
mod replicates;
mod runs;
mod simulation;
mod stages;
mod summary;
mod sweep;
mod table;
mod text;
mod twin;
mod verdict;

pub use advice::plan_explanation;
pub use benchmark::benchmark_tables;
pub use compare::{compare, compare_runs, comparison_table, is_same_measurement, run_comparison_table};
pub use csv::{MOST_SAMPLES, benchmark_csv, csv, links_csv, samples_csv, twin_csv};
pub use explain::{Limit, LimitRole, explain, explain_running, explanation};
pub use paper::{
    paper_page, paper_summary, paper_totals, papers_bands, papers_classes, papers_differences, papers_figure,
    papers_findings, papers_sentences, sensitivity_summary,
};
pub use planning::{plan_files, plan_summary};
pub use plot::{
    Plot, benchmark_plots, figure, is_axis, paper_errors, paper_parity, plots, plots_along, qualification_plots,
    twin_plots, twin_plots_along,
};
pub use qualification::qualification_summary;
pub use replicates::groups_csv;
pub use runs::{RunLine, run_list};
pub use simulation::simulation_summary;
pub use summary::run_summary;
pub use sweep::sweep_table;
pub use table::NARROW;
pub use text::metric;
pub use twin::{twin_summary, twin_table};
