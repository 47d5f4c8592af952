//! The order of cores: a pure function that does not read the machine.

use evb_os::cores::Core;

/// The cores in the order in which nodes take them: the first hardware thread of each, then the others. Among these, cores
/// with a common cache follow each other.
pub(crate) fn in_order(mut cores: Vec<Core>) -> Vec<u16> {
    let usable: Vec<_> = cores.iter().map(|core| core.number).collect();
    cores.sort_by_cached_key(|core| {
        let before = |other: &&u16| **other < core.number && usable.contains(other);
        (core.siblings.iter().filter(before).count(), core.cache, core.number)
    });
    cores.into_iter().map(|core| core.number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(number: u16, siblings: &[u16], cache: Option<u16>) -> Core {
        Core { number, siblings: siblings.to_vec(), cache }
    }

    #[test]
    fn the_hardware_threads_of_a_core_come_one_after_all_others() {
        let pairs = [[0, 4], [1, 5], [2, 6], [3, 7]];
        let of = |numbers: &[u16]| numbers.iter().map(|&n| core(n, &pairs[usize::from(n % 4)], None)).collect();
        assert_eq!(in_order(of(&[0, 1, 2, 3, 4, 5, 6, 7])), [0, 1, 2, 3, 4, 5, 6, 7]);
        let next = |n: u16| core(n, &[n & !1, n | 1], None);
        assert_eq!(in_order((0..8).map(next).collect()), [0, 2, 4, 6, 1, 3, 5, 7]);
        assert_eq!(in_order(of(&[1, 5, 6])), [1, 6, 5], "the first one may be forbidden");
    }

    #[test]
    fn cores_with_a_common_cache_follow_each_other() {
        let even = |n: u16| core(n, &[n], Some(n % 2));
        assert_eq!(in_order((0..6).map(even).collect()), [0, 2, 4, 1, 3, 5]);
        let both = |n: u16| core(n, &[n % 4, n % 4 + 4], Some(n % 2));
        assert_eq!(in_order((0..8).map(both).collect()), [0, 2, 1, 3, 4, 6, 5, 7], "threads count more");
    }

    #[test]
    fn unknown_neighbours_make_one_group() {
        let unknown = |n| core(n, &[], None);
        assert_eq!(in_order([3, 0, 7].map(unknown).to_vec()), [0, 3, 7]);
        assert_eq!(in_order(vec![]), [0; 0]);
    }
}
