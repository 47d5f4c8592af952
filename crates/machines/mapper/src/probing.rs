//! A set of probes: several are under way at once, and one that is not answered in time is sent again.

use crate::{Address, Route, Settings};
use alloc::{collections::VecDeque, vec::Vec};
use evb_core::Time;

/// The purpose of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeKind {
    /// It looks for a host.
    Scout,
    /// It looks for a way.
    Loop,
    /// It brings the map.
    Map,
}

/// What came of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeAnswer {
    /// A host answered.
    Host(Address),
    /// It came back, or it was taken.
    Done,
    /// Nothing came, each time.
    Silence,
}

/// A probe to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProbeTransmit {
    pub(crate) number: u32,
    pub(crate) purpose: ProbeKind,
    pub(crate) route: Route,
}

struct Probe {
    purpose: ProbeKind,
    route: Route,
    /// How often it may still be sent.
    tries: u32,
    answer: Option<ProbeAnswer>,
}

/// Probes that are sent together.
pub(crate) struct Probing {
    probes: Vec<Probe>,
    /// The number of the first one; numbers are not used again.
    first: u32,
    /// Probes to send, by index.
    unsent: VecDeque<usize>,
    /// Probes under way and when they are given up, in the order of that.
    under_way: VecDeque<(Time, usize)>,
    open: usize,
}

impl Probing {
    /// Probes with numbers from `first` on.
    pub(crate) fn new(settings: Settings, first: u32, probes: impl IntoIterator<Item = (ProbeKind, Route)>) -> Self {
        let tries = settings.tries;
        let probe = |(purpose, route)| Probe { purpose, route, tries, answer: None };
        let probes: Vec<_> = probes.into_iter().map(probe).collect();
        Self { unsent: (0..probes.len()).collect(), open: probes.len(), under_way: VecDeque::new(), first, probes }
    }

    /// The first number that is not used.
    pub(crate) fn next_number(&self) -> u32 {
        self.first.wrapping_add(self.probes.len() as u32)
    }

    /// The answers in the order of the probes; none where it is not known yet.
    pub(crate) fn answers(&self) -> impl Iterator<Item = Option<ProbeAnswer>> + '_ {
        self.probes.iter().map(|probe| probe.answer)
    }

    /// True when all answers are known.
    pub(crate) fn is_done(&self) -> bool {
        self.open == 0
    }

    /// The next probe to send, if there is room for one under way.
    pub(crate) fn send(&mut self, settings: Settings, now: Time) -> Option<ProbeTransmit> {
        if self.under_way.len() >= settings.window {
            return None;
        }
        let index = self.unsent.pop_front()?;
        let probe = &mut self.probes[index];
        probe.tries -= 1;
        self.under_way.push_back((now + settings.timeout, index));
        let number = self.first.wrapping_add(index as u32);
        Some(ProbeTransmit { number, purpose: probe.purpose, route: probe.route.clone() })
    }

    /// Takes an answer; those to other probes and second ones have no effect.
    pub(crate) fn answer(&mut self, number: u32, answer: ProbeAnswer) {
        let index = number.wrapping_sub(self.first) as usize;
        if let Some(Probe { answer: place @ None, .. }) = self.probes.get_mut(index) {
            *place = Some(answer);
            self.open -= 1;
            self.unsent.retain(|&other| other != index);
            self.under_way.retain(|&(_, other)| other != index);
        }
    }

    /// Takes note of the time: probes that are late are sent again, or have failed.
    pub(crate) fn pass(&mut self, now: Time) {
        while let Some(&(_, index)) = self.under_way.front().filter(|(until, _)| *until <= now) {
            self.under_way.pop_front();
            match self.probes[index].tries {
                0 => {
                    self.probes[index].answer = Some(ProbeAnswer::Silence);
                    self.open -= 1;
                }
                _ => self.unsent.push_back(index),
            }
        }
    }

    /// Time at which the next probe is late.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.under_way.front().map(|&(until, _)| until)
    }
}
