//! The search: the cheapest networks for each load, by bounds first, and then by simulations with rising effort.

use crate::{
    PlannerError,
    planning::required,
    problem::Problem,
    simulations::{Answer, Case, Simulator},
};
use evb_record::{Outcome, Planning};
use std::collections::BTreeMap;

/// Networks of a family that are simulated at once. It does not depend on the machine, so that the plan does not.
const AT_ONCE: usize = 2;
/// Number of families, its own included, that a network must be able to exclude to be simulated before its turn.
const WORTHWHILE: usize = 3;

/// A search that goes on.
pub(crate) struct Search<'a, 's, E> {
    pub(crate) problem: &'a Problem<'a>,
    pub(crate) simulator: Simulator<'a, 's, E>,
    /// The results for a candidate, a choice and a load.
    pub(crate) results: BTreeMap<Question, Answer>,
    /// Networks that carry a load, by choice.
    accepted: Vec<Accepted>,
}

/// A candidate, a choice, and the index of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Question {
    pub(crate) candidate: usize,
    pub(crate) choice: usize,
    pub(crate) load: usize,
}

#[derive(Clone, Copy, Debug)]
struct Accepted {
    candidate: usize,
    choice: usize,
    load: f64,
}

/// The search for one choice, and where it is.
struct Walk {
    choice: usize,
    /// The families for each load.
    families: Vec<Vec<Vec<usize>>>,
    load: usize,
    family: usize,
    halving: Option<Halving>,
}

/// The members of a family by their uplinks, the last of which carries the load: those below `below` do not, and the one at `above`
/// does.
struct Halving {
    members: Vec<usize>,
    below: usize,
    above: usize,
    last: Question,
}

/// What a search does next.
enum Next {
    Ask(Vec<Question>),
    /// Finds the member of a family with the fewest uplinks.
    Halve(Halving),
    /// A network carries the load.
    Accept(Question),
    /// No network of the family is on the front.
    Leave,
}

impl Walk {
    const fn new(choice: usize, families: Vec<Vec<Vec<usize>>>) -> Self {
        Self { choice, families, load: 0, family: 0, halving: None }
    }

    /// Begins the next load after the last family of one. Returns false after the last load.
    fn is_at_family(&mut self) -> bool {
        while self.families.get(self.load).is_some_and(|families| self.family == families.len()) {
            (self.load, self.family) = (self.load + 1, 0);
        }
        self.load < self.families.len()
    }

    fn leave_family(&mut self) {
        (self.family, self.halving) = (self.family + 1, None);
    }
}

impl<'a, 's, E: From<PlannerError>> Search<'a, 's, E> {
    pub(crate) fn new(problem: &'a Problem<'a>, simulator: Simulator<'a, 's, E>) -> Self {
        Self { problem, simulator, results: BTreeMap::new(), accepted: Vec::new() }
    }

    /// Searches all choices for all loads. The choices are searched side by side, so that simulations of one fill the cores that
    /// another one leaves idle.
    pub(crate) fn run(mut self) -> Result<Planning, E> {
        let loads = self.loads();
        let families = |choice: usize| loads.iter().map(|&load| self.families(choice, load)).collect();
        let walks = (0..self.problem.choices.len()).map(|choice| Walk::new(choice, families(choice)));
        let mut walks: Vec<_> = walks.collect();
        let is_cut = loop {
            let wanted: Vec<_> = walks.iter_mut().flat_map(|walk| self.step(walk, &loads)).collect();
            if wanted.is_empty() {
                break false;
            }
            if self.simulator.is_over() {
                break true;
            }
            self.answer(&wanted, &loads)?;
        };
        self.complete(&loads)?;
        Ok(self.planning(&loads, is_cut))
    }

    /// Simulates the requirement with the networks of the front that were only asked for more.
    fn complete(&mut self, loads: &[f64]) -> Result<(), E> {
        let required = required(loads);
        let more = self.on_front().into_iter().filter(|question| question.load > required);
        self.answer(&more.map(|question| Question { load: required, ..question }).collect::<Vec<_>>(), loads)
    }

    /// The loads to be carried, ascending: the lower end of the requirement first, if it has a range.
    fn loads(&self) -> Vec<f64> {
        let least = self.problem.least_load();
        let mut loads = self.problem.requirements.search.loads.clone();
        loads.extend((least < 0.999).then_some(least));
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        loads
    }

