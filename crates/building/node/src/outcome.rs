//! The outcome of a run in run control: the nodes' reports, and the findings.

use crate::error::NodeError;
use crate::observer::Observer;
use crate::processors::Processors;
use evb_control::{ConfigureStep, Event, Loss};
use evb_core::{NodeId, Span};
use evb_experiment::Plan;
use evb_protocol::Config;
use evb_record::{Finding, FindingKind, Histogram, OddChannels, Record, SourceState};
use evb_unit::{Account, Live, Progress, Report};
use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

/// Time in seconds after which a live source that is waited for is reported. Front ends may connect anew within it.
const NOTED_AFTER_S: f64 = 1.0;
/// Time in seconds between two looks at the histograms.
const HISTOGRAMS_EVERY_S: f64 = 1.0;

pub(crate) struct Outcome {
    config: Config,
    drain_timeout: Span,
    account: Account,
    /// A number that changes when the run makes progress.
    done: u64,
    /// Reasons for the end of nodes, or for the loss of connections to them, each with the node that reports it.
    reasons: BTreeMap<NodeId, Vec<(NodeId, String)>>,
    /// Errors of nodes that have failed.
    errors: BTreeMap<NodeId, NodeError>,
    /// The fallback of broadcasts was reported.
    told_broadcasts: bool,
    /// Dead links that were reported.
    told_links: BTreeSet<String>,
    /// Live sources that were reported as waited for.
    told_sources: BTreeMap<String, SourceState>,
    /// Channels of histograms that were reported as noisy or silent: the histogram, and the channel.
    told_channels: BTreeSet<(String, i64)>,
    /// Time of the next look at the histograms, in seconds after the start of the run.
    histograms_at: f64,
    /// The error that ended the configuration.
    error: Option<NodeError>,
    /// The processors of this machine at the start of the run.
    processors: Option<Processors>,
}

