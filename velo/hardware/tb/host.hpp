// A host beside a `velo_node`: posted writes with credits, memory with mailboxes, and the software that uses both.
// It moves by clock cycles and knows nothing of a simulator: who owns the device carries the wires.
#pragma once

#include "combining.hpp"
#include "mailboxes.hpp"
#include "random.hpp"
#include <deque>

namespace velo {

// Wires from the device, in one cycle.
struct FromDevice {
  bool posted_credit, write_valid;
  uint64_t write_address, write_data;
  uint32_t reg_read;
};

// Wires to the device, in the same cycle.
struct ToDevice {
  bool posted_valid, posted_last, write_credit, reg_valid, reg_write;
  uint64_t posted_data, reg_data;
  uint32_t reg_address;
};

struct HostOptions {
  Map map;
  unsigned posted_credits = 32; // words
  unsigned write_credits = 16;  // writes
  double posted_pause = 0;      // chance of a cycle without a posted word
  unsigned write_delay = 0;     // most cycles until memory gives a credit back
  unsigned head_delay = 0;      // most cycles until a slot that was taken is given back
};

class Host {
 public:
  // A register's answer.
  using Answer = std::function<void(uint32_t)>;

  Host(const HostOptions &options, uint64_t seed)
      : options_(options), random_(seed), boxes_(options.map), posted_credits_(options.posted_credits),
        combining_([this](uint64_t at, const uint8_t *bytes, unsigned size) { post(at, bytes, size); }) {}

  Host(const Host &) = delete;

  // A store of the processor, of 1 to 16 B, to a physical address from the base of the BAR.
  void store(uint64_t address, const uint8_t *bytes, unsigned size) { combining_.store(address, bytes, size); }

  // A fence or an interrupt of the processor.
  void flush() { combining_.flush(); }

  // A transaction on the bus as it is, beside the write-combining buffer.
  void post(const std::vector<uint64_t> &words) {
    for (size_t index = 0; index < words.size(); index++) posted_.push_back({words[index], index + 1 == words.size()});
  }

  void write_register(Window window, unsigned index, uint64_t value) {
    requests_.push_back({true, options_.map.register_address(window, index), value, {}});
  }

  void read_register(Window window, unsigned index, Answer answer) {
    requests_.push_back({false, options_.map.register_address(window, index), 0, std::move(answer)});
  }

  // Opens the mailbox of a thread: the ring is there when `is_open`.
  void open(unsigned thread, Ring ring) {
    read_register(TAIL, thread, [this, thread, ring](uint32_t tail) {
      boxes_.open(thread, ring, tail);
      write_register(HEAD, thread, tail);
      write_register(TABLE, thread, ring.entry());
    });
  }

  bool is_open(unsigned thread) const { return boxes_.is_open(thread); }

  // The next packet of a mailbox; its slot goes back after the delay of the options.
  std::optional<Packet> take(unsigned thread) {
    auto packet = boxes_.take(thread);
    if (packet) heads_.emplace(cycle_ + random_.below(options_.head_delay + 1), thread);
    return packet;
  }

  // Words that the processor has stored and the device has not got yet.
  size_t posted() const { return posted_.size(); }

  // Whether nothing is on its way between software and device, and all writes have been credited.
  bool idle() const { return posted_.empty() && requests_.empty() && heads_.empty() && writes_.empty() && !reading(); }

  // Clock cycles since the beginning.
  uint64_t cycles() const { return cycle_; }

  // Clock cycle in which the device last wrote a header.
  uint64_t last_header() const { return last_header_; }

  // Messages' headers that the device has written.
  uint64_t headers() const { return headers_; }

  // One clock cycle.
  ToDevice cycle(const FromDevice &device) {
    ToDevice wires{};
    answer(device.reg_read);
    memory(device, wires);
    give_back();
    send(device, wires);
    request(wires);
    cycle_++;
    return wires;
  }

 private:
  struct Word {
    uint64_t data;
    bool last;
  };
  struct Request {
    bool write;
    unsigned address;
    uint64_t data;
    Answer answer;
  };

  void post(uint64_t at, const uint8_t *bytes, unsigned size) {
    std::vector<uint64_t> words{command(at, size)};
    // What the bus does not enable may be anything.
    auto data = lanes(bytes, at % LINE_BYTES, size, random_.word());
    words.insert(words.end(), data.begin(), data.end());
    post(words);
  }

  // The answer of a register comes two cycles after the cycle of its request.
  void answer(uint32_t value) {
    Answer answer = std::move(reads_[1]);
    reads_[1] = std::move(reads_[0]);
    reads_[0] = nullptr;
    if (answer) answer(value);
  }

  bool reading() const { return reads_[0] || reads_[1]; }

  void memory(const FromDevice &device, ToDevice &wires) {
    if (device.write_valid) {
      if (writes_.size() == options_.write_credits) throw Violation("a write to memory without a credit");
      if (boxes_.write(device.write_address, device.write_data)) {
        headers_++;
        last_header_ = cycle_;
      }
      writes_.push_back(cycle_ + random_.below(options_.write_delay + 1));
    }
    wires.write_credit = !writes_.empty() && writes_.front() <= cycle_;
    if (wires.write_credit) writes_.pop_front();
  }

  void give_back() {
    for (; !heads_.empty() && heads_.begin()->first <= cycle_; heads_.erase(heads_.begin())) {
      unsigned thread = heads_.begin()->second;
      if (boxes_.is_open(thread)) write_register(HEAD, thread, boxes_.give_back(thread));
    }
  }

  void send(const FromDevice &device, ToDevice &wires) {
    posted_credits_ += device.posted_credit;
    if (posted_credits_ > options_.posted_credits) throw Violation("more credits than the device has words");
    if (posted_.empty() || !posted_credits_ || random_.chance(options_.posted_pause)) return;
    wires.posted_valid = true;
    wires.posted_data = posted_.front().data;
    wires.posted_last = posted_.front().last;
    posted_.pop_front();
    posted_credits_--;
  }

  void request(ToDevice &wires) {
    if (requests_.empty()) return;
    Request next = std::move(requests_.front());
    requests_.pop_front();
    wires.reg_valid = true;
    wires.reg_write = next.write;
    wires.reg_address = next.address;
    wires.reg_data = next.data;
    reads_[0] = std::move(next.answer);
  }

  HostOptions options_;
  Random random_;
  Mailboxes boxes_;
  uint64_t cycle_ = 0, headers_ = 0, last_header_ = 0;
  std::deque<Word> posted_;
  unsigned posted_credits_;
  std::deque<Request> requests_;
  Answer reads_[2];
  std::deque<uint64_t> writes_;              // cycles in which credits of writes are due
  std::multimap<uint64_t, unsigned> heads_;  // cycles in which slots go back, and their threads
  WriteCombining combining_;
};

} // namespace velo
