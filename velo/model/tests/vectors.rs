//! The test vectors of the hardware, replayed on the model: the committed text must say what the model does.

use evb_velo::{AddressMap, Answer, Completer, Fault, Packet, Recombiner, Requester};
use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    path::Path,
};

/// A line: its number, its name, and its arguments.
struct Statement<'a> {
    line: usize,
    name: &'a str,
    words: Vec<&'a str>,
}

impl Statement<'_> {
    fn numbers(&self) -> Result<Vec<u64>, String> {
        let number = |word: &&str| u64::from_str_radix(word, 16).map_err(|error| self.error(&error.to_string()));
        self.words.iter().map(number).collect()
    }

    fn error(&self, what: &str) -> String {
        format!("line {}, `{}`: {what}", self.line, self.name)
    }

    fn compare<T: PartialEq + std::fmt::Debug>(&self, found: T, said: T) -> Result<(), String> {
        if found == said { Ok(()) } else { Err(self.error(&format!("the model has {found:x?}, the file {said:x?}"))) }
    }
}

/// The statements of a text, and its map.
fn parse(text: &str) -> Result<(AddressMap, VecDeque<Statement<'_>>), String> {
    let lines = text.lines().zip(1..).map(|(line, number)| (line.split('#').next().unwrap_or_default(), number));
    let mut statements: VecDeque<_> = lines
        .filter_map(|(line, number)| {
            let mut words = line.split_whitespace();
            Some(Statement { line: number, name: words.next()?, words: words.collect() })
        })
        .collect();
    let first = statements.pop_front().filter(|first| first.name == "map").ok_or("no map")?;
    let [n, t] = first.numbers()?[..] else { return Err(first.error("two numbers")) };
    let map = AddressMap::new(n as u32, t as u32).map_err(|error| first.error(&error.to_string()))?;
    Ok((map, statements))
}

fn node(statements: &mut VecDeque<Statement<'_>>) -> Result<u64, String> {
    let node = statements.pop_front().filter(|node| node.name == "node").ok_or("no node")?;
    Ok(node.numbers()?[0])
}

fn replay_requester(text: &str) -> Result<(), String> {
    let (map, mut statements) = parse(text)?;
    let requester = Requester::new(map, node(&mut statements)?);
    while let Some(store) = statements.pop_front() {
        store.compare(store.name, "store")?;
        let answer = statements.pop_front().ok_or_else(|| store.error("nothing follows"))?;
        match requester.post(&store.numbers()?) {
            Ok(packet) => {
                answer.compare("send", answer.name)?;
                answer.compare(packet.words(map).expect("its own map"), answer.numbers()?)?;
            }
            Err(_) => answer.compare("bad", answer.name)?,
        }
    }
    Ok(())
}

/// The completer, and the rings of the table: address and slots.
struct Unit<'a> {
    completer: Completer,
    map: AddressMap,
    rings: BTreeMap<u64, (u64, u64)>,
    held: Option<Vec<u64>>,
    statements: VecDeque<Statement<'a>>,
}

fn replay_completer(text: &str) -> Result<(), String> {
    let (map, mut statements) = parse(text)?;
    let completer = Completer::new(map, node(&mut statements)?);
    let mut unit = Unit { completer, map, rings: BTreeMap::new(), held: None, statements };
    while let Some(statement) = unit.statements.pop_front() {
        unit.act(&statement)?;
    }
    Ok(())
}

impl Unit<'_> {
    fn act(&mut self, statement: &Statement<'_>) -> Result<(), String> {
        let numbers = statement.numbers()?;
        match (statement.name, &numbers[..]) {
            ("table", &[thread, entry]) => self.set_table(thread, entry),
            ("head", &[thread, head]) => {
                self.completer.set_head(thread, head);
                return self.held.take().map_or(Ok(()), |words| self.deliver(statement, words));
            }
            ("tail", &[thread, tail]) => return statement.compare(self.completer.tail(thread), tail),
            ("count", &[register, count]) => return statement.compare(self.count(register), count),
            ("packet", _) if self.held.is_none() => return self.deliver(statement, numbers),
            _ => return Err(statement.error("out of place")),
        }
        Ok(())
    }

    fn set_table(&mut self, thread: u64, entry: u64) {
        let (page, slots) = (entry & 0xfff_ffff, 32 * ((entry >> 28 & 0x7f) + 1));
        if entry >> 35 == 1 {
            assert!(self.completer.open(thread, slots as usize));
            self.rings.insert(thread, (page << 12, slots));
        } else {
            self.completer.close(thread);
        }
    }

    fn count(&self, register: u64) -> u64 {
        let faults = self.completer.faults();
        [0, 0, self.completer.received(), 0, faults.node, faults.closed, faults.data][register as usize]
    }

    /// Passes a packet to the completer and compares the result with the lines below.
    fn deliver(&mut self, statement: &Statement<'_>, words: Vec<u64>) -> Result<(), String> {
        let header = *words.first().ok_or_else(|| statement.error("no words"))?;
        let thread = header >> 18 & (self.map.threads_per_node() - 1);
        let tail = self.completer.tail(thread);
        let answer = self.completer.accept_words(&words);
        if answer == Answer::Delivered {
            return self.compare_writes(&words, thread, tail);
        }
        let text = match answer {
            Answer::Delivered | Answer::Full => "full",
            Answer::Dropped(Fault::Node) => "drop node",
            Answer::Dropped(Fault::Closed) => "drop closed",
            Answer::Dropped(Fault::Data) => "drop data",
        };
        let said = self.statements.pop_front().ok_or_else(|| statement.error("nothing follows"))?;
        said.compare(text, [&[said.name], &said.words[..]].concat().join(" ").as_str())?;
        self.held = (answer == Answer::Full).then_some(words);
        Ok(())
    }

    fn compare_writes(&mut self, words: &[u64], thread: u64, tail: u64) -> Result<(), String> {
        let (base, slots) = self.rings[&thread];
        let slot = base + tail % slots * 128;
        let first = slot + 8 + (words[0] & 0x38);
        let data = words[1..].iter().zip(0..).map(|(&word, index)| vec![first + 8 * index, word]);
        for expected in data.chain([vec![slot, words[0]]]) {
            let write = self.statements.pop_front().ok_or("the file ends before the writes")?;
            write.compare("write", write.name)?;
            write.compare(expected, write.numbers()?)?;
        }
        Ok(())
    }
}

