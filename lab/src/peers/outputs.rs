//! Output of the tools, and the numbers in it: times in nanoseconds, rates per second.

use serde_json::Value;

/// `ucx_perftest -f`: the last line has the iterations, then median, average and overall time in microseconds, average and
/// overall bandwidth, and average and overall messages per second.
pub(super) fn ucx(text: &str) -> Result<UcxResult, String> {
    let lines = text.lines().rev().map(numbers);
    let found = lines.into_iter().find_map(|numbers| <[f64; 8]>::try_from(numbers).ok());
    let [_, median_us, .., messages_per_s] = found.ok_or_else(|| not_understood("ucx_perftest", text))?;
    Ok(UcxResult { median_ns: median_us * 1e3, messages_per_s })
}

#[derive(Debug, PartialEq)]
pub(super) struct UcxResult {
    pub(super) median_ns: f64,
    /// Rate of the whole run.
    pub(super) messages_per_s: f64,
}

/// `fi_pingpong`: the last line has bytes, messages sent and acknowledged, bytes in all, time, MB/s, microseconds of one way, and
/// messages per microsecond.
pub(super) fn fi_pingpong(text: &str) -> Result<f64, String> {
    let words: Vec<_> = text.lines().next_back().unwrap_or_default().split_whitespace().collect();
    let us: Option<f64> = if words.len() == 8 { words[6].parse().ok() } else { None };
    us.map(|us| us * 1e3).ok_or_else(|| not_understood("fi_pingpong", text))
}

/// `NPtcp`: a line for each size, `N: BYTES bytes TIMES times --> RATE Mbps in TIME usec`, of which the time is one way.
pub(super) fn netpipe(text: &str, bytes: u32) -> Result<f64, String> {
    let us = text.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            [_, size, "bytes", .., "in", us, "usec"] if size.parse() == Ok(bytes) => us.parse::<f64>().ok(),
            _ => None,
        }
    });
    us.map(|us| us * 1e3).ok_or_else(|| not_understood("NPtcp", text))
}

/// The loops in C over MPI and over TCP: lines of size, median and minimum in nanoseconds.
pub(super) fn sizes_loop(text: &str, bytes: u32) -> Result<f64, String> {
    let found = text.lines().map(numbers).find_map(|numbers| match numbers[..] {
        [size, median, _] if size == f64::from(bytes) => Some(median),
        _ => None,
    });
    found.ok_or_else(|| not_understood("the C loop", text))
}

/// The loop in C over libfabric: a line of the mean and the median in nanoseconds.
pub(super) fn libfabric_loop(text: &str) -> Result<f64, String> {
    match numbers(text.trim())[..] {
        [_, median] => Ok(median),
        _ => Err(not_understood("the C loop", text)),
    }
}

/// The fragments per second of the event builder in plain C, which must find all of them right.
pub(super) fn event_building(text: &str) -> Result<f64, String> {
    let record = record(text).ok_or_else(|| not_understood("the event builder in C", text))?;
    match (record["wrong"].as_u64(), record["fragments_per_s"].as_f64()) {
        (Some(0), Some(rate)) => Ok(rate),
        (Some(wrong), _) => Err(format!("the event builder in C found {wrong} wrong words")),
        _ => Err(not_understood("the event builder in C", text)),
    }
}

/// A line that is a number.
pub(super) fn one_number(text: &str) -> Result<f64, String> {
    text.trim().parse().map_err(|_| not_understood("the program", text))
}

/// True if a process listens on a port, by the kernel's table of TCP sockets (`/proc/net/tcp`): the second column is
/// `ADDRESS:PORT` in hexadecimal digits, the fourth is the state, and 0A is to listen.
pub(super) fn listens(table: &str, port: u16) -> bool {
    let port = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.nth(1).is_some_and(|local| local.ends_with(&port)) && words.nth(1) == Some("0A")
    })
}

/// The last line that is an object.
fn record(text: &str) -> Option<Value> {
    text.lines().rev().find_map(|line| serde_json::from_str(line).ok().filter(Value::is_object))
}

/// All words of a line as numbers; empty if one is not a number.
fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace().map(str::parse).collect::<Result<_, _>>().unwrap_or_default()
}

fn not_understood(tool: &str, text: &str) -> String {
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing").trim();
    format!("the output of {tool} is not understood: {last}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const UCX: &str = "\
+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+
|     Test     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |
+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+
                      200000      0.250     0.300     0.320       25.43      23.84     3333333     3125000
";

    #[test]
    fn ucx_reports_median_and_rate() {
        assert_eq!(ucx(UCX), Ok(UcxResult { median_ns: 250.0, messages_per_s: 3_125_000.0 }));
        let error = ucx("[1700000000.1] ERROR no server\n").unwrap_err();
        assert_eq!(error, "the output of ucx_perftest is not understood: [1700000000.1] ERROR no server");
    }

    #[test]
    fn fi_pingpong_reports_one_way() {
        let text = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n\
                    64      10k     =10k     1.2m        0.02s     58.18       1.25       0.80\n";
        assert_eq!(fi_pingpong(text), Ok(1250.0));
        assert!(
            fi_pingpong("bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n").is_err()
        );
        assert!(fi_pingpong("").is_err());
    }

    #[test]
    fn netpipe_reports_each_size() {
        let text = "Now starting the main loop\n\
                    \x20 0:       8 bytes    900 times -->      6.10 Mbps in      10.50 usec\n\
                    \x20 1:      64 bytes   2000 times -->     44.39 Mbps in      11.00 usec\n";
        assert_eq!(netpipe(text, 8), Ok(10_500.0));
        assert_eq!(netpipe(text, 64), Ok(11_000.0));
        assert!(netpipe(text, 16).is_err());
    }

    #[test]
    fn loops_in_c_report_medians() {
        assert_eq!(sizes_loop("8 250.5 240.0\n64 300.0 290.1\n", 64), Ok(300.0));
        assert!(sizes_loop("8 250.5 240.0\n", 64).is_err());
        assert_eq!(libfabric_loop("700.5 650.0\n"), Ok(650.0));
        assert!(libfabric_loop("").is_err());
        assert_eq!(one_number("1500000\n"), Ok(1.5e6));
    }

    #[test]
    fn the_event_builder_in_c_must_be_right() {
        let line =
            |wrong: u32| format!("a warning\n{{\"fragments\":10,\"wrong\":{wrong},\"fragments_per_s\":500000}}\n");
        assert_eq!(event_building(&line(0)), Ok(5e5));
        assert_eq!(event_building(&line(2)), Err("the event builder in C found 2 wrong words".into()));
        assert!(event_building("no launcher\n").is_err());
    }

    #[test]
    fn listeners_are_distinguished_from_connections() {
        let table = "  sl  local_address rem_address   st tx_queue\n\
                     \x20  0: 0100007F:3419 00000000:0000 0A 00000000:00000000\n\
                     \x20  1: 0100007F:0050 0100007F:3420 01 00000000:00000000\n";
        assert!(listens(table, 13337));
        assert!(!listens(table, 80), "connected");
        assert!(!listens(table, 13344), "the other side");
    }
}