    /// Goes on with the search for a choice until it asks for results; without questions it is over. For each load it finds the
    /// cheapest network of each family that carries it, unless another one carries it for less.
    fn step(&mut self, walk: &mut Walk, loads: &[f64]) -> Vec<Question> {
        while walk.is_at_family() {
            match self.next(walk, loads) {
                Next::Ask(questions) => return questions,
                Next::Halve(halving) => walk.halving = Some(halving),
                Next::Accept(question) => {
                    let Question { candidate, choice, load } = question;
                    self.accepted.push(Accepted { candidate, choice, load: loads[load] });
                    walk.leave_family();
                }
                Next::Leave => walk.leave_family(),
            }
        }
        Vec::new()
    }

    fn next(&self, walk: &mut Walk, loads: &[f64]) -> Next {
        let (choice, load) = (walk.choice, walk.load);
        if let Some(halving) = &mut walk.halving {
            return self.halve(halving);
        }
        let families = &walk.families[load];
        let members = self.open(&families[walk.family], choice, load, loads);
        let (Some(&cheapest), Some(&strongest)) = (members.iter().min(), members.last()) else { return Next::Leave };
        let [cheapest, strongest] = [cheapest, strongest].map(|candidate| Question { candidate, choice, load });
        match [cheapest, strongest].map(|question| self.outcome(&question)) {
            [Some(Outcome::Good), _] => Next::Accept(cheapest),
            [None, _] => Next::Ask(self.with_strongest(cheapest, families, loads)),
            [_, None] => Next::Ask(self.with_strongest(strongest, families, loads)),
            [_, Some(Outcome::Good)] => {
                Next::Halve(Halving { below: 0, above: members.len() - 1, members, last: strongest })
            }
            _ => Next::Leave,
        }
    }

    /// Finds the network with the fewest uplinks that carries the load.
    fn halve(&self, Halving { members, below, above, last }: &mut Halving) -> Next {
        let of = |at: usize| Question { candidate: members[at], ..*last };
        while below < above {
            let places = places(*below, *above);
            let unknown: Vec<_> = places.iter().map(|&at| of(at)).filter(|one| self.outcome(one).is_none()).collect();
            if !unknown.is_empty() {
                return Next::Ask(unknown);
            }
            let enough = places.iter().copied().find(|&at| self.outcome(&of(at)) == Some(Outcome::Good));
            *above = enough.unwrap_or(*above);
            *below = places.into_iter().filter(|at| *at < *above).max().map_or(*below, |at| at + 1);
        }
        Next::Accept(of(*above))
    }

    /// Where a network of hosts with the same rate has failed already, also asks for the one whose failure excludes most; and for
    /// that alone if it has all that the network of the question has.
    fn with_strongest(&self, question: Question, families: &[Vec<usize>], loads: &[f64]) -> Vec<Question> {
        let Question { candidate, choice, load } = question;
        let rate = self.problem.records[candidate].host_bits_per_s;
        let is_alike = |other: usize| self.problem.records[other].host_bits_per_s == rate;
        let answers = || self.results.iter().filter(|(asked, _)| asked.choice == choice && asked.load == load);
        if !answers().any(|(asked, answer)| is_alike(asked.candidate) && answer.outcome == Outcome::NotGood) {
            return vec![question];
        }
        let open = families.iter().filter_map(|family| self.open(family, choice, load, loads).last().copied());
        let open: Vec<_> = open.filter(|&other| is_alike(other)).collect();
        let covers = |one: usize, other: usize| self.problem.covers(choice, one, other);
        // What has all of a network that is enough is enough, too.
        let good: Vec<_> =
            answers().filter(|(_, answer)| answer.outcome == Outcome::Good).map(|(asked, _)| asked.candidate).collect();
        let unknown = |one: usize| {
            !self.results.contains_key(&Question { candidate: one, ..question })
                && !good.iter().any(|&other| covers(one, other))
        };
        let unknown: Vec<_> = open.into_iter().filter(|&one| unknown(one)).collect();
        let worth = |one: usize| {
            let excluded = unknown.iter().filter(|&&other| covers(one, other)).count();
            let admitted = unknown.iter().filter(|&&other| covers(other, one)).count();
            // Once one is enough, the others are halved.
            if good.iter().any(|&other| is_alike(other)) { excluded.min(admitted) } else { excluded }
        };
        match unknown.iter().copied().rev().max_by_key(|&one| worth(one)).filter(|&one| worth(one) >= WORTHWHILE) {
            Some(strongest) if covers(strongest, candidate) => vec![Question { candidate: strongest, ..question }],
            Some(strongest) => vec![question, Question { candidate: strongest, ..question }],
            None => vec![question],
        }
    }