impl Outcome {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            config: plan.building.clone(),
            drain_timeout: plan.run.drain_timeout,
            account: Account::new(plan),
            done: 0,
            reasons: BTreeMap::new(),
            errors: BTreeMap::new(),
            told_broadcasts: false,
            told_links: BTreeSet::new(),
            told_sources: BTreeMap::new(),
            told_channels: BTreeSet::new(),
            histograms_at: HISTOGRAMS_EVERY_S,
            error: None,
            processors: Processors::now(),
        }
    }

    /// Forgets the previous run.
    pub(crate) fn begin_run(&mut self, plan: &Plan) {
        *self = Self::new(plan);
    }

    /// Forgets the previous run, which this one follows without a stop: nodes that were lost to it are lost to this one.
    pub(crate) fn begin_next(&mut self, plan: &Plan, lost: &[NodeId]) {
        self.begin_run(plan);
        for &node in lost {
            let name = self.config.node_name(node);
            let message = format!("{name} was lost in an earlier run");
            self.account.lose(&name);
            self.account.find(Finding::new(FindingKind::LostNode, &name, message));
        }
    }

    /// Takes the report of a node; returns true if the run has made progress since the last one.
    pub(crate) fn report(&mut self, node: NodeId, report: Report) -> bool {
        self.account.report(node, report);
        mem::replace(&mut self.done, self.account.done()) != self.done
    }

    /// Keeps the first reason that a node, or run control in its place, reports for the loss of a node.
    pub(crate) fn note_reason(&mut self, node: NodeId, by: NodeId, reason: String) {
        let reasons = self.reasons.entry(node).or_default();
        if reasons.iter().all(|(known, _)| *known != by) {
            reasons.push((by, reason));
        }
    }

    /// The reason for the loss of a node: the one of its process, or else the first of a peer, or else its own for the
    /// loss of a peer. Its reports about its peers are forgotten.
    fn take_reason(&mut self, node: NodeId) -> String {
        let mut reasons = self.reasons.remove(&node).unwrap_or_default();
        reasons.sort_by_key(|(by, _)| *by != node);
        for of_peer in self.reasons.values_mut() {
            reasons.extend(of_peer.extract_if(.., |(by, _)| *by == node));
        }
        self.reasons.retain(|_, reasons| !reasons.is_empty());
        reasons.into_iter().next().map_or_else(|| "the reason is unknown".into(), |(_, reason)| reason)
    }

    pub(crate) fn note_error(&mut self, node: NodeId, error: NodeError) {
        self.errors.entry(node).or_insert(error);
    }

    pub(crate) fn note_abort(&mut self) {
        let message = "the run was aborted: what was open is lost";
        self.account.find(Finding::new(FindingKind::Interrupted, "events", message));
    }

    /// The error that ended the configuration, once.
    pub(crate) fn take_error(&mut self) -> Option<NodeError> {
        self.error.take()
    }

    /// Shows once that a node sends copies of broadcasts. The record has it from the reports.
    pub(crate) fn note_fallback(&mut self, observer: &mut dyn Observer) {
        if !self.told_broadcasts
            && let Some(finding) = self.account.fell_back()
        {
            self.told_broadcasts = true;
            observer.note(&finding.message);
        }
    }

    /// Shows each link that died once. The record has all from the reports.
    pub(crate) fn note_dead_links(&mut self, observer: &mut dyn Observer) {
        for (link, finding) in self.account.dead_links() {
            if self.told_links.insert(link) {
                observer.note(&finding.message);
            }
        }
    }

    /// Shows each live source that the run begins to wait for, and when it no longer does.
    pub(crate) fn note_sources(&mut self, seconds: f64, observer: &mut dyn Observer) {
        let waiting = self.account.waiting_sources(seconds);
        self.told_sources.retain(|name, _| {
            let is_waited_for = waiting.iter().any(|source| source.source == *name);
            if !is_waited_for {
                tracing::info!(source = name, "no longer waited for");
                observer.note(&format!("{name} is no longer waited for"));
            }
            is_waited_for
        });
        for source in waiting.iter().filter(|source| seconds - source.since_s >= NOTED_AFTER_S) {
            if self.told_sources.insert(source.source.clone(), source.state) != Some(source.state) {
                tracing::warn!(source = source.source, state = source.state.name(), "waited for");
                observer.note(&format!("waiting for {}", source.text()));
            }
        }
    }

    /// Shows the histograms when it is time, and the channels of them that stand out when there are new ones.
    pub(crate) fn show_histograms(&mut self, seconds: f64, observer: &mut dyn Observer) {
        if seconds < self.histograms_at {
            return;
        }
        self.histograms_at = seconds + HISTOGRAMS_EVERY_S;
        let histograms = self.account.histograms();
        if !histograms.is_empty() {
            observer.histograms(&histograms);
        }
        histograms.iter().for_each(|histogram| self.note_channels(histogram, observer));
    }

    fn note_channels(&mut self, histogram: &Histogram, observer: &mut dyn Observer) {
        let OddChannels { noisy, silent } = histogram.odd_channels();
        let odd = noisy.into_iter().chain(silent);
        let before = self.told_channels.len();
        self.told_channels.extend(odd.map(|channel| (histogram.name.clone(), channel)));
        if self.told_channels.len() > before {
            histogram.findings().iter().for_each(|finding| observer.note(&finding.message));
        }
    }

    pub(crate) fn progress(&self, seconds: f64, stopping: bool) -> Progress {
        self.account.progress(seconds, stopping)
    }

    /// The run so far.
    pub(crate) fn live(&self, plan: &Plan, transport: &str, seconds: f64) -> Live {
        let mut live = self.account.live(plan, transport, seconds);
        self.complete(&mut live.record);
        live
    }

    /// Adds what only this machine knows.
    fn complete(&self, record: &mut Record) {
        if let Some(occupancy) = &mut record.occupancy {
            occupancy.machine_busy =
                Processors::now().zip(self.processors).and_then(|(now, then)| now.busy_since(then));
        }
    }

    /// Takes the record of the run, and starts an empty account.
    pub(crate) fn record(&mut self, plan: &Plan, transport: &str, seconds: f64) -> Record {
        let mut record = mem::replace(&mut self.account, Account::new(plan)).record(plan, transport, seconds);
        self.complete(&mut record);
        Record { control_transport: plan.control.as_ref().map(|choice| choice.info().name.to_owned()), ..record }
    }

    /// Takes an event of run control, and shows it now and in the record.
    pub(crate) fn note_event(&mut self, event: &Event, observer: &mut dyn Observer) {
        match event {
            Event::State(_) | Event::NextRun { .. } => {}
            Event::Waits(node) => {
                let name = self.config.node_name(*node);
                observer.note(&format!("{name} is there again, and takes part in the next run"));
            }
            Event::Lost { node, loss } => self.tell_loss(*node, *loss, observer),
            Event::Back(node) => observer.note(&format!("{} is back", self.config.node_name(*node))),
            Event::Late { step, nodes } => self.error = Some(self.late(*step, nodes)),
            Event::NotReady { node, .. } => self.error = Some(self.not_ready(*node)),
            Event::NotDrained => {
                let message = format!("the run did not drain: nothing moved for {}", self.drain_timeout);
                let hint = "what is there of the open events is stored; `--set run.drain_timeout=TIME` waits longer for the rest";
                self.find(Finding::new(FindingKind::NotDrained, "evm", message).hint(hint), observer);
            }
            Event::NoBuilders => {
                let message = "no builder unit is left: the run ends with events unbuilt";
                self.find(Finding::new(FindingKind::NoBuilders, "events", message), observer);
            }
            Event::TooFew => {
                let message = "a required node is lost, or too few are left: the run is stopped";
                let hint =
                    "`run.required`, `run.minimum_readouts` and `run.minimum_builders` define which nodes are required";
                self.find(Finding::new(FindingKind::TooFewNodes, "run", message).hint(hint), observer);
            }
            Event::Refused { command, state } => {
                observer.note(&format!("run control is {state}: {:?} means nothing now", command.name()));
            }
        }
    }

    fn tell_loss(&mut self, node: NodeId, loss: Loss, observer: &mut dyn Observer) {
        let name = self.config.node_name(node);
        let reason = self.take_reason(node);
        let finding = |message| Finding::new(FindingKind::LostNode, &name, message);
        let finding = match (loss, self.errors.remove(&node)) {
            (Loss::Failed, Some(error)) => {
                let finding = Finding::new(FindingKind::Failed, &name, format!("{name}: {error}"));
                Finding { hint: error.hint, ..finding }
            }
            (Loss::Gone | Loss::Failed, _) => finding(format!("{name} is gone: {reason}")),
            (Loss::Unreachable { disconnected, peers, alternative }, _) => {
                let evidence = self.evidence(disconnected, peers, alternative);
                finding(format!("{name} is lost to its peers: {reason}; {evidence}"))
            }
            (Loss::Silent, _) => finding(format!("{name} did not finish: nothing moved for {}", self.drain_timeout)),
        };
        self.account.lose(&name);
        self.find(finding, observer);
    }

    /// The evidence by which a node was given up.
    fn evidence(&self, disconnected: u16, peers: u16, alternative: Option<NodeId>) -> String {
        match alternative {
            None => format!("{disconnected} of its {peers} connections are lost"),
            Some(alternative) => {
                let alternative = self.config.node_name(alternative);
                format!(
                    "only its connection to {alternative} is lost: {alternative} may be cut off instead, but the run needs it more"
                )
            }
        }
    }

    /// Shows a finding now, and keeps it for the record.
    fn find(&mut self, finding: Finding, observer: &mut dyn Observer) {
        observer.note(&finding.message);
        self.account.find(finding);
    }

    fn late(&self, step: ConfigureStep, nodes: &[NodeId]) -> NodeError {
        let names: Vec<_> = nodes.iter().map(|&node| self.config.node_name(node)).collect();
        let message = format!("not all nodes {}: {} missing", done(step), names.join(", "));
        NodeError::new(message).hint(match step {
            ConfigureStep::Join => {
                "start each with `evb node --role NAME --join HOST:PORT` and the same token; `--patience` waits longer"
            }
            _ => "is the machine overloaded? `--set run.peer_timeout=\"30 s\"` waits longer",
        })
    }

    fn not_ready(&mut self, node: NodeId) -> NodeError {
        let reasons = self.reasons.remove(&node).unwrap_or_default();
        self.errors.remove(&node).unwrap_or_else(|| {
            let name = |node| self.config.node_name(node);
            let (by, reason) = reasons.into_iter().next().unwrap_or_else(|| (node, "it joined anew".into()));
            NodeError::new(match by == node {
                true => format!("{} ended before the run began: {reason}", name(node)),
                // Either of the two may be cut off.
                false => format!("{} and {} lost each other before the run began: {reason}", name(by), name(node)),
            })
        })
    }
}

