//! Cost of the machines alone: events built by all nodes of an event builder on one thread, without bytes, transport or
//! clock. One element is one fragment. This is the floor for every driver, the simulator's too.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use evb_core::{ByteCount, EventId, Machine, NodeId, SourceId, Time};
use evb_protocol::*;

fn config(units: u16, protocol: Protocol) -> Config {
    Config {
        protocol,
        buffer_events: 128 * u32::from(units),
        buffer_bytes: ByteCount(1 << 30),
        ..Config::new(units, units)
    }
}

struct Builder {
    config: Config,
    manager: ManagerMachine<()>,
    readouts: Vec<ReadoutMachine<()>>,
    builders: Vec<BuilderMachine<()>>,
}

impl Builder {
    fn new(config: Config) -> Self {
        let mut all = Self {
            manager: ManagerMachine::new(config.clone()),
            readouts: (0..config.readout_units)
                .map(|unit| ReadoutMachine::new(config.clone(), SourceId(unit), None))
                .collect(),
            builders: (0..config.builder_units).map(|index| BuilderMachine::new(config.clone(), index)).collect(),
            config,
        };
        all.manager.handle_command(Time::ZERO, ManagerCommand::Start);
        for readout in &mut all.readouts {
            readout.handle_command(Time::ZERO, ReadoutCommand::Start { through: EventId(u64::MAX), last: true });
        }
        all.builders.iter_mut().for_each(|builder| builder.handle_command(Time::ZERO, BuilderCommand::Start));
        all
    }

    fn deliver(&mut self, from: NodeId, to: NodeId, message: Message<()>) {
        let builders = self.config.builder_nodes();
        match to {
            Config::EVENT_MANAGER => self.manager.handle_message(Time::ZERO, from, message),
            to if builders.contains(to) => {
                self.builders[usize::from(to.0 - builders.first.0)].handle_message(Time::ZERO, from, message);
            }
            to => self.readouts[usize::from(to.0 - 1)].handle_message(Time::ZERO, from, message),
        }
    }

    fn round(&mut self) -> u64 {
        let mut ended = 0;
        while let Some(transmit) = self.manager.poll_transmit() {
            for to in transmit.to.iter() {
                self.deliver(Config::EVENT_MANAGER, to, transmit.message.clone());
            }
        }
        while self.manager.poll_event().is_some() {
            ended += 1;
        }
        for unit in 0..self.readouts.len() {
            self.read(unit);
        }
        for unit in 0..self.builders.len() {
            let from = NodeId(self.config.builder_nodes().first.0 + unit as u16);
            while let Some(BuilderEvent::Built(built)) = self.builders[unit].poll_event() {
                self.builders[unit].handle_command(Time::ZERO, BuilderCommand::Stored(built));
            }
            while let Some(transmit) = self.builders[unit].poll_transmit() {
                for to in transmit.to.iter() {
                    self.deliver(from, to, transmit.message.clone());
                }
            }
        }
        ended
    }

    fn read(&mut self, unit: usize) {
        let (from, source) = (NodeId(1 + unit as u16), SourceId(unit as u16));
        while let Some(event) = self.readouts[unit].poll_event() {
            if let ReadoutEvent::Read { event, .. } = event {
                let status = FragmentStatus::Good;
                let fragment = Fragment {
                    event,
                    source,
                    length: 2048,
                    checksum: 0,
                    mark: None,
                    counter: None,
                    status,
                    payload: (),
                };
                self.readouts[unit].handle_command(Time::ZERO, ReadoutCommand::Fragment(fragment));
            }
        }
        while let Some(transmit) = self.readouts[unit].poll_transmit() {
            self.deliver(from, transmit.to.first, transmit.message);
        }
    }
}

fn benches(criterion: &mut Criterion) {
    for (name, units, protocol) in [
        ("push, 2 x 2", 2, Protocol::Push),
        ("pull, 2 x 2", 2, Protocol::Pull),
        ("push, 64 x 64", 64, Protocol::Push),
        ("pull, 64 x 64", 64, Protocol::Pull),
    ] {
        let mut group = criterion.benchmark_group("machines");
        group.throughput(Throughput::Elements(units.into())).sample_size(20);
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|events| {
                let mut all = Builder::new(config(units, protocol));
                let (start, mut ended) = (std::time::Instant::now(), 0);
                while ended < events {
                    ended += all.round();
                }
                start.elapsed().mul_f64(events as f64 / ended as f64)
            });
        });
        group.finish();
    }
}

criterion_group!(machines, benches);
criterion_main!(machines);
