//! Alignment of sources: which numbers of different sources belong to one event.
//!
//! Sources count from anywhere, begin at different times, and may restart their counters. Each readout unit reports
//! fragments that it cannot assign to events. The event manager answers with the event of the first of them:
//!
//! - *At the beginning* numbers are compared by value, and by their marks where there are any. The run begins with the
//!   first event that all sources have.
//! - *Later* a source whose counter has restarted or leapt is aligned again when its marks agree with those of known
//!   events, several in a row and at one place only. A source whose counter leapt forwards is aligned by value, if no mark
//!   contradicts, and if others get there before it has half as many fragments as it leapt: then the others show that
//!   time has passed. All sources together are aligned with each other, by marks or by equal numbers.
//!
//! Marks that several events share prove a place only where they change. Fragments without proof stay apart: a missing
//! fragment is better than a wrong one.
//!
//! Only the event manager hears of all sources, so only it can say which numbers belong together. It asks for marks
//! while a source waits, so a run in step pays nothing.

use crate::{Config, Sighted};
use alloc::{
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};
use evb_core::{EventId, Mark, MarkComparison};

/// Marks in a row that must agree before two sources are aligned by them.
const WITNESSES: usize = 4;
/// Most marks of events that are remembered for comparison.
const MOST_MARKS: usize = 1 << 14;
/// Most fragments of a source that propose an alignment; all of them must agree with it.
const MOST_TRIED: usize = 64;

/// The answer to one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Aligned {
    /// The index of the readout unit.
    pub(super) unit: usize,
    /// The segment that the answer is for.
    pub(super) segment: u32,
    /// The event of position 0.
    pub(super) first: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AlignmentState {
    /// The source has reported nothing yet.
    Silent,
    /// The source waits for an answer.
    Waiting,
    /// The events of the source are known, or it has none.
    Placed,
    /// The readout unit of the source is dead.
    Gone,
}

/// A source that numbers its fragments itself.
struct SourceAlignment {
    unit: usize,
    state: AlignmentState,
    segment: u32,
    declared: bool,
    last: bool,
    bits: u8,
    after: EventId,
    number: u64,
    ahead: u32,
    /// It has ended and has reported the marks of all its events, since they were asked for.
    has_reported_all: bool,
    /// Marks by position.
    seen: BTreeMap<u64, Option<Mark>>,
    comparison: MarkComparison,
    /// Number of fragments that the source can report before its buffer is full.
    capacity: usize,
}

/// The state of all sources that number their fragments themselves.
pub(super) struct Alignment {
    sources: Vec<SourceAlignment>,
    begun: bool,
    /// Marks of events, reported by aligned sources.
    marks: BTreeMap<EventId, Vec<Mark>>,
    /// The last event of each aligned source, by unit.
    through: BTreeMap<usize, EventId>,
    answers: VecDeque<Aligned>,
    dirty: bool,
}

impl Alignment {
    pub(super) fn new(config: &Config) -> Self {
        let source = |unit: usize| SourceAlignment {
            unit,
            state: AlignmentState::Silent,
            segment: 0,
            declared: false,
            last: false,
            bits: 64,
            after: EventId(0),
            number: 0,
            ahead: 0,
            has_reported_all: false,
            seen: BTreeMap::new(),
            comparison: config.marks,
            capacity: MOST_MARKS.min(config.buffer_events as usize),
        };
        // Fragments that are matched by time need no numbers.
        let numbered = if config.coincidence.is_some() { &[] } else { &config.numbered[..] };
        Self {
            begun: numbered.is_empty(),
            sources: numbered.iter().map(|id| source(id.index())).collect(),
            marks: BTreeMap::new(),
            through: BTreeMap::new(),
            answers: VecDeque::new(),
            dirty: false,
        }
    }

    /// Returns true if the first event of all sources is known.
    pub(super) const fn has_begun(&self) -> bool {
        self.begun
    }

    /// Returns true if the marks of aligned sources are wanted.
    pub(super) fn wants_marks(&self) -> bool {
        self.begun && self.sources.iter().any(|source| source.state == AlignmentState::Waiting && source.has_marks())
    }

    /// Returns true if no other living source will have more events than this one.
    pub(super) fn is_last_of_all(&self, unit: usize) -> bool {
        let mut others = self.sources.iter().filter(|source| source.unit != unit);
        others.all(|source| {
            source.state == AlignmentState::Gone || (source.state == AlignmentState::Placed && source.last)
        })
    }

    /// Number of living sources.
    pub(super) fn alive(&self) -> usize {
        self.sources.iter().filter(|source| source.state != AlignmentState::Gone).count()
    }

