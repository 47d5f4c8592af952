//! Rate of wrong comparisons: thousands of pairs of records whose launches are drawn, so that the truth is known.

use crate::benchmarks::launched;
use evb_core::{NodeId, stream};
use evb_record::{Benchmark, Change};
use evb_report::compare;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, StandardNormal};

const SEED: u64 = 1;
/// Pairs for each kind of launches, each number of them and each difference.
const PAIRS: u32 = 1000;
/// A difference below this does not matter, as `evb compare` has it by default.
const TOLERANCE: f64 = 0.05;
/// Most wrong verdicts of each kind, as a part of all pairs.
const MOST_WRONG: f64 = 0.05;
/// Launches before and now.
const COUNTS: [(usize, usize); 7] = [(3, 3), (3, 6), (5, 5), (6, 6), (6, 24), (12, 12), (30, 30)];
/// Factor of the cycle time; all but the first two matter.
const FACTORS: [f64; 6] = [1.0, 1.03, 1.06, 1.2, 2.0, 4.4];

/// Distribution of the launches of one build.
#[derive(Clone, Copy, Debug)]
enum Scatter {
    /// By so much, normally.
    Normal(f64),
    /// Upwards only, by so much on average.
    Skewed(f64),
    /// One of two ways, as where the system puts two cores: 55 ns, or 240 ns with this probability.
    Bistable(f64),
    /// By 1 %, and with this probability ten times as long.
    Outliers(f64),
}

use Scatter::{Bistable, Normal, Outliers, Skewed};

const ALL: [Scatter; 9] = [
    Normal(0.005),
    Normal(0.03),
    Normal(0.2),
    Skewed(0.05),
    Skewed(0.5),
    Bistable(0.5),
    Bistable(0.25),
    Bistable(0.1),
    Outliers(0.05),
];

impl Scatter {
    fn draw<R: Rng>(self, random: &mut R) -> f64 {
        let normal = |part: f64, random: &mut R| {
            let deviate: f64 = StandardNormal.sample(random);
            (part * deviate).exp()
        };
        let either = |fast: f64, slow: f64, part: f64, random: &mut R| {
            let way = if RngExt::random::<f64>(random) < part { slow } else { fast };
            way * normal(0.01, random)
        };
        match self {
            Normal(part) => 55.0 * normal(part, random),
            Skewed(part) => 55.0 * (1.0 + part * Distribution::<f64>::sample(&Exp1, random)),
            Bistable(part) => either(55.0, 240.0, part, random),
            Outliers(part) => either(55.0, 550.0, part, random),
        }
    }

    /// A record of this many launches, each of which takes `factor` times as long.
    fn record(self, launches: usize, factor: f64, random: &mut impl Rng) -> Benchmark {
        let values: Vec<f64> = (0..launches).map(|_| factor * self.draw(random)).collect();
        launched(&values)
    }
}

/// Which part of many pairs got each verdict.
#[derive(Debug, Default)]
struct Verdicts {
    same: f64,
    faster: f64,
    slower: f64,
}

impl Verdicts {
    /// Compares pairs: the old side scatters in one way, the new side in another and takes `factor` times as long.
    fn of((old, new): (Scatter, Scatter), (before, now): (usize, usize), factor: f64) -> Self {
        let mut random = stream(SEED, NodeId(0), 0);
        let mut found = Self::default();
        for _ in 0..PAIRS {
            let old = old.record(before, 1.0, &mut random);
            let new = new.record(now, factor, &mut random);
            let which = match compare(&[old], &[new], TOLERANCE)[0].difference.verdict {
                Change::Same => &mut found.same,
                Change::Faster => &mut found.faster,
                Change::Slower => &mut found.slower,
                Change::CannotTell => continue,
                other => panic!("{other:?}"),
            };
            *which += 1.0 / f64::from(PAIRS);
        }
        found
    }
}

