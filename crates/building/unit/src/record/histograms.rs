//! The histograms of all builder units together, and what stands out in them.

use crate::Account;
use evb_experiment::{HistogramPlan, Plan};
use evb_record::{Finding, FindingKind, Histogram, RecordKind};

impl Account {
    /// The histograms so far, in the order of the plan: those of all builders together. Of a builder that was lost, what it
    /// reported last counts.
    pub fn histograms(&self) -> Vec<Histogram> {
        let mut all: Vec<Histogram> = Vec::new();
        for builder in &self.builders {
            match all.is_empty() {
                true => all.clone_from(&builder.histograms),
                false => all.iter_mut().zip(&builder.histograms).for_each(|(sum, own)| sum.add(own)),
            }
        }
        all
    }

    /// The histograms for a record. What stands out in them becomes findings. In a simulation those of payload are not
    /// filled, and a finding says so.
    pub(super) fn filled(&mut self, kind: RecordKind, plan: &Plan) -> Vec<Histogram> {
        let mut histograms = self.histograms();
        if kind == RecordKind::Simulation {
            let mut plans = plan.histograms.iter();
            histograms.retain(|_| plans.next().is_none_or(|plan| !plan.reads_payload()));
            self.findings.extend(not_filled(&plan.histograms));
        }
        self.findings.extend(histograms.iter().flat_map(Histogram::findings));
        histograms
    }
}

/// A finding if histograms need payload, which a simulation does not have.
fn not_filled(plans: &[HistogramPlan]) -> Option<Finding> {
    let mut without = plans.iter().filter(|plan| plan.reads_payload());
    let (first, more) = (without.next()?, without.count());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!("cannot tell what would be in {:?}{more}: a simulation has no payload", first.name);
    let hint = "`evb run` fills it; the sizes of fragments are simulated: `field = \"size\"`";
    Some(Finding::new(FindingKind::NotFilled, "monitor", message).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BuilderReport;
    use evb_core::SourceId;
    use evb_experiment::Quantity;
    use evb_protocol::Config;
    use evb_sources::SourceSpec;

    fn plan_with(quantities: &[Quantity]) -> Plan {
        let mut plan = Plan::new(Config::new(1, 2), SourceSpec::Fixed { size: "2 B".parse().unwrap() });
        let named = |(place, &quantity): (usize, &Quantity)| HistogramPlan {
            name: format!("number {place}"),
            source: SourceId(0),
            source_name: "ru0".into(),
            field: "size".into(),
            quantity,
            bins: 2,
            range: [0.0, 2.0],
            channels: false,
            one_in: 1,
        };
        plan.histograms = quantities.iter().enumerate().map(named).collect();
        plan
    }

    fn report(bins: [u64; 2]) -> BuilderReport {
        let histogram = Histogram { entries: bins.iter().sum(), bins: bins.into(), ..Histogram::default() };
        BuilderReport { histograms: vec![histogram.clone(), histogram], ..BuilderReport::default() }
    }

    #[test]
    fn builders_fill_the_same_histograms_and_one_may_not_have_reported() {
        let mut account = Account::new(&plan_with(&[Quantity::Size; 2]));
        assert_eq!(account.histograms(), []);
        account.builders[1] = report([1, 2]);
        assert_eq!(account.histograms()[1].bins, [1, 2]);
        account.builders[0] = report([3, 4]);
        assert_eq!(account.histograms()[1].bins, [4, 6]);
    }

    #[test]
    fn a_simulation_says_which_histograms_it_cannot_fill() {
        use evb_experiment::{FieldLayout, NumberType, PayloadLayout, PayloadPart};
        let layout = PayloadLayout { header: 0, item: 1, trailer: 0 };
        let field = FieldLayout {
            part: PayloadPart::Items,
            at: 0,
            count: 1,
            number: NumberType::U1,
            big_endian: false,
            bits: None,
        };
        let plan = plan_with(&[Quantity::Field(layout, field), Quantity::Hits(layout)]);
        let mut account = Account::new(&plan);
        account.builders[0] = report([1, 2]);
        assert_eq!(account.clone().filled(RecordKind::Run, &plan).len(), 2);
        assert_eq!(account.filled(RecordKind::Simulation, &plan).len(), 1);
        let finding = account.findings.pop().expect("a finding");
        assert_eq!(finding.kind, FindingKind::NotFilled);
        assert!(finding.message.contains("\"number 0\": a simulation has no payload"), "{}", finding.message);
    }
}
