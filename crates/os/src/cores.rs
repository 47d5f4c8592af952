//! The cores of this machine, and the binding of threads to them.

use rustix::{
    io,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};
use std::fs;

/// A core, and the cores near it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Core {
    /// Its number in the system.
    pub number: u16,
    /// The hardware threads of one core, this one among them; empty if unknown.
    pub siblings: Vec<u16>,
    /// The first of the cores that share its last-level cache; `None` if unknown.
    pub cache: Option<u16>,
}

/// The cores that this thread may use, in ascending order; empty if the system does not report them.
#[must_use]
pub fn allowed() -> Vec<u16> {
    usable().unwrap_or_default()
}

/// The cores that this thread may use, in ascending order.
///
/// # Errors
/// The error of the system.
pub fn usable() -> io::Result<Vec<u16>> {
    sched_getaffinity(None).map(|set| members(&set))
}

/// Binds this thread to one core, and checks it with the system. Threads that it starts are bound, too.
///
/// # Errors
/// If the system refuses it, or reports another core afterwards.
pub fn pin(core: u16) -> io::Result<()> {
    bind(&[core])
}

/// Binds this thread to cores in ascending order, and checks it with the system.
///
/// # Errors
/// As [`pin`].
pub fn bind(cores: &[u16]) -> io::Result<()> {
    let mut wanted = CpuSet::new();
    cores.iter().for_each(|&core| wanted.set(core.into()));
    sched_setaffinity(None, &wanted)?;
    if allowed() == cores { Ok(()) } else { Err(io::Errno::INVAL) }
}

fn members(set: &CpuSet) -> Vec<u16> {
    (0..CpuSet::MAX_CPU as u16).filter(|&core| set.is_set(core.into())).collect()
}

/// A core and its neighbours, as the system tells them. What the system does not report is empty.
#[must_use]
pub fn look_up(core: u16) -> Core {
    let list = |file: &str| {
        let text = fs::read_to_string(format!("/sys/devices/system/cpu/cpu{core}/{file}"));
        text.ok().and_then(|text| parse_list(&text)).unwrap_or_default()
    };
    Core {
        number: core,
        siblings: list("topology/thread_siblings_list"),
        cache: list("cache/index3/shared_cpu_list").first().copied(),
    }
}

/// Bytes of the second-level cache of a core, which no other core shares on most machines; `None` if the system does not
/// report it.
#[must_use]
pub fn second_level_cache(core: u16) -> Option<u64> {
    let path = format!("/sys/devices/system/cpu/cpu{core}/cache/index2/size");
    parse_size(&fs::read_to_string(path).ok()?)
}

/// A size as the kernel writes it, such as `2048K`.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, unit) = match text.strip_suffix(['K', 'M']) {
        Some(number) => (number, if text.ends_with('K') { 1 << 10 } else { 1 << 20 }),
        None => (text, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// The numbers of a list of the kernel, such as `0-1,8`, or `None` if the text is not a list.
fn parse_list(text: &str) -> Option<Vec<u16>> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u16>().ok()?..=last.parse().ok()?)
    };
    let ranges: Option<Vec<_>> = text.trim().split(',').map(part).collect();
    ranges.map(|ranges| ranges.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel_are_understood() {
        assert_eq!(parse_list("3\n"), Some(vec![3]));
        assert_eq!(parse_list("0-2,8,10-11\n"), Some(vec![0, 1, 2, 8, 10, 11]));
        for text in ["", "\n", "a", "0-", "1,,2", "70000"] {
            assert_eq!(parse_list(text), None, "{text:?}");
        }
    }

    #[test]
    fn sizes_of_the_kernel_are_understood() {
        assert_eq!(["2048K\n", "1M", "512"].map(parse_size), [Some(1 << 21), Some(1 << 20), Some(512)]);
        assert_eq!(["", "K", "x", "99999999999999999999K"].map(parse_size), [None; 4]);
    }

    #[test]
    fn a_missing_core_has_no_neighbours() {
        assert_eq!(look_up(u16::MAX), Core { number: u16::MAX, ..Core::default() });
    }

    #[test]
    fn a_bound_thread_may_use_its_core_only() {
        let before = allowed();
        pin(before[0]).unwrap();
        assert_eq!(allowed(), before[..1]);
        bind(&before).unwrap();
        assert_eq!(allowed(), before);
        assert!(pin(1023).is_err(), "no machine of a test has that many cores");
    }
}