/// Every kind of launches, every number of them and every difference, in both directions.
#[test]
fn wrong_verdicts_are_rare() {
    let mut worst = Verdicts::default();
    for (scatter, counts) in ALL.into_iter().flat_map(|scatter| COUNTS.map(|counts| (scatter, counts))) {
        for factor in FACTORS.into_iter().flat_map(|factor| [factor, 1.0 / factor]) {
            let found = Verdicts::of((scatter, scatter), counts, factor);
            let is_large = factor.ln().abs() > TOLERANCE.ln_1p();
            let wrong = Verdicts {
                same: if is_large { found.same } else { 0.0 },
                faster: if factor >= 1.0 { found.faster } else { 0.0 },
                slower: if factor <= 1.0 { found.slower } else { 0.0 },
            };
            for (part, most) in
                [(wrong.same, &mut worst.same), (wrong.faster, &mut worst.faster), (wrong.slower, &mut worst.slower)]
            {
                assert!(part < MOST_WRONG, "{scatter:?}, {counts:?} launches, {factor} times: {found:?}, seed {SEED}");
                *most = part.max(*most);
            }
        }
    }
    println!("seed {SEED}, worst parts of wrong verdicts: {worst:?}");
}

/// A build that always goes the fast way, and one of which half of the launches or more go the slow way.
#[test]
fn a_new_way_to_go_is_rarely_called_the_same() {
    let mut worst = 0.0_f64;
    for (part, counts) in [0.5, 0.7, 0.9, 1.0].into_iter().flat_map(|part| COUNTS.map(|counts| (part, counts))) {
        for pair in [(Bistable(0.0), Bistable(part)), (Bistable(part), Bistable(0.0))] {
            let found = Verdicts::of(pair, counts, 1.0);
            let wrong = if matches!(pair.1, Bistable(0.0)) { found.slower } else { found.faster };
            assert!(found.same < MOST_WRONG && wrong < MOST_WRONG, "{pair:?}, {counts:?}: {found:?}, seed {SEED}");
            worst = worst.max(found.same);
        }
    }
    println!("seed {SEED}, worst part that was called the same: {worst}");
}

/// A test that never decides is never wrong, so this one must decide where it can.
#[test]
fn clear_differences_are_decided() {
    for counts in [(6, 6), (12, 12), (30, 30)] {
        let verdicts = |scatter, factor| Verdicts::of((scatter, scatter), counts, factor);
        assert!(verdicts(Normal(0.005), 1.0).same > 0.99, "{counts:?}");
        assert!(verdicts(Normal(0.005), 1.1).slower > 0.99, "{counts:?}");
        assert!(verdicts(Normal(0.005), 1.0 / 1.1).faster > 0.99, "{counts:?}");
        assert!(verdicts(Normal(0.03), 1.5).slower > 0.99, "{counts:?}");
        assert!(verdicts(Bistable(0.5), 10.0).slower > 0.8, "{counts:?}");
        assert!(verdicts(Outliers(0.05), 2.0).slower > 0.7, "{counts:?}");
    }
    assert!(Verdicts::of((Normal(0.005), Normal(0.005)), (3, 3), 1.5).slower > 0.99, "three launches tell that much");
}

/// About half of the differences that are as large as the one that could have been seen are seen, and nearly all of twice that.
#[test]
fn what_could_have_been_seen_is_seen() {
    let mut random = stream(SEED, NodeId(0), 1);
    let seen_from = |random: &mut _| {
        let [old, new] = [6, 6].map(|count| Normal(0.1).record(count, 1.0, random));
        compare(&[old], &[new], TOLERANCE)[0].difference.seen_from_percent.expect("there are launches enough")
    };
    let mean = (0..PAIRS).map(|_| seen_from(&mut random)).sum::<f64>() / f64::from(PAIRS) * 0.01;
    let seen = |times: f64| Verdicts::of((Normal(0.1), Normal(0.1)), (6, 6), 1.0 + times * mean).slower;
    let (once, twice) = (seen(1.0), seen(2.0));
    assert!((0.35..0.65).contains(&once) && twice > 0.9, "{mean}: {once} and {twice}, seed {SEED}");
}
