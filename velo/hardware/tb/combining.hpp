// The write-combining buffer of a processor: stores gather in a line, and leave it as few posted writes.
#pragma once

#include "words.hpp"
#include <algorithm>
#include <functional>

namespace velo {

// One line of 64 B. It is flushed when it is complete, when another line needs it, on a fence, and when the thread is
// interrupted. Each contiguous run of bytes in it becomes one transaction, in ascending order.
class WriteCombining {
 public:
  // A posted write: address of its first byte, and its bytes.
  using Write = std::function<void(uint64_t address, const uint8_t *bytes, unsigned size)>;

  explicit WriteCombining(Write write) : write_(std::move(write)) {}

  // A store of 1 to 16 B within a line.
  void store(uint64_t address, const uint8_t *bytes, unsigned size) {
    uint64_t line = address / LINE_BYTES * LINE_BYTES;
    unsigned first = address % LINE_BYTES;
    if (size < 1 || size > 16 || first + size > LINE_BYTES) throw Violation("a store must stay within its line");
    if (line != line_) flush();
    line_ = line;
    std::copy_n(bytes, size, bytes_.begin() + first);
    std::fill_n(there_.begin() + first, size, true);
    if (std::find(there_.begin(), there_.end(), false) == there_.end()) flush();
  }

  // A fence, or an interrupt: what is in the buffer goes.
  void flush() {
    for (auto first = there_.begin(); (first = std::find(first, there_.end(), true)) != there_.end();) {
      auto last = std::find(first, there_.end(), false);
      auto at = first - there_.begin();
      write_(line_ + at, &bytes_[at], last - first);
      first = last;
    }
    there_.fill(false);
  }

 private:
  Write write_;
  uint64_t line_ = 0;
  std::array<uint8_t, LINE_BYTES> bytes_{};
  std::array<bool, LINE_BYTES> there_{};
};

} // namespace velo
