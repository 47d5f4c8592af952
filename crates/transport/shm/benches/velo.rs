//! Shared memory against the caches of two cores: half round trips against a ping-pong of bare cache lines,
//! measured before and after, and message rates from one sender and from many into one mailbox.
//!
//! Processes are pinned: the receiver to the first processor that this process may use, senders to the second. Ratios
//! count, since a machine that others use is slower for both.

#[cfg(target_os = "linux")]
mod bench {
    use evb_core::NodeId;
    use evb_transport::{EndpointOptions, MessageLayer, Refused, Token};
    use evb_transport_shm::{Shm, ShmOptions};
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use std::{
        array, env,
        hint::{black_box, spin_loop},
        process::{Child, Command},
        sync::{
            Arc, OnceLock,
            atomic::{AtomicU64, Ordering},
        },
        thread,
        time::{Duration, Instant},
    };

    const ROLE: &str = "EVB_BENCH_ROLE";
    const TOKEN: Token = Token::new([0x5a; Token::BYTES]);
    /// Round trips that are timed together, so that the clock costs little.
    const TOGETHER: usize = 16;
    const SAMPLES: usize = 20_000;
    const LARGEST: usize = 64;
    const RATE_MESSAGES: u64 = 10_000_000;
    const FLUSH_EVERY: u64 = 32;
    /// Messages over which a rate is measured: few enough that other processes leave some windows alone.
    const WINDOW: u64 = 50_000;
    /// Attempts of a sender without room before it sleeps.
    const SPINS: u32 = 2000;

    /// Orders to a child process, in one variable.
    struct BenchRole {
        address: String,
        node: u16,
        nodes: u16,
        bytes: usize,
        /// Number of messages to send; 0 to return all messages.
        count: u64,
        processor: usize,
    }

    impl BenchRole {
        fn spawn(&self) -> Child {
            let BenchRole { address, node, nodes, bytes, count, processor } = self;
            let mut command = Command::new(env::current_exe().expect("this program"));
            command.env(ROLE, format!("{address} {node} {nodes} {bytes} {count} {processor}"));
            command.spawn().expect("a child")
        }

        fn read(text: &str) -> Self {
            let words: Vec<_> = text.split(' ').collect();
            let number = |index: usize| words[index].parse().expect("a number");
            let (node, nodes) = (number(1) as u16, number(2) as u16);
            let (bytes, count, processor) = (number(3) as usize, number(4), number(5) as usize);
            Self { address: words[0].into(), node, nodes, bytes, count, processor }
        }

        fn play(&self) {
            pin_to(self.processor);
            let mut node = open(self.node, self.nodes);
            node.connect(&[(NodeId(0), self.address.clone())]).expect("node 0");
            if self.count == 0 { echo(&mut node) } else { send_all(&mut node, self.bytes, self.count) }
        }
    }

    /// The processors that this process could use at its start.
    static ALLOWED: OnceLock<Vec<usize>> = OnceLock::new();

    /// Pins this thread to the n-th processor that it may use.
    fn pin(n: usize) {
        pin_to(ALLOWED.get_or_init(allowed)[n]);
    }

    fn pin_to(processor: usize) {
        let mut set = CpuSet::new();
        set.set(processor);
        sched_setaffinity(None, &set).expect("a processor");
    }

