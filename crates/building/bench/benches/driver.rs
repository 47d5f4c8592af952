//! Cost of the benchmark driver by itself: a layer takes everything and delivers as much as is requested, so that only
//! the machine, the data and the account are left. The printed times are a lower bound for every layer.

use evb_bench::{Benchmark, Measurement, Setting, Wait, measure, suite::DEFAULT_GATHERS};
use evb_core::{NodeId, Span};
use evb_transport::{MessageLayer, Refused, Take};
use std::{sync::atomic::AtomicBool, time::Duration};

/// The kinds of messages, as on the wire: the low byte of the first word.
const READY: u8 = 5;
const END: u8 = 6;
const DONE: u8 = 7;

/// The other node: it is ready, answers or takes each message, and ends with its peer.
struct EchoLayer {
    answers: bool,
    to_give: Vec<Vec<u8>>,
    sent: u64,
}

impl MessageLayer for EchoLayer {
    fn local(&self) -> NodeId {
        NodeId(0)
    }

    fn max_bytes(&self) -> usize {
        1 << 20
    }

    fn send(&mut self, _to: NodeId, bytes: &[u8]) -> Result<(), Refused> {
        match bytes[0] {
            READY | DONE => self.to_give.push(bytes.to_vec()),
            END => self.to_give.push(u64::to_le_bytes(self.sent << 8 | u64::from(END)).to_vec()),
            _ if self.answers => {
                self.sent += 1;
                self.to_give.push(bytes.to_vec());
            }
            _ => {}
        }
        Ok(())
    }

    fn flush(&mut self) -> bool {
        true
    }

    fn receive(&mut self, _limit: usize, take: &mut Take<'_>) -> usize {
        let count = self.to_give.len();
        self.to_give.drain(..).for_each(|bytes| take(NodeId(1), &bytes));
        count
    }

    fn wait(&mut self, _timeout: Duration) {}
}

fn main() {
    for benchmark in [Benchmark::OneWay, Benchmark::PingPong] {
        for size in [8, 64, 1024] {
            let measurement = Measurement {
                benchmark,
                nodes: 2,
                size,
                compute: Span::ZERO,
                window: 1,
                rate: None,
                warmup: Span::from_millis(10),
                duration: Span::from_millis(200),
                wait: Wait::Spin,
                gathers: DEFAULT_GATHERS,
                to: Vec::new(),
                seed: 1,
            };
            let answers = benchmark == Benchmark::PingPong;
            let mut layer = EchoLayer { answers, to_give: Vec::new(), sent: 0 };
            let setting = Setting { epoch_ns: 0, shares_process: true, shares_cores: false };
            let result = measure(&mut layer, &measurement.work(), setting, &AtomicBool::new(false))
                .expect("the layer never fails");
            let messages = if answers { result.messages } else { result.sent };
            println!(
                "{:10} {size:5} B  {:6.1} ns of processor time a message",
                benchmark.name(),
                result.cpu_seconds * 1e9 / messages as f64
            );
        }
    }
}
