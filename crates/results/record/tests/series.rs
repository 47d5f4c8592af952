//! The steady window of made-up series: found where there is one, and nowhere else.

use evb_core::{NodeId, Stream, Time, stream};
use evb_record::steady::{Offer, RATES, Series, Steady};
use evb_record::{Effect, FindingKind};
use rand::RngExt;
use rand_distr::{Distribution, Exp1};

const SECOND: u64 = 1_000_000_000_000;
/// No made-up rate is higher.
const HIGHEST_HZ: f64 = 40_000.0;

/// Events over one second at a rate that changes with time, Poisson or regular, each of which ends when it comes or is left
/// behind.
struct Made {
    rate_hz: fn(f64) -> f64,
    /// The part of what comes that is carried.
    carried: f64,
    random: Option<Stream>,
}

impl Made {
    fn steady(rate_hz: fn(f64) -> f64, seed: Option<u64>) -> Self {
        let random = seed.map(|seed| stream(seed, NodeId(0), 1));
        Self { rate_hz, carried: 1.0, random }
    }

    fn series(mut self) -> (Series, Time) {
        let end = Time(SECOND);
        let mut series = Series::new(Time::ZERO, &[0; RATES]);
        let (mut now, mut came, mut ended) = (0.0, 0_u64, 0.0);
        loop {
            now += self.interval(now);
            if now >= 1.0 {
                let counts = [came, came, ended as u64, ended as u64];
                series.stop(end, &counts);
                series.end(end, &counts);
                return (series, end);
            }
            series.mark(Time((now * SECOND as f64) as u64), &[came, came, ended as u64, ended as u64]);
            came += 1;
            ended += self.carried;
        }
    }

    /// Time to the next event. Of a Poisson process of the highest rate, each event counts with the probability of its time.
    fn interval(&mut self, now: f64) -> f64 {
        let Some(random) = &mut self.random else { return 1.0 / (self.rate_hz)(now) };
        let mut passed = 0.0;
        loop {
            let interval: f64 = Exp1.sample(random);
            passed += interval / HIGHEST_HZ;
            if random.random::<f64>() * HIGHEST_HZ < (self.rate_hz)(now + passed) || now + passed > 1.0 {
                return passed;
            }
        }
    }

    fn find(self) -> (Series, Steady) {
        let (series, end) = self.series();
        let steady = Steady::find(&series, None, end);
        (series, steady)
    }
}

fn from_s(steady: &Steady) -> f64 {
    steady.window().from_s
}

#[test]
fn a_constant_rate_is_steady_from_the_start() {
    let (_, steady) = Made::steady(|_| 10_000.0, None).find();
    let rate = steady.rate_hz().expect("a steady window");
    assert!(steady.window().steady && from_s(&steady) < 0.05 && steady.finding().is_none(), "{steady:?}");
    assert!(rate.low <= 10_000.0 && 10_000.0 <= rate.high && rate.high - rate.low < 20.0, "{rate:?}");
}

#[test]
fn a_transient_is_left_out() {
    for seed in 1..=20 {
        // Full speed is reached after a fifth of a second.
        let (series, steady) = Made::steady(|now| 20_000.0 * (now / 0.2).min(1.0), Some(seed)).find();
        assert!((0.1..0.5).contains(&from_s(&steady)), "seed {seed}: {steady:?}");
        let rate = series.rate(steady.window, evb_record::steady::ENDED);
        assert!((rate / 20_000.0 - 1.0).abs() < 0.03, "seed {seed}: {rate}");
        // Without truncation the mean of the whole is a tenth lower.
        let whole = series.rate((Time::ZERO, Time(SECOND)), evb_record::steady::ENDED);
        assert!(whole < 0.92 * 20_000.0, "seed {seed}: {whole}");
    }
}

#[test]
fn a_ramp_is_never_steady() {
    for seed in 1..=20 {
        let (_, steady) = Made::steady(|now| 1000.0 + 20_000.0 * now, Some(seed)).find();
        let finding = steady.finding().unwrap_or_else(|| panic!("seed {seed}: {steady:?}"));
        assert!(!steady.window().steady && steady.rate_hz().is_none(), "seed {seed}");
        assert_eq!((finding.kind, finding.kind.effect()), (FindingKind::NoSteadyState, Effect::Remark));
        assert!(finding.hint.is_some_and(|hint| hint.contains("4 s")), "seed {seed}");
    }
}

#[test]
fn a_slow_swing_is_not_steady_and_a_fast_one_is() {
    let slow = |now: f64| 20_000.0 * (1.0 + 0.5 * (now * 9.0).sin());
    let fast = |now: f64| 20_000.0 * (1.0 + 0.5 * (now * 900.0).sin());
    for seed in 1..=20 {
        assert!(!Made::steady(slow, Some(seed)).find().1.window().steady, "seed {seed}");
    }
    let steady = (1..=100).filter(|&seed| Made::steady(fast, Some(seed)).find().1.window().steady).count();
    assert!(steady >= 95, "{steady} of 100");
}

#[test]
fn too_few_events_are_not_a_steady_state() {
    let (_, steady) = Made::steady(|_| 50.0, Some(1)).find();
    let finding = steady.finding().expect("a finding");
    assert!(finding.message.contains("too few ended") && finding.hint.is_some(), "{finding:?}");
}