    fn allowed() -> Vec<usize> {
        let set = sched_getaffinity(None).expect("processors");
        (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
    }

    fn second() -> usize {
        ALLOWED.get_or_init(allowed)[1]
    }

    fn open(node: u16, nodes: u16) -> Shm {
        Shm::bind(NodeId(node), ShmOptions::new(EndpointOptions::new(nodes, TOKEN))).expect("an endpoint")
    }

    fn echo(node: &mut Shm) {
        let (mut bytes, mut length) = ([0; LARGEST], 0);
        loop {
            let count = MessageLayer::receive(node, 1, &mut |_, message| {
                length = message.len();
                bytes[..length].copy_from_slice(message);
            });
            if count > 0 {
                MessageLayer::send(node, NodeId(0), &bytes[..length]).expect("room");
                MessageLayer::flush(node);
            } else if MessageLayer::lost(node).is_some() {
                return;
            }
        }
    }

    fn send_all(node: &mut Shm, bytes: usize, count: u64) {
        let message = [7; LARGEST];
        for number in 0..count {
            let mut tries = 0;
            while let Err(refused) = MessageLayer::send(node, NodeId(0), &message[..bytes]) {
                assert_eq!(refused, Refused::Full);
                tries += 1;
                if tries % SPINS == 0 {
                    MessageLayer::flush(node);
                    MessageLayer::wait(node, Duration::from_millis(100));
                }
            }
            if number % FLUSH_EVERY == 0 {
                MessageLayer::flush(node);
            }
        }
        MessageLayer::flush(node);
        // Stays until node 0 leaves.
        while MessageLayer::lost(node).is_none() {
            MessageLayer::receive(node, 1, &mut |_, _| {});
            MessageLayer::wait(node, Duration::from_millis(100));
        }
    }

    #[repr(align(128))]
    #[derive(Default)]
    struct CacheLine([AtomicU64; 8]);

    /// Half round trips of bare cache lines in ns: a flag each way, and with `payload` a full line that is written
    /// before it.
    fn limit(payload: bool) -> Vec<f64> {
        let lines: Arc<[CacheLine; 4]> = Arc::new(array::from_fn(|_| CacheLine::default()));
        let theirs = Arc::clone(&lines);
        let rounds = (SAMPLES * TOGETHER) as u64;
        let other = thread::spawn(move || {
            pin(1);
            (1..=rounds).for_each(|round| {
                take(&theirs[0], payload.then_some(&theirs[1]), round);
                give(&theirs[2], payload.then_some(&theirs[3]), round);
            });
        });
        let mut round = 0;
        let samples = sample(|| {
            round += 1;
            give(&lines[0], payload.then_some(&lines[1]), round);
            take(&lines[2], payload.then_some(&lines[3]), round);
        });
        other.join().expect("the other thread");
        samples
    }

    fn give(flag: &CacheLine, payload: Option<&CacheLine>, round: u64) {
        payload.iter().flat_map(|line| &line.0).for_each(|word| word.store(round, Ordering::Relaxed));
        flag.0[0].store(round, Ordering::Release);
    }

    fn take(flag: &CacheLine, payload: Option<&CacheLine>, round: u64) {
        while flag.0[0].load(Ordering::Acquire) != round {
            spin_loop();
        }
        for word in payload.iter().flat_map(|line| &line.0) {
            black_box(word.load(Ordering::Relaxed));
        }
    }

    /// Sorted half round trips in ns.
    fn sample(mut round_trip: impl FnMut()) -> Vec<f64> {
        let mut samples: Vec<_> = (0..SAMPLES)
            .map(|_| {
                let start = Instant::now();
                (0..TOGETHER).for_each(|_| round_trip());
                start.elapsed().as_nanos() as f64 / (2 * TOGETHER) as f64
            })
            .collect();
        samples.sort_by(f64::total_cmp);
        samples
    }

    fn quantiles(samples: &[f64]) -> [f64; 3] {
        [0.1, 0.5, 0.99].map(|part| samples[(part * (samples.len() - 1) as f64) as usize])
    }

    fn latency(bytes: usize) -> Vec<f64> {
        let mut node = open(0, 2);
        let role = BenchRole {
            address: evb_transport::Connect::address(&node),
            node: 1,
            nodes: 2,
            bytes,
            count: 0,
            processor: second(),
        };
        let mut child = role.spawn();
        node.connect(&[(NodeId(1), "-".into())]).expect("node 1");
        let message = [3; LARGEST];
        let samples = sample(|| {
            MessageLayer::send(&mut node, NodeId(1), &message[..bytes]).expect("room");
            MessageLayer::flush(&mut node);
            while MessageLayer::receive(&mut node, 1, &mut |_, bytes| _ = black_box(bytes)) == 0 {}
        });
        drop(node);
        child.wait().expect("the child ends");
        samples
    }

    fn report_latency(bytes: usize, payload: bool) {
        let before = quantiles(&limit(payload));
        let ours = quantiles(&latency(bytes));
        let after = quantiles(&limit(payload));
        let bare = (before[1] + after[1]) / 2.0;
        println!(
            "half round trip of {bytes:2} B: p10 {:.0}, p50 {:.0}, p99 {:.0} ns; lines alone {:.0} ns before, {:.0} after: ratio {:.2}",
            ours[0],
            ours[1],
            ours[2],
            before[1],
            after[1],
            ours[1] / bare
        );
    }

    fn report_rate(senders: u16, bytes: usize) {
        let mut node = open(0, senders + 1);
        let count = RATE_MESSAGES / u64::from(senders);
        let address = evb_transport::Connect::address(&node);
        let spawn = |sender| {
            BenchRole { address: address.clone(), node: sender, nodes: senders + 1, bytes, count, processor: second() }
                .spawn()
        };
        let children: Vec<_> = (1..=senders).map(spawn).collect();
        let peers: Vec<_> = (1..=senders).map(|sender| (NodeId(sender), "-".into())).collect();
        node.connect(&peers).expect("all senders");
        let total = count * u64::from(senders);
        let (start, mut last, mut gap, mut received) = (Instant::now(), Instant::now(), Duration::ZERO, 0);
        let (mut windows, mut window) = (Vec::new(), (start, 0));
        while received < total {
            let some = MessageLayer::receive(&mut node, 256, &mut |_, bytes| _ = black_box(bytes)) as u64;
            if some > 0 {
                received += some;
                let now = Instant::now();
                gap = gap.max(now - last);
                last = now;
                if received - window.1 >= WINDOW {
                    windows.push((received - window.1) as f64 / (now - window.0).as_secs_f64() / 1e6);
                    window = (now, received);
                }
            }
        }
        windows.sort_by(f64::total_cmp);
        let [low, median, high] = [1, 5, 9].map(|tenth| windows[windows.len() * tenth / 10]);
        let rate = total as f64 / start.elapsed().as_secs_f64();
        println!(
            "{senders:2} senders of {bytes:2} B: {:.1} million messages per second; windows p10 {:.1}, p50 {:.1}, p90 {:.1}; \
             longest gap {:.1} ms",
            rate / 1e6,
            low,
            median,
            high,
            gap.as_secs_f64() * 1e3
        );
        drop(node);
        children.into_iter().for_each(|mut child| _ = child.wait().expect("a child ends"));
    }

    pub(super) fn main() {
        if let Ok(role) = env::var(ROLE) {
            return BenchRole::read(&role).play();
        }
        if ALLOWED.get_or_init(allowed).len() < 2 {
            return println!("two processors are needed");
        }
        let main = thread::spawn(|| {
            pin(0);
            let only = env::args().skip(1).find(|word| !word.starts_with('-'));
            let wanted = |name: &str| only.as_ref().is_none_or(|only| name.contains(only.as_str()));
            for _ in 0..3 {
                if wanted("latency") {
                    report_latency(8, false);
                    report_latency(64, true);
                }
                if wanted("rate") {
                    [8, 32, 64].into_iter().for_each(|bytes| report_rate(1, bytes));
                }
                if wanted("mailbox") {
                    [2, 8, 64].into_iter().for_each(|senders| report_rate(senders, 8));
                    report_rate(64, 64);
                }
            }
        });
        main.join().expect("the benchmark");
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    bench::main();
}
