//! What could be changed about a network: more of one kind of part, or another value of a free key.

use crate::{
    base::{Setting, value_text},
    problem::Problem,
};

/// A change.
pub(crate) struct Change {
    /// In words.
    pub(crate) what: String,
    /// What the network becomes.
    pub(crate) candidate: usize,
    pub(crate) choice: usize,
}

/// What there can be more of in a network.
#[derive(Clone, Copy)]
enum Respect {
    Uplinks,
    Interfaces,
    Memory,
}

impl Respect {
    const ALL: [Self; 3] = [Self::Uplinks, Self::Interfaces, Self::Memory];

    const fn words(self) -> &'static str {
        match self {
            Self::Uplinks => "more uplinks",
            Self::Interfaces => "faster interfaces",
            Self::Memory => "switches with more memory",
        }
    }

    fn amount(self, problem: &Problem<'_>, candidate: usize, choice: usize) -> f64 {
        match self {
            Self::Uplinks => problem.strengths[candidate][choice].uplink_load(),
            Self::Interfaces => problem.records[candidate].host_bits_per_s as f64,
            Self::Memory => problem.candidates[candidate].least_memory().map_or(0.0, |bytes| bytes.0 as f64),
        }
    }
}

/// The network as it is, the cheapest networks with more of each kind of part and no less of any other, and the neighbours of the
/// values of the free keys.
pub(crate) fn changes(problem: &Problem<'_>, candidate: usize, choice: usize) -> Vec<Change> {
    let own = Change { what: "no change".to_owned(), candidate, choice };
    let more = Respect::ALL.into_iter().filter_map(|respect| {
        let more = with_more(problem, candidate, choice, respect)?;
        Some(Change { what: respect.words().to_owned(), candidate: more, choice })
    });
    let keys = neighbours(problem, choice).into_iter();
    let keys = keys.map(|(what, other)| Change { what, candidate, choice: other });
    [own].into_iter().chain(more).chain(keys).collect()
}

/// The cheapest network with more in one respect, and no less in any other. The search says that cheaper ones are not enough.
fn with_more(problem: &Problem<'_>, candidate: usize, choice: usize, respect: Respect) -> Option<usize> {
    let amount = |one: usize| respect.amount(problem, one, choice);
    let strength = |one: usize| &problem.strengths[one][choice];
    (candidate + 1..problem.candidates.len())
        .find(|&other| amount(other) > amount(candidate) && strength(other).carries_as_much(strength(candidate)))
}

/// The choices that differ in one line of the free keys, which has the value before or the one after in the list of the planning
/// file; with keys and values in words.
fn neighbours(problem: &Problem<'_>, choice: usize) -> Vec<(String, usize)> {
    let settings = |choice: usize| &problem.choices[choice].settings;
    let own = settings(choice);
    let mut found = Vec::new();
    for line in 0..own.len() {
        let alike = |&other: &usize| (0..own.len()).all(|at| at == line || settings(other)[at] == own[at]);
        let row: Vec<usize> = (0..problem.choices.len()).filter(alike).collect();
        let place = row.iter().position(|&other| other == choice).unwrap_or(0);
        let beside = [place.checked_sub(1), Some(place + 1)].into_iter().flatten();
        found.extend(beside.filter_map(|at| row.get(at)).map(|&other| (words(&settings(other)[line]), other)));
    }
    found
}

/// Keys with their values.
fn words(setting: &Setting) -> String {
    let words: Vec<_> = setting.iter().map(|(key, value)| format!("{key} = {}", value_text(value))).collect();
    words.join(", ")
}
