//! How well papers are predicted: independent findings, their errors, and how many of them are inside.

use evb_record::{PaperFinding, PaperItem, PaperReport, Verdict};

/// The predicted values of one finding.
pub(crate) struct Finding<'a> {
    pub(crate) paper: &'a str,
    pub(crate) items: Vec<&'a PaperItem>,
    causes: &'a [String],
}

impl<'a> Finding<'a> {
    fn new(report: &'a PaperReport, finding: &'a PaperFinding) -> Self {
        let items = finding.items.iter().map(|index| &report.items[*index]).collect();
        Self { paper: &report.slug, items, causes: &finding.causes }
    }

    /// Returns true if all values are inside, with any seed.
    fn is_inside(&self) -> bool {
        self.items.iter().all(|item| item.verdict == Verdict::Inside && !item.varies)
    }

    /// The median of the errors of the values, without their signs, in per cent.
    fn error(&self) -> Option<f64> {
        median(&errors(&self.items))
    }
}

/// The findings of all reports, either of measurements or of theory.
pub(crate) fn findings(reports: &[PaperReport], theory: bool) -> Vec<Finding<'_>> {
    let of_report = |report| move |finding| Finding::new(report, finding);
    let all = reports.iter().flat_map(|report| report.findings.iter().map(of_report(report)));
    all.filter(|finding| finding.items.iter().any(|item| item.theory == theory)).collect()
}

/// The findings of each paper, in the order of the papers.
pub(crate) fn by_paper<'a, 'b>(findings: &'b [Finding<'a>]) -> Vec<(&'a str, &'b [Finding<'a>])> {
    findings.chunk_by(|one, other| one.paper == other.paper).map(|part| (part[0].paper, part)).collect()
}

/// How well some findings are predicted. Errors are in per cent of the published values.
pub(crate) struct Score<'a> {
    /// The number of findings, and how many are inside.
    pub(crate) findings: usize,
    pub(crate) inside: usize,
    /// The median of the errors of the findings.
    pub(crate) median: Option<f64>,
    /// The number of predicted values, and how many are inside.
    pub(crate) values: usize,
    pub(crate) values_inside: usize,
    /// The median of the errors of the values.
    pub(crate) median_of_values: Option<f64>,
    /// The value with the largest error.
    pub(crate) worst: Option<(f64, &'a PaperItem)>,
    /// The causes of what is outside, each once.
    pub(crate) causes: Vec<&'a str>,
}

impl<'a> Score<'a> {
    pub(crate) fn of(findings: &[Finding<'a>]) -> Self {
        let items: Vec<_> = findings.iter().flat_map(|finding| finding.items.iter().copied()).collect();
        let with_error = items.iter().filter_map(|item| Some((error(item)?, *item)));
        let mut causes = Vec::new();
        for cause in findings.iter().flat_map(|finding| finding.causes) {
            if !causes.contains(&cause.as_str()) {
                causes.push(cause);
            }
        }
        Self {
            findings: findings.len(),
            inside: findings.iter().filter(|finding| finding.is_inside()).count(),
            median: median(&findings.iter().filter_map(Finding::error).collect::<Vec<_>>()),
            values: items.len(),
            values_inside: items.iter().filter(|item| item.verdict == Verdict::Inside).count(),
            median_of_values: median(&errors(&items)),
            worst: with_error.max_by(|one, other| one.0.abs().total_cmp(&other.0.abs())),
            causes,
        }
    }

    /// The worst error with its sign and the name of its value; empty without errors.
    pub(crate) fn worst_text(&self, quote: &str) -> String {
        self.worst.map_or_else(String::new, |(error, item)| format!("{error:+.1} % ({quote}{}{quote})", item.item))
    }
}

/// An error as text.
pub(crate) fn percent(error: Option<f64>) -> String {
    error.map_or_else(|| "no number".into(), |error| format!("{error:.1} %"))
}

/// The errors of values without their signs, in per cent.
fn errors(items: &[&PaperItem]) -> Vec<f64> {
    items.iter().filter_map(|item| error(item)).map(f64::abs).collect()
}

/// The error of a value in per cent: infinite if the value is not a number, `None` if zero was published.
fn error(item: &PaperItem) -> Option<f64> {
    if item.reproduced.is_none() { Some(f64::INFINITY) } else { item.error_percent() }
}

fn median(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| evb_record::median(values))
}
