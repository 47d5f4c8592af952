// Bench of velo_completer and velo_register_file: the vectors, random packets into mailboxes of all sizes, back-pressure;
// latency and throughput.
#include "completion.hpp"
#include "mailboxes.hpp"
#include "vectors.hpp"

namespace {

using namespace bench;
using velo::Header;
using velo::Mailboxes;
using velo::Ring;

// A statement and what follows from it.
struct Group {
  Statement line;
  std::string place;
  std::vector<Write> writes;
  bool full = false;
};

std::vector<Group> read_groups(const Options &options) {
  Vectors vectors(options.vectors, "completer.vec", MAP);
  std::vector<Group> groups;
  for (Statement line; vectors.next(line);) {
    if (line.name == "write") groups.back().writes.push_back({line.number(0), line.number(1)});
    else if (line.name == "full") groups.back().full = true;
    else if (line.name != "drop") groups.push_back({line, statement(), {}, false});
  }
  return groups;
}

// Each write of the vectors must come, in order, and no other. What is dropped shows in the counters that they read.
class Replay {
 public:
  Replay(uint64_t seed, double in, double out) : dut_(seed, in, out) {
    dut_.on_write = [this](const Write &write) {
      demand(!expected_.empty(), "write to " + velo::hex(write.address) + " that follows from nothing");
      same(write.address, expected_.front().address, "the address of the next write");
      same(write.data, expected_.front().data, "the write to " + velo::hex(write.address));
      expected_.pop_front();
    };
  }

  void run(const std::vector<Group> &groups) {
    for (const Group &group : groups) {
      bool packet = group.line.name == "packet";
      if (!packet) finish();
      statement() = group.place;
      expected_.insert(expected_.end(), group.writes.begin(), group.writes.end());
      if (packet) dut_.push(group.line.numbers(0));
      else set(group.line);
      if (group.full) finish();
    }
    finish();
  }

 private:
  void finish() {
    dut_.rest();
    demand(expected_.empty(), std::to_string(expected_.size()) + " writes are missing");
  }

  void set(const Statement &line) {
    if (line.name == "node") dut_.write_register(velo::CONTROL, velo::NODE, line.number(0));
    else if (line.name == "table") dut_.write_register(velo::TABLE, line.number(0), line.number(1));
    else if (line.name == "head") dut_.write_register(velo::HEAD, line.number(0), line.number(1));
    else if (line.name == "tail") same(dut_.read_register(velo::TAIL, line.number(0)), line.number(1), "TAIL");
    else if (line.name == "count") same(dut_.read_register(velo::CONTROL, line.number(0)), line.number(1), "counter");
    else throw Violation("no such statement");
  }

  Completion dut_;
  std::deque<Write> expected_;
};

constexpr unsigned NODE = 1, THREADS = 8;

// Mailboxes of all sizes, packets good and bad, and software that takes what comes.
class Traffic {
 public:
  Traffic(uint64_t seed, double in, double out) : random_(seed), dut_(seed, in, out) {
    dut_.on_write = [this](const Write &write) { boxes_.write(write.address, write.data); };
    dut_.write_register(velo::CONTROL, velo::NODE, NODE);
    for (unsigned thread = 0; thread < THREADS; thread++) open(thread);
  }

  void run(unsigned count) {
    for (unsigned number = 0; number < count; number++) {
      statement() = "random packet " + std::to_string(number);
      send();
      while (dut_.waiting() > 100) software();
      if (number % 1000 == 999) reopen(random_.below(THREADS));
    }
    finish();
    check_counters();
  }

 private:
  // Rings of 1 to 128 pages, at all places that such a ring may have.
  void open(unsigned thread) {
    unsigned pages = 1u << (thread < 3 ? thread : random_.below(8));
    uint64_t page = (random_.below(1u << 18) * THREADS + thread) << 7;
    Ring ring{page | random_.below(128 / pages) * pages, pages - 1};
    boxes_.open(thread, ring, dut_.open(thread, ring));
  }

  // A mailbox is closed when nothing is on its way to it: what comes then is dropped.
  void reopen(unsigned thread) {
    finish();
    dut_.write_register(velo::TABLE, thread, 0);
    boxes_.close(thread);
    for (int i = 0; i < 3; i++) {
      push(header(thread));
      faults_[1]++;
    }
    dut_.rest();
    open(thread);
  }

  Header header(unsigned thread) {
    Header header{{random_.below(1u << MAP.node_bits()), random_.below(MAP.threads())}, {NODE, thread}, 0, 0, 0};
    header.length = random_.between(1, velo::LINE_BYTES);
    header.offset = random_.below(4) ? 0 : random_.below(header.length);
    header.data = random_.below(4) ? header.length - header.offset : random_.between(1, header.length - header.offset);
    return header;
  }

  Words push(const Header &header, uint64_t spoil = 0) {
    std::vector<uint8_t> bytes(header.data);
    for (auto &byte : bytes) byte = random_.word();
    Words words = velo::lanes(bytes.data(), header.offset, header.data);
    words.insert(words.begin(), velo::encode(MAP, header) ^ spoil);
    dut_.push(words);
    return words;
  }

  void send() {
    // Most go to the smallest rings, so that these are full often and their counts wrap.
    Header good = header(random_.below(4) ? random_.below(2) : random_.below(THREADS));
    switch (random_.below(16)) {
    case 0:
      good.target.node ^= 1u << random_.below(velo::ENDPOINT_BITS - MAP.thread_bits());
      // Node comes before all else.
      if (random_.below(2)) good.target.thread = THREADS;
      push(good, random_.below(2) ? 1ull << 62 : 0);
      faults_[0]++;
      break;
    case 1:
      good.target.thread = random_.between(THREADS, MAP.threads() - 1);
      push(good, random_.below(2) ? 1ull << 63 : 0);
      faults_[1]++;
      break;
    case 2:
      push(good, random_.between(1, 3) * (1ull << 62));
      faults_[2]++;
      break;
    case 3:
      good.data = good.length - good.offset + random_.between(1, 8);
      if (good.data > velo::LINE_BYTES) good.data = velo::LINE_BYTES, good.length = 1, good.offset = 1;
      push(good);
      faults_[2]++;
      break;
    default:
      expected_[good.target.thread].push_back(push(good));
      received_++;
    }
  }