    fn outcome(&self, question: &Question) -> Option<Outcome> {
        self.results.get(question).map(|answer| answer.outcome)
    }

    /// The families with candidates that no bound excludes, each by the number of uplinks; the family with the cheapest first.
    fn families(&self, choice: usize, load: f64) -> Vec<Vec<usize>> {
        let mut families: Vec<Vec<usize>> = Vec::new();
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        // Candidates are in the order of their costs.
        for (index, candidate) in self.problem.candidates.iter().enumerate() {
            if self.problem.bounds[index][choice].load < load {
                continue;
            }
            let place = *places.entry(candidate.family).or_insert_with(|| {
                families.push(Vec::new());
                families.len() - 1
            });
            families[place].push(index);
        }
        for family in &mut families {
            family.sort_by_key(|&index| (self.problem.candidates[index].levels[0].uplinks(), index));
        }
        families
    }

    /// The networks that could be on the front: nothing that carries the load is better, and none of them has failed at this load
    /// or a lower one, nor has one that has as much in every respect. A network whose verdict below the
    /// requirement is "cannot tell" is tried at the requirement, and at no higher load.
    fn open(&self, family: &[usize], choice: usize, load: usize, loads: &[f64]) -> Vec<usize> {
        let is_open = |&candidate: &usize| {
            let failed = |lower: usize| match self.outcome(&Question { candidate, choice, load: lower }) {
                Some(Outcome::NotGood) => true,
                Some(Outcome::CannotTell) => lower >= required(loads),
                Some(Outcome::Good) | None => false,
            };
            !self.is_beaten(candidate, choice, loads[load])
                && !(0..load).any(failed)
                && self.failed_above(Question { candidate, choice, load }).is_none()
        };
        family.iter().copied().filter(is_open).collect()
    }

    /// True if another network carries the load for no more cost and power.
    fn is_beaten(&self, candidate: usize, choice: usize, load: f64) -> bool {
        let own = &self.problem.records[candidate];
        self.accepted.iter().any(|accepted| {
            let other = &self.problem.records[accepted.candidate];
            accepted.choice == choice
                && accepted.candidate != candidate
                && accepted.load >= load
                && other.cost.high <= own.cost.high
                && other.power_w <= own.power_w
        })
    }

    /// A network that has as much in every respect, or the same one, and has failed at this load or a lower one.
    pub(crate) fn failed_above(&self, question: Question) -> Option<(&Question, &Answer)> {
        self.results.iter().find(|(asked, answer)| {
            asked.choice == question.choice
                && asked.load <= question.load
                && answer.outcome == Outcome::NotGood
                && self.problem.covers(question.choice, asked.candidate, question.candidate)
        })
    }

    /// Asks for what is not known.
    fn answer(&mut self, questions: &[Question], loads: &[f64]) -> Result<(), E> {
        let is_open = |question: &Question| !self.results.contains_key(question);
        let open: Vec<Question> = questions.iter().copied().filter(is_open).collect();
        let case = |question: &Question| Case::new(question.candidate, question.choice, loads[question.load]);
        let answers = self.simulator.answers(&open.iter().map(case).collect::<Vec<_>>())?;
        self.results.extend(open.into_iter().zip(answers));
        Ok(())
    }
}

/// Up to [`AT_ONCE`] places of a range, evenly spread, with its last one.
fn places(below: usize, above: usize) -> Vec<usize> {
    let length = above - below;
    let count = length.min(AT_ONCE);
    (1..=count).map(|n| below + length * n / count - 1).collect()
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn places_are_in_the_range_and_end_with_its_last_one() {
        for (below, above) in [(0, 1), (3, 5), (0, 4), (2, 40)] {
            let found = places(below, above);
            assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{found:?}");
            assert!(found[0] >= below && found.last() == Some(&(above - 1)), "{found:?}");
        }
    }
}