    /// Takes a report of fragments that the readout unit cannot assign to events.
    pub(super) fn sighted(&mut self, unit: usize, sighted: &Sighted) {
        let Some(source) = self.sources.iter_mut().find(|source| source.unit == unit) else { return };
        if source.segment != sighted.segment {
            source.seen.clear();
        }
        let Sighted { segment, declared, last, bits, after, number, ahead, .. } = *sighted;
        source.segment = segment;
        source.declared = declared;
        source.last = last;
        source.bits = bits.clamp(1, 64);
        source.after = after;
        source.number = number;
        source.ahead = ahead;
        source.state = AlignmentState::Waiting;
        source.seen.extend(sighted.fragments.iter().map(|sighting| (sighting.position, sighting.mark)));
        while source.seen.len() > MOST_MARKS {
            source.seen.pop_first();
        }
        self.dirty = true;
    }

    /// Takes the last event that an aligned source has, and whether it is final.
    pub(super) fn available(&mut self, unit: usize, through: EventId, last: bool) {
        let Some(source) = self.sources.iter_mut().find(|source| source.unit == unit) else { return };
        if last && source.state != AlignmentState::Gone {
            source.state = AlignmentState::Placed;
            source.last = true;
        }
        self.through.insert(unit, through);
        self.dirty |= self.sources.iter().any(|source| source.state == AlignmentState::Waiting);
    }

    /// Expects the marks of all sources, which are asked for them.
    pub(super) fn ask_marks(&mut self) {
        self.sources.iter_mut().for_each(|source| source.has_reported_all = false);
    }

    /// Takes the marks of events of an aligned source. An empty report says that the source has ended and has no more.
    pub(super) fn marks(&mut self, unit: usize, marks: &[(EventId, Mark)]) {
        if let Some(source) = self.sources.iter_mut().find(|source| source.unit == unit) {
            source.has_reported_all |= marks.is_empty();
        }
        for &(event, mark) in marks {
            self.marks.entry(event).or_default().push(mark);
        }
        while self.marks.len() > MOST_MARKS {
            self.marks.pop_first();
        }
        self.dirty = true;
    }

    /// Takes note that a readout unit is gone.
    pub(super) fn lose(&mut self, unit: usize) {
        if let Some(source) = self.sources.iter_mut().find(|source| source.unit == unit) {
            source.state = AlignmentState::Gone;
            self.dirty = true;
        }
    }

    /// The next answer. `triggered` is the last triggered event.
    pub(super) fn poll(&mut self, triggered: u64) -> Option<Aligned> {
        if core::mem::take(&mut self.dirty) {
            if self.begun {
                self.bring_back(triggered)
            } else {
                self.begin()
            }
            if !self.wants_marks() {
                self.marks.clear();
            }
        }
        self.answers.pop_front()
    }

    fn answer(&mut self, index: usize, first: Option<i64>) {
        let source = &mut self.sources[index];
        source.state = AlignmentState::Placed;
        source.last = false;
        source.seen.clear();
        self.answers.push_back(Aligned { unit: source.unit, segment: source.segment, first });
    }

    fn waiting(&self) -> Vec<usize> {
        (0..self.sources.len()).filter(|&index| self.sources[index].state == AlignmentState::Waiting).collect()
    }

    // ---- the beginning

    /// Finds the first event that all sources have, once every living source has reported its first fragments.
    fn begin(&mut self) {
        if self.sources.iter().any(|source| source.state == AlignmentState::Silent) {
            return;
        }
        let waiting = self.waiting();
        let Some(offsets) = self.offsets(&waiting) else { return };
        let base = offsets.iter().copied().max().unwrap_or(0);
        self.begun = true;
        for (&index, offset) in waiting.iter().zip(offsets) {
            self.answer(index, Some(offset - base + 1));
        }
    }

    /// Offset of each source from the reference, in events; `None` if more fragments are needed.
    fn offsets(&self, waiting: &[usize]) -> Option<Vec<i64>> {
        let has_marks = |index: &&usize| self.sources[**index].has_marks();
        let Some(&reference) = waiting.iter().find(has_marks).or_else(|| waiting.first()) else {
            return Some(Vec::new());
        };
        waiting.iter().map(|&index| self.sources[index].offset_from(&self.sources[reference])).collect()
    }

    // ---- later

