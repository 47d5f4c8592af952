// Bench of velo_crossbar: several inputs to several outputs, whole packets, in order, nothing lost, each input in its turn.
#include "Vvelo_crossbar.h"
#include "bench.hpp"
#include <deque>

#ifndef PORTS
#define PORTS 3
#endif

namespace {

using namespace bench;

constexpr unsigned PORT_BITS = PORTS > 2 ? (PORTS > 4 ? 3 : 2) : 1;

// A word says where it comes from and goes to: packet number, place and number of words, input, output.
struct Word {
  unsigned packet, place, words, input, output;

  uint64_t bits() const {
    return uint64_t{packet} << 32 | place << 24 | words << 16 | input << 8 | output;
  }
  static Word of(uint64_t bits) {
    return {static_cast<unsigned>(bits >> 32), static_cast<unsigned>(bits >> 24) & 255,
            static_cast<unsigned>(bits >> 16) & 255, static_cast<unsigned>(bits >> 8) & 255,
            static_cast<unsigned>(bits) & 255};
  }
  bool last() const { return place + 1 == words; }
};

class Crossbar {
 public:
  Crossbar(uint64_t seed, double stall_in, double stall_out)
      : random_(seed), dut_(seed), stall_in_(stall_in), stall_out_(stall_out) {
    dut_.reset();
  }

  void push(unsigned input, unsigned output, unsigned words) {
    unsigned packet = pushed_[input][output]++;
    for (unsigned place = 0; place < words; place++) queues_[input].push_back({packet, place, words, input, output});
  }

  // Packets that an output has got from an input.
  unsigned got(unsigned input, unsigned output) const { return got_[input][output]; }

  // True when a word moved.
  bool step() {
    for (unsigned input = 0; input < PORTS; input++) drive(input);
    uint32_t ready = 0;
    for (unsigned output = 0; output < PORTS; output++) ready |= uint32_t{!random_.chance(stall_out_)} << output;
    dut_->out_ready = ready;
    dut_.settle();
    bool moved = false;
    for (unsigned port = 0; port < PORTS; port++) {
      if (offers_[port] && dut_->in_ready >> port & 1) {
        if (queues_[port].front().place == 0) entered = cycle();
        queues_[port].pop_front();
        offers_[port] = false;
        moved = true;
      }
      if (dut_->out_valid >> port & ready >> port & 1) {
        take(port, Word::of(word(port)), dut_->out_last >> port & 1);
        moved = true;
      }
    }
    dut_.tick();
    cycle()++;
    return moved;
  }

  void drain() {
    Watchdog watchdog(1000);
    while (waiting()) {
      if (step()) watchdog.moved();
      watchdog.check();
    }
    for (int i = 0; i < 100; i++) step();
    for (unsigned input = 0; input < PORTS; input++) {
      for (unsigned output = 0; output < PORTS; output++) same(got_[input][output], pushed_[input][output], "packets");
    }
  }

  // Clock cycles in which a header last entered and left.
  uint64_t entered = 0, left = 0;

 private:
  bool waiting() const {
    for (auto &queue : queues_) {
      if (!queue.empty()) return true;
    }
    return false;
  }

  void drive(unsigned input) {
    auto &queue = queues_[input];
    offers_[input] = offers_[input] || (!queue.empty() && !random_.chance(stall_in_));
    Word word = offers_[input] ? queue.front() : Word::of(random_.word());
    uint32_t mask = 1u << input, low = input * PORT_BITS;
    // The port counts with the header only.
    uint32_t port = offers_[input] && word.place == 0 ? word.output : random_.below(PORTS);
    dut_->in_valid = (dut_->in_valid & ~mask) | offers_[input] << input;
    dut_->in_last = (dut_->in_last & ~mask) | word.last() << input;
    dut_->in_port = (dut_->in_port & ~(((1u << PORT_BITS) - 1) << low)) | port << low;
    uint64_t bits = word.bits();
    dut_->in_data[2 * input] = bits;
    dut_->in_data[2 * input + 1] = bits >> 32;
  }

  uint64_t word(unsigned output) {
    return uint64_t{dut_->out_data[2 * output + 1]} << 32 | dut_->out_data[2 * output];
  }

  void take(unsigned output, Word word, bool last) {
    std::string from = "output " + std::to_string(output) + ", word " + velo::hex(word.bits());
    same(word.output, output, from + ": the output");
    same(last, word.last(), from + ": `last`");
    if (word.place == 0) {
      demand(!open_[output], from + ": a packet begins within another");
      left = cycle();
    } else {
      same(word.input, current_[output].input, from + ": the input that has the output");
    }
    same(word.packet, got_[word.input][output], from + ": the number of the packet");
    same(word.place, open_[output] ? current_[output].place + 1 : 0, from + ": the place in the packet");
    current_[output] = word;
    open_[output] = !last;
    if (last) got_[word.input][output]++;
  }

  Random random_;
  Clocked<Vvelo_crossbar> dut_;
  double stall_in_, stall_out_;
  std::deque<Word> queues_[PORTS];
  bool offers_[PORTS]{}, open_[PORTS]{};
  Word current_[PORTS]{};
  unsigned pushed_[PORTS][PORTS]{}, got_[PORTS][PORTS]{};
};

void random_packets(uint64_t seed, double in, double out, unsigned count) {
  statement() = "random packets";
  Random random(seed);
  Crossbar crossbar(seed, in, out);
  for (unsigned number = 0; number < count; number++) {
    crossbar.push(random.below(PORTS), random.below(PORTS), random.between(1, 9));
    for (unsigned steps = random.below(8); steps; steps--) crossbar.step();
  }
  crossbar.drain();
}

// All inputs want one output: none gets more than one packet more than another.
void fairness(uint64_t seed) {
  for (unsigned output = 0; output < PORTS; output++) {
    statement() = "all inputs to output " + std::to_string(output);
    Crossbar crossbar(seed, 0, 0.3);
    for (unsigned number = 0; number < 100; number++) {
      for (unsigned input = 0; input < PORTS; input++) crossbar.push(input, output, 1 + (number + input) % 9);
    }
    for (unsigned step = 0; step < 500; step++) {
      crossbar.step();
      for (unsigned input = 1; input < PORTS; input++) {
        int ahead = int(crossbar.got(input, output)) - int(crossbar.got(0, output));
        demand(ahead >= -1 && ahead <= 1, "input " + std::to_string(input) + " is not in its turn");
      }
    }
    crossbar.drain();
  }
}

} // namespace

int main(int count, char **words) {
  return run("crossbar", count, words, [](const Options &options) {
    unsigned packets = options.count ? options.count : 50000;
    random_packets(options.seed, 0, 0, packets);
    random_packets(options.seed + 1, 0.5, 0, packets);
    random_packets(options.seed + 2, 0.2, 0.5, packets);
    fairness(options.seed);
    statement() = "measurement";
    Crossbar crossbar(0, 0, 0);
    crossbar.push(0, 1, 2);
    crossbar.drain();
    measured("crossbar", "latency, header", "cycles", crossbar.left - crossbar.entered);
  });
}
