//! Figures on the pages of the presets: theory beside simulation, with the commands.

use crate::support::{assert_near, efficiency, run_with};
use evb_record::Record;
use std::{fs, path::Path};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
/// The section of a page begins so, and ends where the next one begins.
const HEADING: &str = "## Compared with theory\n";

/// A figure from theory, and the simulation that must agree with it.
pub(crate) struct Comparison {
    pub(crate) what: String,
    /// The source of the figure.
    pub(crate) source: &'static str,
    /// In bytes, seconds, or messages per second.
    pub(crate) theory: f64,
    pub(crate) unit: FigureUnit,
    /// The tolerance, as a part of the figure.
    pub(crate) within: f64,
    /// The experiment file, from the root of the repository.
    pub(crate) file: &'static str,
    /// Keys with other values than there.
    pub(crate) set: Vec<String>,
}

/// The number of a record that a figure is.
#[derive(Clone, Copy)]
pub(crate) enum FigureUnit {
    Time,
    Rate,
    RateOfEach,
    Messages,
    Efficiency,
}

impl Comparison {
    /// An experiment on the network of a preset, with some keys set; the figure is still to be filled in.
    pub(crate) fn new(file: &'static str, preset: &str, set: &[&str], more: &[&str]) -> Self {
        let preset = format!("network.preset={preset}");
        let set = [&[preset.as_str()], set, more].concat().into_iter().map(str::to_owned).collect();
        Self { what: String::new(), source: "", theory: 0.0, unit: FigureUnit::Time, within: 0.0, file, set }
    }

    fn simulate(&self) -> f64 {
        let path = Path::new(ROOT).join(self.file);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let set: Vec<_> = self.set.iter().map(String::as_str).collect();
        let value = self.unit.of(&run_with(&text, &set));
        assert_near(&format!("{} {}: {}", self.file, self.set[0], self.what), value, self.theory, self.within);
        value
    }

    fn command(&self) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.=".contains(c);
        let quoted = |set: &String| if set.chars().all(is_plain) { set.clone() } else { format!("'{set}'") };
        let set: String = self.set.iter().map(|set| format!(" --set {}", quoted(set))).collect();
        format!("evb simulate {}{set}\n", self.file)
    }

    fn row(&self) -> String {
        let [theory, simulated] = [self.theory, self.simulate()].map(|value| self.unit.show(value));
        format!("| {} | {theory} | {simulated} | {} |\n", self.what, self.source)
    }
}

impl FigureUnit {
    fn of(self, record: &Record) -> f64 {
        match self {
            Self::Time => record.seconds,
            Self::Rate => record.throughput_bytes_per_s,
            Self::RateOfEach => record.throughput_bytes_per_s / record.per_destination_bytes_per_s.len() as f64,
            Self::Messages => record.event_rate_hz,
            Self::Efficiency => efficiency(record),
        }
    }

    fn show(self, value: f64) -> String {
        let (value, unit) = match self {
            Self::Time if value < 1e-6 => (value * 1e9, "ns"),
            Self::Time => (value * 1e6, "us"),
            Self::Rate | Self::RateOfEach if value >= 1e9 => (value / 1e9, "GB/s"),
            Self::Rate | Self::RateOfEach => (value / 1e6, "MB/s"),
            Self::Messages => (value / 1e3, "kHz"),
            Self::Efficiency => (value * 100.0, "%"),
        };
        let decimals = (3 - value.log10().floor() as i32).max(0) as usize;
        format!("{value:.decimals$} {unit}")
    }
}

/// Simulates, compares, and looks whether the page of a preset shows what came of it. With UPDATE_DOCS set, it is
/// written there instead.
#[track_caller]
pub(crate) fn check_page(preset: &str, comparisons: &[Comparison]) {
    let rows: String = comparisons.iter().map(Comparison::row).collect();
    let commands: String = comparisons.iter().map(Comparison::command).collect();
    let section = format!(
        "{HEADING}\n| what | theory | simulated | theory is |\n|---|---|---|---|\n{rows}\nThe commands, in this \
         order:\n\n```sh\n{commands}```\n\n"
    );
    let path = Path::new(ROOT).join("docs/reference/networks").join(format!("{preset}.md"));
    let page = fs::read_to_string(&path).expect("the preset has a page");
    if page.contains(&section) {
        return;
    }
    assert!(std::env::var_os("UPDATE_DOCS").is_some(), "{} is old: run this test with UPDATE_DOCS=1", path.display());
    fs::write(&path, with_section(&page, &section)).expect("the page can be written");
}

/// The page with this section in the place of the old one, or before the validation.
fn with_section(page: &str, section: &str) -> String {
    let begin = page.find(HEADING).or_else(|| page.find("## Validation")).unwrap_or(page.len());
    let rest = page[begin..]
        .strip_prefix(HEADING)
        .map_or(&page[begin..], |old| old.find("\n## ").map_or("", |end| &old[end + 1..]));
    format!("{}{section}{rest}", &page[..begin])
}
