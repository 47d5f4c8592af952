// Bench of velo_link: two ends, random packets both ways, errors on the wires, receivers that stall; latency and throughput.
#include "Vvelo_link_pair.h"
#include "streams.hpp"
#include "upset.hpp"

namespace {

using namespace bench;

// One direction: what goes in, what must come out, and the errors on the way.
class Direction {
 public:
  Direction(Wires in, Wires out, double rate, uint64_t seed)
      : upset(rate, seed), random_(seed), in_(in, random_), out_(out, random_) {}

  void stall(double in, double out) {
    in_.stall = in;
    out_.stall = out;
  }

  void push(const Words &packet) {
    in_.push(packet);
    for (size_t index = 0; index < packet.size(); index++) {
      expected_.push_back({packet[index], index + 1 == packet.size()});
    }
  }

  bool done() const { return expected_.empty(); }

  void drive() {
    in_.drive();
    out_.drive();
  }

  // True when a word moved.
  bool move() {
    Word word;
    bool in = in_.taken(), out = out_.take(word);
    if (in && !first_in) first_in = cycle();
    if (!out) return in;
    if (!first_out) first_out = cycle();
    last_out = cycle();
    demand(!expected_.empty(), "word " + velo::hex(word.data) + " came and was not sent, or came twice");
    same(word.data, expected_.front().data, "the next word");
    same(word.last, expected_.front().last, "`last` of the next word");
    expected_.pop_front();
    return true;
  }

  Upset upset;
  uint64_t first_in = 0, first_out = 0, last_out = 0;

 private:
  Random random_;
  Source in_;
  Sink out_;
  std::deque<Word> expected_;
};

class Pair {
 public:
  Pair(double rate, uint64_t seed)
      : dut_(seed),
        ab({dut_->a_in_valid, dut_->a_in_ready, dut_->a_in_data, dut_->a_in_last},
           {dut_->b_out_valid, dut_->b_out_ready, dut_->b_out_data, dut_->b_out_last}, rate, seed + 1),
        ba({dut_->b_in_valid, dut_->b_in_ready, dut_->b_in_data, dut_->b_in_last},
           {dut_->a_out_valid, dut_->a_out_ready, dut_->a_out_data, dut_->a_out_last}, rate, seed + 2) {
    memset(&dut_->flip_ab, 0, sizeof dut_->flip_ab);
    memset(&dut_->flip_ba, 0, sizeof dut_->flip_ba);
    dut_.reset();
    for (int i = 0; i < 10; i++) step();
  }

 private:
  Clocked<Vvelo_link_pair> dut_;

 public:
  Direction ab, ba;
  uint64_t errors = 0, repeats = 0;

  // True when a word moved.
  bool step() {
    ab.drive();
    ba.drive();
    flip(dut_->wires_ab, dut_->flip_ab, ab.upset);
    flip(dut_->wires_ba, dut_->flip_ba, ba.upset);
    dut_.settle();
    bool moved = ab.move();
    moved |= ba.move();
    errors += dut_->a_error + dut_->b_error;
    repeats += dut_->a_again + dut_->b_again;
    dut_.tick();
    cycle()++;
    return moved;
  }

  // Until all words have come, and a little longer.
  void drain() {
    Watchdog watchdog(20000);
    while (!ab.done() || !ba.done()) {
      if (step()) watchdog.moved();
      watchdog.check();
    }
    for (int i = 0; i < 500; i++) demand(!step(), "a word that nobody sent");
  }

 private:
  template <class Port> static void flip(const Port &wires, Port &port, Upset &upset) {
    LinkWires sent;
    memcpy(sent.data(), &wires, sent.size());
    LinkWires flips = upset.flips(sent);
    memcpy(&port, flips.data(), flips.size());
  }
};

Words random_packet(Random &random) {
  Words packet(random.between(1, 9));
  for (auto &word : packet) word = random.word();
  return packet;
}

// `count` packets each way, in bursts, with stalls that change.
void random_packets(double rate, double stall, unsigned count, uint64_t seed) {
  statement() = "packets with errors in " + std::to_string(rate * 100) + " % of frames, receivers stall " +
                std::to_string(stall * 100) + " % of cycles";
  Pair pair(rate, seed);
  Random random(seed + 3);
  Watchdog watchdog(20000);
  for (unsigned number = 0; number < count; number++) {
    if (number % 100 == 0) {
      // Now and then one end takes nothing for longer than all buffers.
      bool long_stall = random.below(4) == 0;
      pair.ab.stall(random.below(2) * stall, long_stall ? 1 : stall);
      pair.ba.stall(random.below(2) * stall, stall);
      if (long_stall) {
        for (int i = 0; i < 400; i++) pair.step();
        pair.ab.stall(0, stall);
      }
    }
    pair.ab.push(random_packet(random));
    pair.ba.push(random_packet(random));
    for (unsigned pause = random.below(8) ? 0 : random.below(200); pause; pause--) pair.step();
  }
  pair.drain();
  uint64_t upsets = pair.ab.upset.count() + pair.ba.upset.count();
  if (rate == 0) demand(!pair.errors && !pair.repeats, "errors or repetitions on a link without errors");
  else demand(pair.errors && pair.repeats, std::to_string(upsets) + " errors on the wires and none was counted");
}

std::string name(const char *what) { return std::string(what) + ", " + std::to_string(LINK) + " wires"; }

void measure() {
  statement() = "measurement";
  Pair one(0, 0);
  one.ab.push({1, 2});
  one.drain();
  measured("link", name("latency of a word"), "cycles", one.ab.first_out - one.ab.first_in);
  const unsigned packets = 200, words = 9;
  for (bool both : {false, true}) {
    Pair many(0, 0);
    for (unsigned number = 0; number < packets; number++) {
      many.ab.push(Words(words, number));
      if (both) many.ba.push(Words(words, number));
    }
    many.drain();
    double cycles = many.ab.last_out - many.ab.first_out;
    const char *what = both ? "cycles per word, both ways" : "cycles per word, one way";
    measured("link", name(what), "cycles", cycles / (packets * words - 1));
  }
}

} // namespace

int main(int count, char **words) {
  return run("link", count, words, [](const Options &options) {
    unsigned packets = options.count ? options.count : 10000;
    uint64_t seed = options.seed;
    for (double rate : {0.0, 0.01, 0.1, 0.4}) {
      if (options.errors >= 0) rate = options.errors / 100;
      random_packets(rate, 0, packets, seed++);
      random_packets(rate, 0.6, packets, seed++);
    }
    measure();
  });
}
