// Errors on the wires of a link, and the wires as bytes: `LINK` data wires, and one that marks the beginning of a frame.
#pragma once

#include "random.hpp"
#include <array>
#include <cstring>
#include <deque>

#ifndef LINK
#define LINK 16
#endif

namespace bench {

constexpr unsigned FRAME_CYCLES = 96 / LINK;
constexpr unsigned LINK_BYTES = LINK / 8;

// Data wires first, then the mark. The models keep the bits of a port in this order, too, as the machine is little-endian.
using LinkWires = std::array<uint8_t, LINK_BYTES + 1>;

// Turns bits at random. At most one error begins within two frames' time, so no frame sees two. Errors of few bits and short
// bursts are always seen by the CRC; a frame that is destroyed or cut by a false mark escapes it once in 65536.
class Upset {
 public:
  // `rate`: chance of an error in a frame's time, from 0 to 1.
  Upset(double rate, uint64_t seed) : rate_(rate), random_(seed) {}

  // Bits to turn in this cycle.
  LinkWires flips() {
    if (plan_.empty() && rate_ > 0 && random_.chance(rate_ / FRAME_CYCLES)) begin();
    if (plan_.empty()) return {};
    LinkWires now = plan_.front();
    plan_.pop_front();
    return now;
  }

  void stop() { rate_ = 0; }

  // Errors that have begun.
  uint64_t count() const { return count_; }

 private:
  void begin() {
    count_++;
    plan_.assign(2 * FRAME_CYCLES, LinkWires{});
    switch (random_.below(4)) {
    case 0:
      for (unsigned bits = random_.between(1, 3); bits; bits--) turn(random_.below(96));
      break;
    case 1:
      burst(random_.below(81), random_.between(2, 16));
      break;
    case 2:
      plan_[0][LINK_BYTES] = 1;
      break;
    default:
      for (unsigned bit = 0; bit < 96; bit++) {
        if (random_.below(2)) turn(bit);
      }
    }
  }

  void burst(unsigned first, unsigned length) {
    turn(first);
    for (unsigned bit = 1; bit + 1 < length; bit++) {
      if (random_.below(2)) turn(first + bit);
    }
    turn(first + length - 1);
  }

  void turn(unsigned bit) { plan_[bit / LINK][bit % LINK / 8] ^= 1u << bit % 8; }

  double rate_;
  velo::Random random_;
  std::deque<LinkWires> plan_;
  uint64_t count_ = 0;
};

} // namespace bench
