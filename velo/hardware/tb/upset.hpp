// Errors on the wires of a link, and the wires as bytes: `LINK` data wires, and one that marks the beginning of a frame.
#pragma once

#include "random.hpp"
#include <array>
#include <cstring>
#include <deque>
#include <vector>

#ifndef LINK
#define LINK 16
#endif

namespace bench {

constexpr unsigned FRAME_CYCLES = 96 / LINK;
constexpr unsigned LINK_BYTES = LINK / 8;
constexpr unsigned FRAME_BYTES = 12;

// Data wires first, then the mark. The models keep the bits of a port in this order, too: the machine is little-endian.
using LinkWires = std::array<uint8_t, LINK_BYTES + 1>;

// Turns bits at random. A CRC of 16 bits would let one of 65536 destroyed frames pass. Nobody could tell that from a fault of
// the hardware, so one more bit is turned in such a frame.
class Upset {
 public:
  // `rate`: chance of an error in a frame's time, from 0 to 1.
  Upset(double rate, uint64_t seed) : rate_(rate), random_(seed) {}

  // What to turn in this cycle, on wires that carry `sent`.
  LinkWires flips(const LinkWires &sent) {
    if (rate_ == 0) return {};
    if (plan_.empty() && random_.chance(rate_ / FRAME_CYCLES)) begin();
    LinkWires now{};
    if (!plan_.empty()) {
      now = plan_.front();
      plan_.pop_front();
    }
    if (escapes(sent, now)) now[0] ^= 1;
    return now;
  }

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

  // Whether a frame ends in this cycle, as the receiver sees it, that was changed and looks intact.
  bool escapes(const LinkWires &sent, const LinkWires &flips) {
    if ((sent[LINK_BYTES] ^ flips[LINK_BYTES]) & 1) {
      frame_.clear();
      changed_ = false;
    }
    if (frame_.size() == FRAME_BYTES) return false;
    for (unsigned byte = 0; byte < LINK_BYTES; byte++) frame_.push_back(sent[byte] ^ flips[byte]);
    changed_ |= flips != LinkWires{};
    return frame_.size() == FRAME_BYTES && changed_ && is_intact();
  }

  // CRC-16/CCITT over the bits before it, the lowest first.
  bool is_intact() const {
    auto bit = [this](unsigned index) { return frame_[index / 8] >> index % 8 & 1u; };
    unsigned crc = 0xffff, there = 0;
    for (unsigned index = 0; index < 80; index++) crc = (crc << 1 ^ ((crc >> 15 ^ bit(index)) & 1 ? 0x1021 : 0)) & 0xffff;
    for (unsigned index = 0; index < 16; index++) there |= bit(80 + index) << index;
    return crc == there;
  }

  void turn(unsigned bit) { plan_[bit / LINK][bit % LINK / 8] ^= 1u << bit % 8; }

  double rate_;
  velo::Random random_;
  std::deque<LinkWires> plan_;
  // The frame that the receiver collects; full before the first.
  std::vector<uint8_t> frame_ = std::vector<uint8_t>(FRAME_BYTES);
  bool changed_ = false;
  uint64_t count_ = 0;
};

} // namespace bench