  // One cycle of clock and software: it takes a while, then much at once.
  void software() {
    bool moved = dut_.step();
    for (unsigned thread = 0; thread < THREADS; thread++) {
      if (random_.chance(busy_)) continue;
      while (take(thread)) moved = true;
      dut_.write_register(velo::HEAD, thread, boxes_.give_back(thread));
    }
    if (moved) watchdog_.moved();
    watchdog_.check();
  }

  bool take(unsigned thread) {
    auto packet = boxes_.take(thread);
    if (!packet) return false;
    auto &queue = expected_[thread];
    demand(!queue.empty(), "a packet that nobody sent is in mailbox " + std::to_string(thread));
    same(packet->header, queue.front()[0], "the next header in mailbox " + std::to_string(thread));
    unsigned first = velo::decode(MAP, packet->header).offset / velo::WORD_BYTES;
    for (size_t word = 1; word < queue.front().size(); word++) {
      same(packet->words[first + word - 1], queue.front()[word], "word " + std::to_string(word));
    }
    queue.pop_front();
    return true;
  }

  void finish() {
    auto missing = [this] {
      for (auto &queue : expected_) {
        if (!queue.empty()) return true;
      }
      return dut_.waiting() > 0;
    };
    while (missing()) software();
    dut_.rest();
  }

  void check_counters() {
    statement() = "counters";
    same(dut_.read_register(velo::CONTROL, velo::RECEIVED), received_, "RECEIVED");
    same(dut_.read_register(velo::CONTROL, velo::FAULT_NODE), faults_[0] & 0xffff, "FAULT_NODE");
    same(dut_.read_register(velo::CONTROL, velo::FAULT_CLOSED), faults_[1] & 0xffff, "FAULT_CLOSED");
    same(dut_.read_register(velo::CONTROL, velo::FAULT_DATA), faults_[2] & 0xffff, "FAULT_DATA");
  }

  Random random_;
  Completion dut_;
  Mailboxes boxes_{MAP};
  std::deque<Words> expected_[THREADS];
  unsigned faults_[3]{}, received_ = 0;
  double busy_ = 0.998;
  Watchdog watchdog_{20000};
};

Words message(unsigned thread, unsigned length) {
  Header header{{1, 2}, {NODE, thread}, length, 0, length};
  Words words((length + 7) / 8, 0x5a);
  words.insert(words.begin(), velo::encode(MAP, header));
  return words;
}

// A full mailbox stops its packet and all behind it, and nothing else comes of it; a slot that is given back lets one go.
void back_pressure(uint64_t seed) {
  statement() = "back-pressure";
  Completion dut(seed, 0, 0);
  Mailboxes boxes(MAP);
  unsigned headers = 0;
  dut.on_write = [&](const Write &write) { headers += boxes.write(write.address, write.data); };
  dut.write_register(velo::CONTROL, velo::NODE, NODE);
  const Ring rings[]{{0, 0}, {128, 0}};
  for (unsigned thread : {0, 1}) boxes.open(thread, rings[thread], dut.open(thread, rings[thread]));
  const unsigned slots = velo::PAGE_SLOTS, more = 5;
  for (unsigned number = 0; number < slots + more; number++) dut.push(message(0, 64));
  dut.push(message(1, 8));
  dut.rest(1000);
  same(headers, slots, "messages in a ring that is full");
  for (unsigned freed = 1; freed <= more; freed++) {
    demand(boxes.take(0).has_value(), "a message is missing");
    dut.write_register(velo::HEAD, 0, boxes.give_back(0));
    dut.rest(200);
    same(headers, slots + freed + (freed == more), "messages after a slot was given back");
  }
  demand(boxes.take(1).has_value(), "the other thread has not got its message");
  demand(dut.waiting() == 0, "packets are still waiting");
}

void measure(unsigned length, unsigned count) {
  statement() = "measurement";
  Completion dut(0, 0, 0);
  dut.on_write = [](const Write &) {};
  dut.write_register(velo::CONTROL, velo::NODE, NODE);
  dut.open(0, {0, 127});
  dut.restart();
  for (unsigned number = 0; number < count; number++) dut.push(message(0, length));
  dut.rest();
  std::string size = std::to_string(length) + " B";
  if (count == 1) {
    measured("completion", "latency, header in to first write, " + size, "cycles", dut.first_out - dut.first_in);
    measured("completion", "latency, last in to header written, " + size, "cycles", dut.last_out - dut.last_in);
  } else {
    double cycles = dut.last_out - dut.first_out + 1;
    measured("completion", "cycles per message, " + size, "cycles", cycles / count);
  }
}

} // namespace

int main(int count, char **words) {
  return run("completion", count, words, [](const Options &options) {
    auto groups = options.vectors.empty() ? std::vector<Group>{} : read_groups(options);
    for (auto stall : {std::make_pair(0.0, 0.0), std::make_pair(0.0, 0.6), std::make_pair(0.6, 0.2)}) {
      Replay(options.seed, stall.first, stall.second).run(groups);
      Traffic(options.seed, stall.first, stall.second).run(options.count ? options.count : 50000);
    }
    back_pressure(options.seed);
    for (unsigned length : {8, 64}) {
      measure(length, 1);
      measure(length, 1000);
    }
  });
}
