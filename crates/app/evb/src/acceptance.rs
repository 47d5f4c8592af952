//! The acceptance of a fabric: limits that each link must keep.

use evb_core::{Bandwidth, Span};
use evb_record::{LinkVerdict, PairOfNodes, Qualification, Times};
use serde::Deserialize;

/// Limits from a file. What is not given is not limited.
///
/// # Example
/// ```
/// let limits = evb::Acceptance::parse("half_round_trip = \"20 us\"\nbandwidth = \"1 GB/s\"")?;
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// Longest half of the median round trip of a link.
    half_round_trip: Option<Span>,
    /// Longest half of a single round trip.
    longest_half_round_trip: Option<Span>,
    /// Least throughput of a link, in each direction.
    bandwidth: Option<Bandwidth>,
    /// Least throughput in the slowest tenth of the measured time.
    least_bandwidth: Option<Bandwidth>,
    /// Most links that were slower than the others until they were measured alone.
    disturbed_links: Option<u64>,
    /// Most packets that the network interfaces lost or found damaged, in all.
    interface_losses: Option<u64>,
}

impl Acceptance {
    /// Reads limits in the format TOML.
    ///
    /// # Errors
    /// The text is not such a file; the error has the place and the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())
    }

    /// The limits that a fabric does not keep, as text with the worst link of each.
    #[must_use]
    pub fn violations(&self, record: &Qualification) -> Vec<String> {
        let time = |limit: Option<Span>| limit.map(|limit| limit.0 as f64 * 1e-3);
        let rate = |limit: Option<Bandwidth>| limit.map(Bandwidth::as_bytes_per_second);
        let slower = |of: fn(&PairOfNodes) -> [f64; 2]| move |link: &PairOfNodes| of(link)[0].min(of(link)[1]);
        let links = |key: &str, limit: Option<f64>, sign: f64, unit: (&str, f64), of: &dyn Fn(&PairOfNodes) -> f64| {
            let limit = limit?;
            let excess = |link: &PairOfNodes| match sign * (of(link) - limit) {
                excess if excess.is_nan() => f64::INFINITY,
                excess => excess,
            };
            let outside: Vec<_> = record.links.iter().filter(|link| excess(link) > 0.0).collect();
            let worst = outside.iter().max_by(|one, other| excess(one).total_cmp(&excess(other)))?;
            let [first, second] = worst.nodes.map(|node| record.name(node));
            let ((name, scale), count) = (unit, outside.len());
            let value = match excess(worst) {
                f64::INFINITY => "no result".into(),
                _ => format!("{:.3} {name}", of(worst) * scale),
            };
            Some(format!(
                "{key}: {count} of {} links; {first} - {second} has {value}, the limit is {:.3} {name}",
                record.links.len(),
                limit * scale
            ))
        };
        let (us, mb) = (("us", 1e-3), ("MB/s", 1e-6));
        let time_of = |link: &PairOfNodes, of: fn(&Times) -> f64| match &link.half_round_trip_ns {
            Times { samples: 0, .. } => f64::NAN,
            times => of(times),
        };
        let p50 = |link: &PairOfNodes| time_of(link, |times| times.p50);
        let max = |link: &PairOfNodes| time_of(link, |times| times.max);
        let of_links = [
            links("half_round_trip", time(self.half_round_trip), 1.0, us, &p50),
            links("longest_half_round_trip", time(self.longest_half_round_trip), 1.0, us, &max),
            links("bandwidth", rate(self.bandwidth), -1.0, mb, &slower(|link| link.bytes_per_s)),
            links("least_bandwidth", rate(self.least_bandwidth), -1.0, mb, &slower(|link| link.least_bytes_per_s)),
        ];
        let disturbed = record.with(LinkVerdict::Disturbed).count() as u64;
        let losses = evb_bench::interface_losses(record);
        let count = |key: &str, limit: Option<u64>, value: u64| {
            limit.filter(|&limit| value > limit).map(|limit| format!("{key}: {value}, the limit is {limit}"))
        };
        let counts = [
            count("disturbed_links", self.disturbed_links, disturbed),
            count("interface_losses", self.interface_losses, losses),
        ];
        of_links.into_iter().chain(counts).flatten().collect()
    }

    /// Puts the limits that are not kept into the record, which is not good then.
    pub fn judge(&self, record: &mut Qualification) {
        record.not_accepted = self.violations(record);
        record.good &= record.not_accepted.is_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_record::{LinkSpeed, RecordKind};

    fn record() -> Qualification {
        let link = |nodes, p50, bytes_per_s| PairOfNodes {
            nodes,
            half_round_trip_ns: Times { p50, max: 10.0 * p50, samples: 1, ..Times::default() },
            least_round_trips_per_s: 1.0,
            bytes_per_s,
            least_bytes_per_s: bytes_per_s,
            verdict: LinkVerdict::Good,
            slower: Some(1.0),
            alone: Vec::new(),
            lost: 0,
        };
        Qualification {
            kind: RecordKind::Qualification,
            experiment: "bench".into(),
            seed: 1,
            version: "0".into(),
            pattern: "all-pairs".into(),
            transport: "tcp".into(),
            nodes: 3,
            hosts: Vec::new(),
            size_bytes: 64,
            bulk_bytes: 65536,
            rounds: 3,
            seconds: 1.0,
            usual: LinkSpeed::default(),
            usual_alone: None,
            links: vec![link([0, 1], 4e3, [2e9, 3e9]), link([0, 2], 9e3, [2e9, 9e8]), link([1, 2], 5e3, [2e9, 2e9])],
            counters: vec![[("eth0 rx_dropped".to_owned(), 2), ("eth0 rx_packets".to_owned(), 9)].into()],
            not_accepted: Vec::new(),
            notes: Vec::new(),
            good: true,
        }
    }

    fn violations(text: &str) -> Vec<String> {
        Acceptance::parse(text).unwrap().violations(&record())
    }

    #[test]
    fn the_worst_link_of_each_limit_is_named() {
        assert_eq!(
            violations("half_round_trip = \"4.5 us\""),
            ["half_round_trip: 2 of 3 links; n0 - n2 has 9.000 us, the limit is 4.500 us"]
        );
        assert_eq!(
            violations("bandwidth = \"1 GB/s\"\nleast_bandwidth = \"8 Gbit/s\""),
            ["bandwidth", "least_bandwidth"]
                .map(|key| format!("{key}: 1 of 3 links; n0 - n2 has 900.000 MB/s, the limit is 1000.000 MB/s"))
        );
        assert_eq!(violations("interface_losses = 1"), ["interface_losses: 2, the limit is 1"]);
        assert!(violations("half_round_trip = \"9 us\"\ninterface_losses = 2\ndisturbed_links = 0").is_empty());
    }

    #[test]
    fn a_link_without_a_result_keeps_no_limit() {
        let mut silent = record();
        silent.links[0].bytes_per_s = [f64::NAN; 2];
        silent.links[0].half_round_trip_ns = Times::default();
        let limits = Acceptance::parse("bandwidth = \"1 MB/s\"\nhalf_round_trip = \"1 s\"").unwrap();
        limits.judge(&mut silent);
        let expected = |key, limit| format!("{key}: 1 of 3 links; n0 - n1 has no result, the limit is {limit}");
        let expected = [expected("half_round_trip", "1000000.000 us"), expected("bandwidth", "1.000 MB/s")];
        assert!(!silent.good && silent.not_accepted == expected, "{:?}", silent.not_accepted);
    }

    #[test]
    fn a_wrong_file_is_rejected() {
        let error = Acceptance::parse("bandwith = \"1 GB/s\"").unwrap_err();
        assert!(error.contains("unknown field `bandwith`") && error.contains("half_round_trip"), "{error}");
        assert!(Acceptance::parse("bandwidth = 3").is_err() && Acceptance::parse("bandwidth = \"3 us\"").is_err());
    }
}
