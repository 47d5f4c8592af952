//! Findings: remarks beside the numbers of a result. Each finding has a kind, and the kinds alone decide the verdict.

use crate::{Outcome, Record};
use serde::{Deserialize, Serialize};

/// A remark about a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The kind of the finding.
    pub kind: FindingKind,
    /// The place of the finding: a node such as `ru1`, a link, or a key of the experiment file.
    pub subject: String,
    /// The finding as a sentence with its numbers.
    pub message: String,
    /// Advice to the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Finding {
    /// A finding without a hint.
    pub fn new(kind: FindingKind, subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, subject: subject.into(), message: message.into(), hint: None }
    }

    /// Adds advice to the user.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// The effect of a finding on the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The result is not good: the run did not do what the experiment file asked for.
    Fails,
    /// Whether the result is good cannot be told.
    Undecided,
    /// The result may be good; the finding is for information.
    Remark,
}

impl Effect {
    /// The verdict on a result with such a finding and no worse one.
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::Fails => Outcome::NotGood,
            Self::Undecided => Outcome::CannotTell,
            Self::Remark => Outcome::Good,
        }
    }
}

macro_rules! kinds {
    ($($variant:ident $name:literal $effect:ident $meaning:literal)*) => {
        /// Every kind of finding, most important first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum FindingKind {
            $(#[doc = concat!($meaning, ".")] $variant,)*
        }

        impl FindingKind {
            /// All kinds, most important first.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in records.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The effect of this kind on the verdict.
            pub const fn effect(self) -> Effect {
                match self { $(Self::$variant => Effect::$effect,)* }
            }

            /// The meaning of this kind, for the reference page.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

kinds! {
    Failed "failed" Fails "A node failed: a full disk, an unreadable file, a broken connection"
    LostNode "lost_node" Fails "A node died, or could no longer be reached"
    NoBuilders "no_builders" Fails "No builder unit was left, and events remained unbuilt"
    TooFewNodes "too_few_nodes" Fails "A node of `run.required` was lost, or fewer units were left than the file requires, so the run was stopped"
    NotDrained "not_drained" Fails "After the trigger had stopped nothing moved for `run.drain_timeout`, though events were open"
    Interrupted "interrupted" Fails "A simulation was stopped before its end"
    QueueFull "queue_full" Fails "A queue of a simulation reached its bound, and the simulation ended there"
    Deadlock "deadlock" Fails "Packets wait for each other in a cycle and cannot move"
    Account "account" Fails "An account of evb does not close: an error of evb itself"
    NothingTriggered "nothing_triggered" Fails "The run had no event, or no message"
    LostEvents "lost_events" Fails "Events were triggered and never ended"
    IncompleteEvents "incomplete_events" Fails "Events ended with a fragment missing or bad"
    Mismatch "mismatch" Fails "Fragments of one event carry identities that disagree: they were not recorded for the same trigger"
    DuplicateNumbers "duplicate_numbers" Fails "Fragments of one source claim the same event with different contents"
    Leapt "leapt" Fails "A counter skipped many numbers: the triggers between were lost, or the counter is wrong"
    OutOfStep "out_of_step" Fails "A source did not know to which events its fragments belong: they were set aside and counted"
    MissedEnd "missed_end" Fails "A source announced at its end of run more fragments than came, or did not announce its end"
    Unmatched "unmatched" Fails "Recorded fragments belong to no event: their numbers are out of order, or come before the first event that all sources have"
    Truncated "truncated" Fails "A recording is cut off, or has bytes after its last fragment: its good fragments were used"
    FrontEndSilent "front_end_silent" Fails "A front end that hears run control refused an order during the run, did not answer it, or closed its connection"
    LostInHost "lost_in_host" Fails "Datagrams of a front end reached this host, and were lost there because the buffer of the socket was full"
    SilentSource "silent_source" Fails "A source delivered no fragment although events were or should have been triggered"
    WrongSource "wrong_source" Fails "A source delivered fragments of another source id than the file expects, or two sources delivered the same"
    FilterFailed "filter_failed" Fails "A filter unit ended repeatedly and was given up: without another one, all events are kept in quarantine"
    Quarantined "quarantined" Fails "Events are kept in quarantine, without a decision, because their filter unit crashed, hung or answered nonsense"
    HeadroomFull "headroom_full" Fails "Packets came to an input that had asked for a pause, found its headroom full, and were lost"
    PauseStorm "pause_storm" Fails "An output of a switch was paused for longer than its watchdog allows, which dropped packets or sent them all the same"
    LostMessages "lost_messages" Fails "Messages of the traffic were sent and did not arrive"
    LostRequests "lost_requests" Fails "Requests for data were lost: their senders wait forever"
    RateNotKept "rate_not_kept" Fails "Less was carried than the file offers, by more than `trigger.accept_loss`: triggers were turned away, the rate in the steady window is below the offered one, or what was offered piled up"
    NotConfirmed "not_confirmed" Undecided "Fragments were aligned by their counters alone, and nothing confirms that these belong together"
    CounterGaps "counter_gaps" Undecided "The counter of a source that is matched by its clock passed numbers without fragments: they were lost, or the counter counts more than the source sends"
    RateNotJudged "rate_not_judged" Undecided "The run was too short to tell whether the offered rate or load was carried"
    NoSteadyState "no_steady_state" Remark "Rates did not settle: no steady window was found, and the figures are those of the whole time"
    Lengthened "lengthened" Remark "Messages of the traffic were shorter than a message can be in a real run, and were sent with the shortest length"
    NotModelled "not_modelled" Remark "Something that costs time in a real run is not in this simulation"
    Early "early" Remark "Live fragments belong to times before the first event that all sources had, or recorded hits to times before the first slice, and were set aside"
    Ambiguous "ambiguous" Remark "By their times live fragments could belong to several events, or to none without doubt, and were set aside"
    TooLate "too_late" Remark "Live fragments came when their time was over, further behind than `sort_depth` and `latency` allow, and were set aside"
    Unsliced "unsliced" Remark "Hits of a live source are in no slice of time, because they came too late, or their times cannot be believed: they were set aside"
    Repeated "repeated" Remark "A source sent fragments again: the copies were set aside"
    Refused "refused" Remark "Bytes that a source received are not fragments for it, and were refused"
    LinkHeldUp "link_held_up" Remark "A source had no room for more, and so stopped the link that it shares, while other sources of the link had nothing to take"
    FrontEndProblem "front_end_problem" Remark "A front end that hears run control reported a problem by itself"
    NoSecondIdentity "no_second_identity" Remark "Sources carry only one event counter, so that a source out of step cannot recover"
    NoFilterMemory "no_filter_memory" Remark "Events went to filter units through pipes, which is slower, because the system had no memory for them"
    LostFilterUnits "lost_filter_units" Remark "Filter units of other machines were lost or failed, and their events were given to others"
    NoMulticast "no_multicast" Remark "Broadcasts should have used multicast, and a node sent copies"
    DeadLink "dead_link" Remark "A link between nodes died, and their messages went over the others"
    ApartLost "apart_lost" Remark "Live fragments that belong to no event could not be stored in their file"
    NoisyChannel "noisy_channel" Remark "Channels of a histogram have far more entries than the others"
    SilentChannel "silent_channel" Remark "Channels of a histogram have no entries, and their neighbours have many"
    NotFilled "not_filled" Remark "A histogram needs the payload of fragments, which a simulation does not have"
    Reassigned "reassigned" Remark "Events were given to another builder unit because theirs died"
}

impl Record {
    /// Adds the findings that follow from the numbers, sorts all by importance, and sets the verdict: not good with a
    /// finding of effect [`Effect::Fails`], otherwise open with one of effect [`Effect::Undecided`], otherwise good.
    #[must_use]
    pub fn judged(mut self) -> Self {
        let derived = self.derived_findings();
        self.findings.extend(derived);
        self.findings.extend(self.open_accounts());
        self.findings.sort_by_key(|finding| finding.kind);
        let outcome = Outcome::worst(self.findings.iter().map(|finding| finding.kind.effect().outcome()));
        self.good = outcome == Outcome::Good;
        self.verdict = Some(outcome);
        self
    }

    /// The verdict, of records of earlier versions as well.
    pub fn outcome(&self) -> Outcome {
        match self.verdict {
            Some(Outcome::CannotTell) if !self.good => Outcome::CannotTell,
            _ => self.good.into(),
        }
    }

    /// The finding that decides the verdict: the most important one; `None` if the result is good.
    pub fn reason(&self) -> Option<&Finding> {
        self.findings
            .iter()
            .filter(|finding| finding.kind.effect() != Effect::Remark)
            .min_by_key(|finding| finding.kind)
    }

    /// The findings that follow from the numbers.
    fn derived_findings(&self) -> Vec<Finding> {
        let (events, unit) = (&self.events, self.unit());
        let of = |count: u64, what: &str| format!("{count} of {} {unit}s {what}", events.triggered);
        let lost = if unit == "event" { FindingKind::LostEvents } else { FindingKind::LostMessages };
        let mut found = Vec::new();
        let mut add_if = |holds: bool, kind, message: String| {
            if holds {
                found.push(Finding::new(kind, "events", message));
            }
        };
        add_if(events.triggered == 0, FindingKind::NothingTriggered, format!("there was no {unit} at all"));
        add_if(events.incomplete > 0, FindingKind::IncompleteEvents, of(events.incomplete, "are incomplete"));
        add_if(events.lost > 0, lost, of(events.lost, "never ended"));
        add_if(events.reassigned > 0, FindingKind::Reassigned, of(events.reassigned, "were given to another builder"));
        // A node that failed has reported why, so its loss is not another finding.
        let is_unexplained = |node: &&String| self.findings.iter().all(|finding| finding.subject != **node);
        let lost = self.lost_nodes.iter().filter(is_unexplained);
        found.extend(lost.map(|node| Finding::new(FindingKind::LostNode, node.as_str(), format!("{node} was lost"))));
        found
    }

    /// The name of one item that ends: `event` for event building and gathering, `message` for all other traffic.
    pub fn unit(&self) -> &'static str {
        if matches!(self.protocol.as_str(), "push" | "pull" | "phased" | "gather") { "event" } else { "message" }
    }
}
