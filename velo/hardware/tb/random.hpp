// Random numbers that are the same on every machine: the distributions of the standard library are not.
#pragma once

#include <cstdint>
#include <random>

namespace velo {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  uint64_t word() { return engine_(); }
  // 0 to `end` - 1.
  unsigned below(unsigned end) { return engine_() % end; }
  // `first` to `last`.
  unsigned between(unsigned first, unsigned last) { return first + below(last - first + 1); }
  bool chance(double probability) { return (engine_() >> 11) * 0x1p-53 < probability; }

 private:
  std::mt19937_64 engine_;
};

} // namespace velo