    /// Answers the sources that have restarted their counters, as far as there is evidence.
    fn bring_back(&mut self, triggered: u64) {
        let waiting = self.waiting();
        if let Some(firsts) = self.common_restart(&waiting, triggered) {
            waiting.into_iter().zip(firsts).for_each(|(index, first)| self.answer(index, Some(first)));
            return;
        }
        for index in waiting {
            let source = &self.sources[index];
            if let Some(first) = source.place_among(&self.marks).or_else(|| self.place_by_value(source)) {
                self.answer(index, Some(first));
            } else if self.is_hopeless(source) {
                self.answer(index, None);
            }
        }
    }

    /// The first event of each source, if all of them have restarted: after the same event and from the same number, as at
    /// a marker that all carry, or with marks that tell.
    fn common_restart(&self, waiting: &[usize], triggered: u64) -> Option<Vec<i64>> {
        let first = &self.sources[*waiting.first()?];
        let takes_part = |source: &SourceAlignment| match source.state {
            AlignmentState::Gone | AlignmentState::Waiting => true,
            // It had ended before.
            AlignmentState::Placed => {
                source.last && self.through.get(&source.unit).is_none_or(|last| *last <= first.after)
            }
            AlignmentState::Silent => false,
        };
        if !self.sources.iter().all(takes_part) {
            return None;
        }
        let offset = |&index: &usize| {
            let source = &self.sources[index];
            let alike = |other: &SourceAlignment| (other.after, other.number, other.declared);
            if alike(source) == alike(first) { source.offset_from(first) } else { source.offset_by_marks(first) }
        };
        let offsets: Vec<_> = waiting.iter().map(offset).collect::<Option<_>>()?;
        let last = waiting.iter().map(|&index| self.sources[index].after.0).max().unwrap_or(0).max(triggered);
        let base = offsets.iter().copied().min().unwrap_or(0);
        Some(offsets.into_iter().map(|offset| last as i64 + 1 + offset - base).collect())
    }

    /// The event of position 0 by the value of its number, if the counter leapt forwards and others show that it was
    /// right.
    fn place_by_value(&self, source: &SourceAlignment) -> Option<i64> {
        if source.ahead == 0 || source.seen.len() as u64 >= u64::from(source.ahead) / 2 {
            return None;
        }
        let first = source.after.0 + u64::from(source.ahead);
        let mut others = self.sources.iter().filter(|other| other.unit != source.unit);
        let is_reached = others.any(|other| self.through.get(&other.unit).is_some_and(|through| through.0 >= first));
        let marks = source.marks_of_events(&self.marks);
        let (agreeing, all) = source.compare(first as i64, &marks);
        let is_contradicted = agreeing < all;
        (is_reached && !is_contradicted).then_some(first as i64)
    }

    /// Returns true if this source can never be aligned.
    fn is_hopeless(&self, source: &SourceAlignment) -> bool {
        let others = || {
            let living = self.sources.iter().filter(|other| other.state != AlignmentState::Gone);
            living.filter(|other| other.unit != source.unit)
        };
        let has_passed = |other: &SourceAlignment| {
            let through = self.through.get(&other.unit).copied().unwrap_or_default();
            // A source that leapt forwards would have been placed when others got there.
            through.0 >= source.after.0 + u64::from(source.ahead.max(1))
        };
        match source.has_marks() {
            // Others have gone on where this one has started again, or can say no more.
            false => {
                let is_waiting = |other: &SourceAlignment| other.state == AlignmentState::Waiting;
                let is_behind = source.ahead == 0 || source.last;
                others().any(has_passed) || is_behind && others().all(|other| other.last || is_waiting(other))
            }
            true => {
                let reach = source.after.0 + source.capacity as u64;
                let is_full =
                    |other: &SourceAlignment| self.through.get(&other.unit).is_some_and(|last| last.0 >= reach);
                // It holds up the others, so that no further marks can come.
                let holds_up = || source.ahead == 0 && (source.is_long() || others().any(is_full));
                // The marks of a source that has ended may still be on their way.
                let has_reported_all = |other: &SourceAlignment| {
                    other.last && (other.state == AlignmentState::Waiting || other.has_reported_all)
                };
                source.last && (source.seen.len() < WITNESSES || holds_up() || others().all(has_reported_all))
            }
        }
    }
}

impl SourceAlignment {
    fn has_marks(&self) -> bool {
        self.seen.values().any(Option::is_some)
    }

    /// Returns true if as many fragments wait as have room.
    fn is_long(&self) -> bool {
        self.seen.len() >= self.capacity
    }

