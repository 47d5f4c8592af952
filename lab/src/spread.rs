//! The values of a measurement as text.

/// The median with minimum and maximum, in units of `scale`; a dash without values.
pub(crate) fn spread(values: &[f64], scale: f64) -> String {
    let Some(middle) = median(values) else { return "-".into() };
    let (least, most) = ends(values);
    let number = |value: f64| digits(value / scale);
    format!("{} ({} to {})", number(middle), number(least), number(most))
}

/// A number with about three digits.
fn digits(value: f64) -> String {
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

/// The median; the lower middle value of an even number of values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// Minimum and maximum.
pub(crate) fn ends(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &value| (least.min(value), most.max(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_median_and_both_ends() {
        assert_eq!(spread(&[3.0, 1.0, 2.0], 1.0), "2.00 (1.00 to 3.00)");
        assert_eq!(spread(&[1500.0], 1e3), "1.50 (1.50 to 1.50)");
        assert_eq!(spread(&[], 1.0), "-");
    }
}
