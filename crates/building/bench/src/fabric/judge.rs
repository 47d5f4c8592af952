//! Speeds of links held against each other.

use super::SLOWER;
use evb_record::{LinkSpeed, median};

/// Factor from which a link is so much slower that few measurements alone settle it, and their number.
const MUCH_SLOWER: f64 = 3.0;
const TRIES_IF_MUCH: usize = 3;

/// The median of each quantity.
pub(super) fn median_of(speeds: impl Iterator<Item = LinkSpeed>) -> LinkSpeed {
    let speeds: Vec<_> = speeds.collect();
    let of = |quantity: fn(&LinkSpeed) -> f64| median(&speeds.iter().map(quantity).collect::<Vec<_>>());
    LinkSpeed {
        half_round_trip_ns: of(|speed| speed.half_round_trip_ns),
        mean_half_round_trip_ns: of(|speed| speed.mean_half_round_trip_ns),
        least_round_trips_per_s: of(|speed| speed.least_round_trips_per_s),
        bytes_per_s: of(|speed| speed.bytes_per_s),
    }
}

/// The factor by which a link is slower than usual, in the quantity in which it is slowest; `None` if nothing came through in
/// one of them.
pub(super) fn slower(speed: LinkSpeed, usual: LinkSpeed) -> Option<f64> {
    if speed.half_round_trip_ns <= 0.0 {
        return None;
    }
    let pairs = [
        (speed.half_round_trip_ns, usual.half_round_trip_ns),
        (speed.mean_half_round_trip_ns, usual.mean_half_round_trip_ns),
        (usual.bytes_per_s, speed.bytes_per_s),
        (usual.least_round_trips_per_s, speed.least_round_trips_per_s),
    ];
    // A quantity in which nothing is usual says nothing; one of which the link alone has nothing says all.
    let ratio = |(more, less): (f64, f64)| match (more > 0.0, less > 0.0) {
        (_, true) => Some(more / less),
        (true, false) => None,
        (false, false) => Some(0.0),
    };
    pairs.into_iter().map(ratio).try_fold(0.0, |most: f64, ratio| Some(most.max(ratio?)))
}

/// True if a link is so much slower that it must be looked at again.
pub(super) fn is_suspect(slower: Option<f64>) -> bool {
    slower.is_none_or(|slower| slower >= SLOWER)
}

/// True if a link that failed this number of measurements alone is bad without further ones: it was much slower in each.
pub(super) fn is_settled(measurements: usize, slower: Option<f64>) -> bool {
    measurements >= TRIES_IF_MUCH && slower.is_none_or(|slower| slower >= MUCH_SLOWER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speed(half: f64, mean: f64, bytes_per_s: f64) -> LinkSpeed {
        let least_round_trips_per_s = 512.0 / mean;
        LinkSpeed { half_round_trip_ns: half, mean_half_round_trip_ns: mean, least_round_trips_per_s, bytes_per_s }
    }

    #[test]
    fn the_worst_quantity_decides() {
        let usual = median_of([speed(9.0, 12.0, 90.0), speed(10.0, 11.0, 100.0), speed(50.0, 10.0, 110.0)].into_iter());
        let expected = speed(10.0, 11.0, 100.0);
        assert_eq!(usual, expected);
        assert_eq!(slower(speed(20.0, 11.0, 100.0), usual), Some(2.0));
        assert_eq!(slower(speed(10.0, 44.0, 100.0), usual), Some(4.0), "rare long ones");
        assert_eq!(slower(speed(10.0, 11.0, 25.0), usual), Some(4.0));
        assert!(!is_suspect(slower(usual, usual)) && is_suspect(Some(SLOWER)));
    }

    #[test]
    fn few_measurements_settle_a_link_that_is_much_slower() {
        assert!(is_settled(3, Some(3.0)) && is_settled(3, None), "three times as slow, or nothing came through");
        assert!(!is_settled(2, Some(100.0)) && !is_settled(2, None), "too few");
        assert!(!is_settled(4, Some(2.9)), "slower once by less");
    }

    #[test]
    fn silence_is_not_success() {
        let usual = speed(10.0, 11.0, 100.0);
        assert!(is_suspect(slower(speed(0.0, 0.0, 100.0), usual)));
        assert!(is_suspect(slower(speed(10.0, 11.0, 0.0), usual)));
        assert!(is_suspect(slower(speed(0.0, 0.0, 0.0), speed(0.0, 0.0, 0.0))));
        let stood_still = LinkSpeed { least_round_trips_per_s: 0.0, ..usual };
        assert!(is_suspect(slower(stood_still, usual)), "for a tenth of the time");
        assert!(!is_suspect(slower(stood_still, stood_still)), "as all others did");
    }
}