    /// Number of marks that agree with those of events, and number of marks that can be compared, if position 0 is this
    /// event.
    fn compare(&self, first: i64, marks: &BTreeMap<i64, Option<Mark>>) -> (usize, usize) {
        let pairs = self
            .seen
            .iter()
            .filter_map(|(&position, mark)| Some(((*mark)?, (*marks.get(&(first + position as i64))?)?)));
        pairs.fold((0, 0), |(same, all), (own, other)| (same + usize::from(self.comparison.agree(own, other)), all + 1))
    }

    fn marks_by_position(&self) -> BTreeMap<i64, Option<Mark>> {
        self.seen.iter().map(|(&position, mark)| (position as i64, *mark)).collect()
    }

    /// Offset of this source from another one by their marks alone, in events.
    fn offset_by_marks(&self, other: &Self) -> Option<i64> {
        if self.unit == other.unit { Some(0) } else { self.place(&other.marks_by_position()) }
    }

    /// Offset of this source from another one, in events; `None` if more fragments are needed.
    fn offset_from(&self, other: &Self) -> Option<i64> {
        let by_value = self.ahead_of(other);
        let marks = other.marks_by_position();
        let (same, all) = self.compare(by_value, &marks);
        // Where numbers are equal, marks need only not contradict: builders compare all further ones.
        if by_value == 0 && same == all {
            return Some(0);
        }
        // Marks may come together further on, as long as there is room for more. Without them all that is to be feared
        // is that one fragment with a wild number is the beginning.
        let wanted = if self.has_marks() && other.has_marks() { self.capacity } else { 2 };
        let more_may_come = [self, other].iter().any(|source| !source.last && source.seen.len() < wanted);
        self.place(&marks).or((!more_may_come).then_some(by_value))
    }

    /// Offset of this source from another one by the values of their numbers.
    fn ahead_of(&self, other: &Self) -> i64 {
        let shift = 64 - u32::from(self.bits.min(other.bits));
        (self.number.wrapping_sub(other.number) << shift) as i64 >> shift
    }

    fn place_among(&self, marks: &BTreeMap<EventId, Vec<Mark>>) -> Option<i64> {
        if marks.is_empty() || !self.has_marks() {
            return None;
        }
        self.place(&self.marks_of_events(marks))
    }

    /// The mark of each event behind the last one of this source, where most sources agree with one.
    fn marks_of_events(&self, marks: &BTreeMap<EventId, Vec<Mark>>) -> BTreeMap<i64, Option<Mark>> {
        let later = marks.range(self.after.next()..);
        later.map(|(event, marks)| (event.0 as i64, common(marks, self.comparison))).collect()
    }

    /// The event of position 0 among marked events: the place where enough marks agree and none disagrees, if there is
    /// only one place of that kind. The marks that agree must not all be equal, else the place is one of many.
    fn place(&self, marks: &BTreeMap<i64, Option<Mark>>) -> Option<i64> {
        let own = || self.seen.iter().filter_map(|(&position, mark)| Some((position as i64, (*mark)?)));
        let agree = |one: Mark, other: Mark| self.comparison.agree(one, other);
        let agrees = |first: i64| {
            let (agreeing, all) = self.compare(first, marks);
            let is_of = |position: i64, mark: Mark| {
                marks.get(&(first + position)).is_some_and(|other| other.is_some_and(|other| agree(mark, other)))
            };
            let mut common = own().filter(|&(position, mark)| is_of(position, mark)).map(|(_, mark)| mark);
            let one = common.next();
            agreeing == all && agreeing >= WITNESSES && common.any(|mark| one.is_some_and(|one| !agree(mark, one)))
        };
        let mut carriers = BTreeMap::<u32, Vec<i64>>::new();
        for (&event, mark) in marks {
            mark.iter().for_each(|mark| carriers.entry(self.comparison.value(*mark)).or_default().push(event));
        }
        let mut hits = BTreeMap::<i64, usize>::new();
        for (position, mark) in own().take(MOST_TRIED) {
            let alike = self.comparison.values(mark).flat_map(|values| carriers.range(values));
            alike.flat_map(|(_, events)| events).for_each(|event| *hits.entry(event - position).or_default() += 1);
        }
        let mut places = hits.into_iter().filter(|&(first, hits)| hits >= WITNESSES && agrees(first));
        let (place, _) = places.next()?;
        places.next().is_none().then_some(place)
    }
}

/// A mark that more than half of the sources agree with.
fn common(marks: &[Mark], comparison: MarkComparison) -> Option<Mark> {
    let count = |wanted: Mark| marks.iter().filter(|mark| comparison.agree(**mark, wanted)).count();
    marks.iter().copied().find(|mark| 2 * count(*mark) > marks.len())
}