#[test]
fn a_warmup_that_is_set_is_where_the_window_begins() {
    let (series, end) = Made::steady(|_| 10_000.0, Some(3)).series();
    let from = Time(SECOND / 3);
    let steady = Steady::find(&series, Some(from), end);
    assert_eq!(steady.window, (from, end));
    assert!(steady.rate_hz().is_some());
}

/// Name of a rate, and its value at a time in seconds.
type Kind = (&'static str, fn(f64) -> f64);

/// Coverage of the interval, for Poisson events and for events in bunches, with a warm-up before. 950 of 1000 series
/// should hold the true rate; truncation and the choice of batches may cost a little, and chance twenty either way.
#[test]
fn the_interval_holds_the_true_rate_as_often_as_it_says() {
    let kinds: [Kind; 3] = [
        ("constant", |_| 5000.0),
        ("with warm-up", |now| 5000.0 * (now / 0.1).min(1.0)),
        ("in bunches", |now| if (now * 1000.0).fract() < 0.5 { 9000.0 } else { 1000.0 }),
    ];
    for (kind, rate_hz) in kinds {
        let (mut holds, mut steady) = (0, 0);
        for seed in 1..=1000 {
            let (_, found) = Made::steady(rate_hz, Some(seed)).find();
            let Some(interval) = found.rate_hz() else { continue };
            steady += 1;
            holds += u32::from((interval.low..=interval.high).contains(&5000.0));
        }
        let part = f64::from(holds) / f64::from(steady);
        println!("{kind}: {steady} of 1000 are steady, and {:.1} % of the intervals hold the rate", part * 100.0);
        assert!(steady >= 950, "{kind}: {steady}");
        assert!((0.91..=0.98).contains(&part), "{kind}: {part}");
    }
}

fn offer(turned_away: u64, accepted_loss: f64) -> Offer {
    Offer {
        key: "trigger.rate",
        what: "triggers",
        came: 10_000,
        turned_away,
        switched: 0,
        longest_s: 0.0,
        rate_hz: 10_000.0,
        accepted_loss,
    }
}

#[test]
fn a_lag_beyond_the_accepted_part_is_reported() {
    for seed in 1..=20 {
        let made = |part| Made { carried: part, ..Made::steady(|_| 10_000.0, Some(seed)) }.find();
        let judge = |turned_away, accepted_loss, (series, steady): (Series, Steady)| {
            offer(turned_away, accepted_loss).judge(&series, &steady)
        };
        assert_eq!(judge(0, 0.0, made(1.0)), None, "seed {seed}");
        assert_eq!(judge(0, 0.0, made(0.995)), None, "seed {seed}: within a per cent");
        assert_eq!(judge(0, 0.15, made(0.9)), None, "seed {seed}: accepted");
        let finding = judge(0, 0.0, made(0.9)).unwrap_or_else(|| panic!("seed {seed}"));
        assert_eq!((finding.kind, finding.subject.as_str()), (FindingKind::RateNotKept, "trigger.rate"));
        assert!(finding.message.contains("of 10.0 kHz offered were carried"), "{}", finding.message);
        assert!(judge(0, 0.05, made(0.9)).is_some(), "seed {seed}");
    }
}

#[test]
fn rejected_load_is_reported_even_without_a_steady_state() {
    let (series, unsettled) = Made::steady(|_| 50.0, Some(1)).find();
    let finding = offer(123, 0.0).judge(&series, &unsettled).expect("a finding");
    assert!(finding.message.contains("123 of 10000 triggers were turned away, 1.23 %"), "{}", finding.message);
    assert_eq!(offer(123, 0.02).judge(&series, &unsettled), None);
    assert_eq!(offer(0, 0.0).judge(&series, &unsettled), None);
}

/// Bursts of 64 events, and the work for them, which goes on all the time.
fn bursts(count: u64) -> (Series, Time) {
    const EVENTS: u64 = 64;
    let end = Time(SECOND);
    let (period, mut series) = (SECOND / count, Series::new(Time::ZERO, &[0; RATES + 1]));
    for step in 1..=count * EVENTS {
        let now = Time(step * period / EVENTS);
        let (work, ended) = (step, step / EVENTS * EVENTS);
        series.mark(now, &[ended, work, ended, ended, work]);
    }
    series.stop(end, &[count * EVENTS; RATES + 1]);
    series.end(end, &[count * EVENTS; RATES + 1]);
    (series, end)
}

#[test]
fn a_window_of_bursts_has_whole_bursts_only() {
    for count in [25, 30, 40, 50] {
        let (series, end) = bursts(count);
        let steady = Steady::find(&series, None, end);
        let interval = steady.rate_hz().unwrap_or_else(|| panic!("{count}: {:?}", steady.finding()));
        let [ended, work] = [evb_record::steady::ENDED, RATES].map(|which| series.rate(steady.window, which));
        assert!((ended / work - 1.0).abs() < 0.03, "{count}: {ended} ended of {work} worked");
        assert!(interval.high - interval.low < 0.2 * ended, "{count}: {interval:?}");
    }
}

#[test]
fn few_bursts_are_not_a_steady_state() {
    for count in [8, 12, 15] {
        let (series, end) = bursts(count);
        let finding = Steady::find(&series, None, end).finding().unwrap_or_else(|| panic!("{count}"));
        assert!(finding.message.contains("in bursts"), "{count}: {}", finding.message);
    }
}
