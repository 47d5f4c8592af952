//! Counters of the network interfaces of this machine, as the system reports them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Values by interface and counter, such as `eth0 rx_dropped` or `mlx5_0/1 port_rcv_errors`.
pub(crate) type Counters = BTreeMap<String, u64>;

/// Network interfaces, and their counters of traffic and of its loss.
const NETWORK: &str = "/sys/class/net";
const OF_NETWORK: &[&str] =
    &["rx_packets", "tx_packets", "rx_bytes", "tx_bytes", "rx_errors", "tx_errors", "rx_dropped", "tx_dropped"];
/// Parts of the names of a driver's own counters that are read, if `ethtool` is there: pauses, and reasons of losses.
const OF_DRIVER: &[&str] = &["pause", "drop", "discard", "error", "crc", "missed", "no_buffer"];
/// Devices of InfiniBand. All counters of their ports are read.
const INFINIBAND: &str = "/sys/class/infiniband";

/// The counters now. What cannot be read is left out.
pub(crate) fn read() -> Counters {
    read_at(Path::new(NETWORK), Path::new(INFINIBAND), &of_driver)
}

/// What `ethtool -S` says of an interface; nothing if it is not installed or the driver has no counters.
fn of_driver(interface: &str) -> String {
    let mut ethtool = Command::new("ethtool");
    let output = ethtool.args(["-S", interface]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

fn read_at(network: &Path, infiniband: &Path, of_driver: &dyn Fn(&str) -> String) -> Counters {
    let mut counters = Counters::new();
    for (interface, path) in entries(network) {
        for counter in OF_NETWORK {
            note(&mut counters, &interface, counter, &path.join("statistics").join(counter));
        }
        counters.extend(driver_counters(&interface, &of_driver(&interface)));
    }
    for (device, path) in entries(infiniband) {
        for (port, path) in entries(&path.join("ports")) {
            for kind in ["counters", "hw_counters"] {
                for (counter, path) in entries(&path.join(kind)) {
                    note(&mut counters, &format!("{device}/{port}"), &counter, &path);
                }
            }
        }
    }
    counters
}

/// The counters in lines such as `     rx_pause: 12`.
fn driver_counters(interface: &str, lines: &str) -> Counters {
    let counter = |line: &str| {
        let (name, value) = line.trim().rsplit_once(": ")?;
        let is_read = OF_DRIVER.iter().any(|part| name.contains(part)) && !OF_NETWORK.contains(&name);
        is_read.then_some((format!("{interface} {name}"), value.parse().ok()?))
    };
    lines.lines().filter_map(counter).collect()
}

fn note(counters: &mut Counters, of: &str, counter: &str, path: &Path) {
    let value = fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
    counters.extend(value.map(|value| (format!("{of} {counter}"), value)));
}

/// Names and paths of what is in a folder; nothing if there is none.
fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect()
}

/// Growth of the counters; those that did not grow are left out.
pub(crate) fn growth(before: &Counters, after: &Counters) -> Counters {
    let grown = after.iter().filter_map(|(name, &now)| {
        let grown = now.checked_sub(before.get(name).copied().unwrap_or(0)).filter(|&grown| grown > 0)?;
        Some((name.clone(), grown))
    });
    grown.collect()
}

/// The counters among these of lost or damaged packets.
pub(crate) fn losses(growth: &Counters) -> impl Iterator<Item = (&str, u64)> {
    let is_loss =
        |name: &str| ["error", "drop", "discard", "retrans", "out_of_sequence"].iter().any(|it| name.contains(it));
    growth.iter().filter(move |(name, _)| is_loss(name)).map(|(name, &count)| (name.as_str(), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_and_ports_are_read_from_the_system() {
        let folder = std::env::temp_dir().join(format!("evb-counters-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("net/eth0/statistics/rx_dropped", "3\n");
        write("net/eth0/statistics/collisions", "9\n");
        write("ib/mlx5_0/ports/1/counters/port_rcv_errors", "4\n");
        write("ib/mlx5_0/ports/1/hw_counters/lifespan", "no number\n");
        let of_driver = |interface: &str| match interface {
            "eth0" => "NIC statistics:\n     rx_dropped: 3\n     rx_pause: 7\n     rx_queue_0_bytes: 9\n".to_owned(),
            _ => String::new(),
        };
        let counters = read_at(&folder.join("net"), &folder.join("ib"), &of_driver);
        let expected = [("eth0 rx_dropped", 3), ("eth0 rx_pause", 7), ("mlx5_0/1 port_rcv_errors", 4)];
        assert_eq!(counters, expected.map(|(name, value)| (name.to_owned(), value)).into());
        assert!(read_at(&folder.join("none"), &folder.join("none"), &of_driver).is_empty());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn grown_counters_of_losses_are_found() {
        let counters =
            |values: &[(&str, u64)]| values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let before: Counters = counters(&[("a rx_packets", 5), ("a rx_dropped", 1), ("b tx_errors", 2)]);
        let after = counters(&[("a rx_packets", 9), ("a rx_dropped", 4), ("b tx_errors", 2), ("c rx_dropped", 1)]);
        let grown = growth(&before, &after);
        assert_eq!(grown, counters(&[("a rx_packets", 4), ("a rx_dropped", 3), ("c rx_dropped", 1)]));
        assert_eq!(losses(&grown).collect::<Vec<_>>(), [("a rx_dropped", 3), ("c rx_dropped", 1)]);
    }
}