/// Packets and messages from a sender at a receiver, each given as node and thread.
#[derive(Default)]
struct Arrivals {
    slots: BTreeMap<[u64; 3], VecDeque<Vec<u64>>>,
    takes: BTreeMap<[u64; 3], VecDeque<String>>,
}

fn replay_traffic(text: &str) -> Result<(), String> {
    let (map, statements) = parse(text)?;
    let mut completers = [0, 1].map(|node| Completer::new(map, node));
    let (mut recombiners, mut arrivals) = (BTreeMap::new(), Arrivals::default());
    for statement in &statements {
        match (statement.name, &statement.words[..]) {
            ("open", _) => {
                let numbers = statement.numbers()?;
                assert!(completers[numbers[0] as usize].open(numbers[1], 32 * numbers[2] as usize));
            }
            ("store", _) => {
                let packet = post(statement, map)?;
                let (node, thread) = (packet.header.target.node, packet.header.target.thread);
                statement.compare(completers[node as usize].accept(&packet), Answer::Delivered)?;
                let packet = completers[node as usize].take(thread).expect("it was delivered");
                arrivals.add(&packet, recombiners.entry((node, thread)).or_default(), map);
            }
            ("slot", _) => arrivals.compare_slot(statement)?,
            ("take", &[_, _, _, bytes]) => arrivals.compare_take(statement, bytes)?,
            _ => return Err(statement.error("out of place")),
        }
    }
    let left = arrivals.slots.values().map(VecDeque::len).sum::<usize>()
        + arrivals.takes.values().map(VecDeque::len).sum::<usize>();
    if left == 0 { Ok(()) } else { Err(format!("{left} packets and messages of the model are not in the file")) }
}

fn post(statement: &Statement<'_>, map: AddressMap) -> Result<Packet, String> {
    let numbers = statement.numbers()?;
    Requester::new(map, numbers[0]).post(&numbers[1..]).map_err(|error| statement.error(&error.to_string()))
}

impl Arrivals {
    fn add(&mut self, packet: &Packet, recombiner: &mut Recombiner, map: AddressMap) {
        let target = packet.header.target;
        let key = [target.node, target.thread, packet.header.source.bits(map)];
        self.slots.entry(key).or_default().push_back(packet.words(map).expect("its own map"));
        if let Some(entry) = recombiner.accept(packet) {
            let bytes = entry.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            self.takes.entry(key).or_default().push_back(bytes);
        }
    }

    fn compare_slot(&mut self, statement: &Statement<'_>) -> Result<(), String> {
        let numbers = statement.numbers()?;
        let key = [numbers[0], numbers[1], numbers[2] >> 40 & 0x3f_ffff];
        let found = self.slots.get_mut(&key).and_then(VecDeque::pop_front);
        statement.compare(found.as_deref(), Some(&numbers[2..]))
    }

    fn compare_take(&mut self, statement: &Statement<'_>, bytes: &str) -> Result<(), String> {
        let number = |word: &&str| u64::from_str_radix(word, 16).expect("hexadecimal");
        let key: Vec<_> = statement.words[..3].iter().map(number).collect();
        let found = self.takes.get_mut(&key[..]).and_then(VecDeque::pop_front);
        statement.compare(found.as_deref(), Some(bytes))
    }
}

type Replay = fn(&str) -> Result<(), String>;

/// Each file, its replay, and the lines with expected results.
const FILES: [(&str, Replay, &[&str]); 3] = [
    ("requester.vec", replay_requester, &["send", "bad"]),
    ("completer.vec", replay_completer, &["write", "drop", "full", "tail", "count"]),
    ("traffic.vec", replay_traffic, &["slot", "take"]),
];

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../velo/hardware/vectors").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_model_does_what_the_vectors_say() {
    for (name, replay, expected) in FILES {
        let text = read(name);
        replay(&text).unwrap_or_else(|error| panic!("{name}, {error}"));
        for kind in expected {
            assert!(text.lines().any(|line| line.split(' ').next() == Some(kind)), "{name} has no `{kind}`");
        }
    }
}

/// Changes the last character of some of these lines, one at a time.
#[test]
fn a_wrong_line_is_noticed() {
    for (name, replay, expected) in FILES {
        let text = read(name);
        let lines: Vec<_> = text.lines().collect();
        let is_expected = |at: &usize| lines[*at].split(' ').next().is_some_and(|kind| expected.contains(&kind));
        let places = (0..lines.len()).filter(is_expected).step_by(97);
        for at in places.chain((0..lines.len()).filter(|&at| lines[at] == "full")) {
            let line = lines[at];
            let digit = if line.ends_with('0') { "1" } else { "0" };
            let changed = format!("{}{digit}", &line[..line.len() - 1]);
            let text = [&lines[..at], &[&changed], &lines[at + 1..]].concat().join("\n");
            assert!(replay(&text).is_err(), "{name}, line {}: `{changed}` for `{line}`", at + 1);
        }
    }
}
