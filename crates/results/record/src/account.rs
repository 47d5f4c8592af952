//! The accounts of a record close: each event and each fragment is counted once.

use crate::{Events, Finding, FindingKind, ReadoutRecord, Record};

impl Record {
    /// A finding for each account that does not close. Such a record has an error of evb itself.
    pub(crate) fn open_accounts(&self) -> Vec<Finding> {
        let of_events = self.events.gap().map(|gap| self.open_account("events", &gap));
        // Readout units of two stages are listed for each slice in turn, and judged there.
        let readouts = if self.stages.is_some() { &[] } else { self.readouts.as_slice() };
        let names = (0..readouts.len()).map(|unit| format!("ru{unit}"));
        // The last report of a node that was lost is not that of its end.
        let known = names.zip(readouts).filter(|(name, _)| !self.lost_nodes.contains(name));
        let of_readouts = known.filter_map(|(name, counts)| Some(self.open_account(&name, &counts.gap()?)));
        of_events.into_iter().chain(of_readouts).collect()
    }

    fn open_account(&self, subject: &str, gap: &str) -> Finding {
        let message = format!("the account of {subject} does not close: {gap}");
        Finding::new(FindingKind::Account, subject, message)
            .hint(format!("this is an error of evb {}: please report it with the record", self.version))
    }
}

impl Events {
    /// The two sides of the account, if they differ.
    fn gap(&self) -> Option<String> {
        let Self { triggered, built, incomplete, rejected, lost, .. } = *self;
        (triggered != built + incomplete + rejected + lost).then(|| {
            format!("{triggered} triggered, {built} built, {incomplete} incomplete, {rejected} rejected, {lost} lost")
        })
    }
}

impl ReadoutRecord {
    /// The two sides of the account of a live source, if they differ. Recorded fragments need not all be read.
    fn gap(&self) -> Option<String> {
        let Self { came, fragments, apart, waiting, .. } = *self;
        let is_live = came > 0 && self.source_id.is_none();
        (is_live && came != fragments + apart + waiting)
            .then(|| format!("{came} fragments came, {fragments} have an event, {apart} have none, {waiting} wait"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_of_events_closes_with_each_outcome() {
        let events = Events { triggered: 10, built: 4, incomplete: 3, rejected: 2, lost: 1, reassigned: 5 };
        assert_eq!(events.gap(), None);
        for wrong in [Events { triggered: 11, ..events }, Events { lost: 0, ..events }, Events { built: 5, ..events }] {
            assert!(wrong.gap().is_some(), "{wrong:?}");
        }
    }

    #[test]
    fn an_account_of_a_live_source_closes_with_fragments_that_wait() {
        let counts = ReadoutRecord { came: 10, fragments: 6, apart: 3, waiting: 1, ..ReadoutRecord::default() };
        assert_eq!(counts.gap(), None);
        let lacking = ReadoutRecord { waiting: 0, ..counts };
        assert!(lacking.gap().is_some_and(|gap| gap.starts_with("10 fragments came")), "{lacking:?}");
        assert_eq!(ReadoutRecord { source_id: Some(7), ..lacking }.gap(), None, "recorded");
    }
}