/// The words for nodes that have done a step.
const fn done(step: ConfigureStep) -> &'static str {
    match step {
        ConfigureStep::Join => "have joined",
        ConfigureStep::Open | ConfigureStep::Connect | ConfigureStep::Prepare | ConfigureStep::Arm => "are ready",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_sources::SourceSpec;
    use evb_unit::BuilderReport;

    const RU0: NodeId = NodeId(1);
    const RU1: NodeId = NodeId(2);
    const BU0: NodeId = NodeId(3);

    /// The messages about lost nodes after these losses.
    fn messages(reasons: &[(NodeId, NodeId, &str)], losses: &[(NodeId, Loss)]) -> Vec<String> {
        let plan = Plan::new(Config::new(2, 2), SourceSpec::Fixed { size: evb_core::ByteCount(100) });
        let mut outcome = Outcome::new(&plan);
        for (node, by, reason) in reasons {
            outcome.note_reason(*node, *by, (*reason).to_owned());
        }
        for (node, loss) in losses {
            outcome.note_event(&Event::Lost { node: *node, loss: *loss }, &mut ());
        }
        let findings = outcome.record(&plan, "test", 1.0).findings.into_iter();
        findings.filter(|it| it.kind == FindingKind::LostNode).map(|finding| finding.message).collect()
    }

    const fn cut_off(disconnected: u16, alternative: Option<NodeId>) -> Loss {
        Loss::Unreachable { disconnected, peers: 3, alternative }
    }

    #[test]
    fn findings_name_the_evidence_against_a_node() {
        let silent = [(RU0, BU0, "it was silent for 2.0 s"), (BU0, RU0, "it was silent for 2.1 s")];
        assert_eq!(
            messages(&silent, &[(RU0, cut_off(3, None))]),
            ["ru0 is lost to its peers: it was silent for 2.0 s; 3 of its 3 connections are lost"]
        );
        let both = "bu0 is lost to its peers: it was silent for 2.1 s; only its connection to ru0 is lost: ru0 may be cut \
                    off instead, but the run needs it more";
        assert_eq!(messages(&silent, &[(BU0, cut_off(1, Some(RU0)))]), [both]);
        // No peer has reported the node yet.
        assert_eq!(
            messages(&silent[1..], &[(RU0, cut_off(1, None))]),
            ["ru0 is lost to its peers: it was silent for 2.1 s; 1 of its 3 connections are lost"]
        );
    }

    /// What an observer was told.
    struct Notes(Vec<String>);

    impl Observer for Notes {
        fn progress(&mut self, _progress: &Progress) {}

        fn note(&mut self, text: &str) {
            self.0.push(text.to_owned());
        }
    }

    #[test]
    fn odd_channels_are_told_once_and_again_with_new_ones() {
        let plan = Plan::new(Config::new(2, 2), SourceSpec::Fixed { size: evb_core::ByteCount(100) });
        let (mut outcome, mut notes) = (Outcome::new(&plan), Notes(Vec::new()));
        let report = |bins: [u64; 6]| {
            let entries = bins.iter().sum();
            let (name, range) = ("channel".to_owned(), [0.0, 6.0]);
            let histogram =
                Histogram { name, range, channels: true, entries, bins: bins.into(), ..Histogram::default() };
            Report::Builder(BuilderReport { histograms: vec![histogram], ..BuilderReport::default() })
        };
        let noisy = [9, 900, 9, 9, 9, 9];
        for (seconds, bins) in [(0.5, noisy), (1.5, noisy), (2.0, noisy), (2.6, noisy), (4.0, [9, 900, 9, 9, 9, 900])] {
            outcome.report(BU0, report(bins));
            outcome.show_histograms(seconds, &mut notes);
        }
        let told: Vec<_> = notes.0.iter().map(String::as_str).collect();
        assert_eq!(
            told,
            [
                "channel: channel 1 has far more entries than the others",
                "channel: channels 1, 5 have far more entries than the others"
            ]
        );
    }

    #[test]
    fn nodes_that_lose_each_other_before_a_run_are_both_named() {
        let plan = Plan::new(Config::new(2, 2), SourceSpec::Fixed { size: evb_core::ByteCount(100) });
        let mut outcome = Outcome::new(&plan);
        let not_ready = |node| Event::NotReady { step: ConfigureStep::Prepare, node };
        outcome.note_reason(RU0, BU0, "silent".into());
        outcome.note_event(&not_ready(RU0), &mut ());
        let error = outcome.take_error().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("bu0 and ru0 lost each other before the run began: silent"));
        outcome.note_reason(RU0, RU0, "exit status: 7".into());
        outcome.note_event(&not_ready(RU0), &mut ());
        let error = outcome.take_error().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("ru0 ended before the run began: exit status: 7"));
    }

    /// What a node that is cut off reports about its peers explains none of their later losses.
    #[test]
    fn reasons_of_a_lost_node_are_forgotten() {
        let reasons = [(RU0, BU0, "silent"), (RU1, RU0, "silent"), (RU1, RU1, "killed by signal 9")];
        let losses = [(RU0, cut_off(3, None)), (RU1, Loss::Gone)];
        assert_eq!(messages(&reasons, &losses)[1], "ru1 is gone: killed by signal 9");
        assert_eq!(messages(&reasons[..2], &losses)[1], "ru1 is gone: the reason is unknown");
    }
}
