//! The verdict on a difference, which depends on the evidence of both files.

use super::ratio::LogRatio;
use evb_record::{Change, Difference, Interval};

/// The evidence for a change of one quantity.
pub(super) struct Evidence {
    /// The new median over the old one, less one.
    pub(super) change: f64,
    /// The losses that only the new file has.
    pub(super) harm: Option<String>,
    /// The reason why the values cannot be trusted.
    pub(super) doubt: Option<String>,
    /// The ratio of new and old, or the reason why it is unknown.
    pub(super) ratio: Result<LogRatio, String>,
}

impl Evidence {
    /// Judges the values of the old and of the new file.
    pub(super) fn judge(
        self,
        quantity: &str,
        [old, new]: [Interval; 2],
        tolerance: f64,
        less_is_better: bool,
    ) -> Difference {
        let Self { change, harm, doubt, ratio } = self;
        let (verdict, reason) = match (harm, doubt, &ratio) {
            (Some(harm), ..) => (Change::NotGood, Some(harm)),
            (None, Some(why), _) => (Change::Untrusted, Some(why)),
            (None, None, Err(why)) => (Change::CannotTell, Some(why.clone())),
            (None, None, Ok(ratio)) => {
                let verdict = verdict(ratio, change.ln_1p(), tolerance.ln_1p(), less_is_better);
                (verdict, (verdict == Change::CannotTell).then(|| ratio.too_few()).flatten())
            }
        };
        let percent = |log: f64| Some(log.exp_m1() * 100.0).filter(|percent| percent.is_finite());
        let limits = ratio.ok();
        let good = !matches!(verdict, Change::NotGood | Change::Slower);
        Difference {
            change_percent: change.is_finite().then_some(change * 100.0),
            change_low_percent: limits.and_then(|limits| percent(limits.low)),
            change_high_percent: limits.and_then(|limits| percent(limits.high)),
            seen_from_percent: limits.and_then(|limits| percent(limits.resolution())),
            ..one_sided(quantity, [Some(old), Some(new)], verdict, reason, good)
        }
    }
}

/// A difference without numbers, as of values that only one file has.
pub(super) fn one_sided(
    quantity: &str,
    [old, new]: [Option<Interval>; 2],
    verdict: Change,
    reason: Option<String>,
    good: bool,
) -> Difference {
    Difference {
        quantity: quantity.into(),
        old,
        new,
        change_percent: None,
        change_low_percent: None,
        change_high_percent: None,
        seen_from_percent: None,
        verdict,
        reason,
        good,
    }
}

/// The verdict on the launches. `medians` is the logarithm of the ratio of their medians, `margin` that of the
/// tolerance.
fn verdict(ratio: &LogRatio, medians: f64, margin: f64, less_is_better: bool) -> Change {
    let is_less = ratio.high < 0.0 && medians < -margin;
    let is_more = ratio.low > 0.0 && medians > margin;
    match (is_less, is_more) {
        (false, false) if ratio.is_within(margin) => Change::Same,
        (false, false) => Change::CannotTell,
        _ if is_less == less_is_better => Change::Faster,
        _ => Change::Slower,
    }
}
