//! The memory of the machine, and the part of it that this process has.

use std::fs;

/// Bytes in a kibibyte, the unit of the files in `/proc`.
const KIB: u64 = 1024;

/// The memory of the machine in bytes, or what the control group of this process may have of it; `None` if the system
/// does not say it.
pub fn installed() -> Option<u64> {
    let total = field("/proc/meminfo", "MemTotal:")?;
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|text| text.trim().parse().ok());
    Some(total.min(limit.unwrap_or(u64::MAX)))
}

/// The memory that this process has at present, in bytes; `None` if the system does not say it.
pub fn resident() -> Option<u64> {
    field("/proc/self/status", "VmRSS:")
}

/// A size in a file of lines such as `VmRSS:  1234 kB`, in bytes.
fn field(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * KIB)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn this_process_has_a_part_of_the_memory() {
        let (resident, installed) = (super::resident().unwrap(), super::installed().unwrap());
        assert!(0 < resident && resident < installed, "{resident} of {installed}");
    }
}
