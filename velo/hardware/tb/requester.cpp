// Bench of velo_requester: the vectors and random stores, with stalls on both sides; latency and throughput.
#include "Vvelo_requester.h"
#include "map.hpp"
#include "streams.hpp"
#include "vectors.hpp"

namespace {

using namespace bench;
using velo::Header;

// The packet that a store should become; none for a bad one.
struct Expected {
  std::string store;
  Words packet;
};

class Requester {
 public:
  Requester(uint64_t seed, double stall) : random_(seed), dut_(seed) {
    dut_.reset();
    in_.stall = out_.stall = stall;
  }

  void node(unsigned number) {
    drain();
    dut_->node = node_ = number;
  }

  unsigned node() const { return node_; }

  void store(const Words &words, Expected expected) {
    in_.push(words);
    expected_.push_back(std::move(expected));
  }

  // Runs until all stores that were given have become what they should, and nothing more comes.
  void drain() {
    Watchdog watchdog(1000);
    while (!in_.empty() || !expected_.empty()) {
      if (cycle_once()) watchdog.moved();
      watchdog.check();
    }
    for (int i = 0; i < 5; i++) demand(!cycle_once(), "a word that nobody sent");
  }

  // Clock cycles in which the first and last word came and went since `restart`.
  uint64_t first_in = 0, last_in = 0, first_out = 0, last_out = 0;

  void restart() { first_in = first_out = 0; }

 private:
  // True when a word moved.
  bool cycle_once() {
    in_.drive();
    out_.drive();
    dut_.settle();
    Word word;
    bool in = in_.taken(), out = out_.take(word);
    if (in) note(first_in, last_in);
    if (out) {
      note(first_out, last_out);
      check(word);
    }
    bad_ += dut_->bad;
    sent_ += dut_->sent;
    pass_bad();
    dut_.tick();
    cycle()++;
    return in || out;
  }

  static void note(uint64_t &first, uint64_t &last) {
    last = cycle();
    if (!first) first = last;
  }

  void check(const Word &word) {
    pass_bad();
    demand(!expected_.empty() && !expected_.front().packet.empty(), "word " + velo::hex(word.data) + " of no store");
    Expected &expected = expected_.front();
    statement() = expected.store;
    same(word.data, expected.packet[at_], "word " + std::to_string(at_));
    at_++;
    same(word.last, at_ == expected.packet.size(), "`last` of word " + std::to_string(at_ - 1));
    if (!word.last) return;
    at_ = 0;
    demand(sent_ > 0, "a packet left and `sent` was not there");
    sent_--;
    expected_.pop_front();
  }

  // Bad stores are done as soon as they have been counted.
  void pass_bad() {
    while (bad_ && at_ == 0 && !expected_.empty() && expected_.front().packet.empty()) {
      bad_--;
      expected_.pop_front();
    }
  }

  Random random_;
  Clocked<Vvelo_requester> dut_;
  Source in_{{dut_->in_valid, dut_->in_ready, dut_->in_data, dut_->in_last}, random_};
  Sink out_{{dut_->out_valid, dut_->out_ready, dut_->out_data, dut_->out_last}, random_};
  std::deque<Expected> expected_;
  unsigned node_ = 0, at_ = 0, bad_ = 0, sent_ = 0;
};

void replay(const Options &options, uint64_t seed, double stall) {
  Requester requester(seed, stall);
  Vectors vectors(options.vectors, "requester.vec", MAP);
  Words store;
  for (Statement line; vectors.next(line);) {
    if (line.name == "node") requester.node(line.number(0));
    else if (line.name == "store") store = line.numbers(0);
    else if (line.name == "send") requester.store(store, {statement(), line.numbers(0)});
    else if (line.name == "bad") requester.store(store, {statement(), {}});
    else throw Violation("no such statement");
  }
  requester.drain();
}

struct Store {
  Words words;
  Header header;
  bool good;
};

// A store to anywhere. One of eight is bad: its offset or data are behind the message, or its address behind all windows.
Store random_store(Random &random, unsigned node) {
  unsigned threads = MAP.threads();
  Header header{{node, random.below(threads)}, {random.below(1u << MAP.node_bits()), random.below(threads)}, 0, 0, 0};
  header.length = random.between(1, velo::LINE_BYTES);
  bool good = random.below(8) != 0;
  header.offset = random.below(good ? header.length : velo::LINE_BYTES);
  header.data = random.between(1, good ? header.length - header.offset : velo::LINE_BYTES - header.offset);
  uint64_t address = velo::address(MAP, header.source.thread, header.target, header.length, header.offset);
  unsigned windows = MAP.n + MAP.thread_bits();
  if (!good && random.below(2)) address |= 1ull << random.between(windows, velo::COMMAND_DATA_SHIFT - 1);
  std::vector<uint8_t> bytes(header.data);
  for (auto &byte : bytes) byte = random.word();
  Words words{velo::command(address, header.data)};
  Words data = velo::lanes(bytes.data(), header.offset, header.data, random.word());
  words.insert(words.end(), data.begin(), data.end());
  good = address >> windows == 0 && header.offset + header.data <= header.length;
  return {words, header, good};
}

Words packet(const Store &store) {
  Words words{velo::encode(MAP, store.header)};
  for (size_t index = 1; index < store.words.size(); index++) {
    words.push_back(store.words[index] & velo::data_mask(store.header.offset, store.header.data, index - 1));
  }
  return words;
}

void random_stores(uint64_t seed, double stall, unsigned count) {
  Requester requester(seed, stall);
  Random random(seed + 1);
  for (unsigned number = 0; number < count; number++) {
    if (number % 64 == 0) requester.node(random.below(1u << MAP.node_bits()));
    Store store = random_store(random, requester.node());
    Expected expected{"random store " + std::to_string(number), {}};
    if (store.good) expected.packet = packet(store);
    requester.store(store.words, expected);
  }
  requester.drain();
}

// `count` messages of `length` bytes without a pause.
void measure(unsigned length, unsigned count) {
  Requester requester(0, 0);
  requester.node(1);
  Store store{{}, {{1, 2}, {3, 4}, length, 0, length}, true};
  std::vector<uint8_t> bytes(length, 0x5a);
  store.words = velo::lanes(bytes.data(), 0, length);
  store.words.insert(store.words.begin(), velo::command(velo::address(MAP, 2, {3, 4}, length, 0), length));
  requester.restart();
  for (unsigned number = 0; number < count; number++) requester.store(store.words, {"measurement", packet(store)});
  requester.drain();
  std::string size = std::to_string(length) + " B";
  if (count == 1) {
    measured("requester", "latency, first word, " + size, "cycles", requester.first_out - requester.first_in);
    measured("requester", "latency, last word, " + size, "cycles", requester.last_out - requester.last_in);
  } else {
    double cycles = requester.last_out - requester.first_out + 1;
    measured("requester", "cycles per message, " + size, "cycles", cycles / count);
  }
}

} // namespace

int main(int count, char **words) {
  return run("requester", count, words, [](const Options &options) {
    for (double stall : {0.0, 0.2, 0.7}) {
      if (!options.vectors.empty()) replay(options, options.seed, stall);
      random_stores(options.seed, stall, options.count ? options.count : 50000);
    }
    for (unsigned length : {8, 64}) {
      measure(length, 1);
      measure(length, 1000);
    }
  });
}
