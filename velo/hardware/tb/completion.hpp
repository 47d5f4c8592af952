// Completer and register file under a bench: packets in, writes out, registers read and written cycle by cycle.
#pragma once

#include "Vvelo_completion.h"
#include "map.hpp"
#include "streams.hpp"

namespace bench {

struct Write {
  uint64_t address, data;
};

class Completion {
 public:
  Completion(uint64_t seed, double stall_in, double stall_out) : random_(seed), dut_(seed), stall_out_(stall_out) {
    in_.stall = stall_in;
    dut_->reg_valid = 0;
    dut_.reset();
  }

  // Takes each write, in the cycle in which it leaves.
  std::function<void(const Write &)> on_write;

  void push(const Words &packet) { in_.push(packet); }

  // Words of packets that were not taken yet.
  size_t waiting() const { return in_.waiting(); }

  void write_register(velo::Window window, unsigned index, uint64_t value) {
    request(true, window, index, value);
  }

  uint32_t read_register(velo::Window window, unsigned index) {
    request(false, window, index, random_.word());
    step();
    return dut_->reg_read;
  }

  // Opens a mailbox as software does. Returns its tail.
  unsigned open(unsigned thread, velo::Ring ring) {
    unsigned tail = read_register(velo::TAIL, thread);
    write_register(velo::HEAD, thread, tail);
    write_register(velo::TABLE, thread, ring.entry());
    return tail;
  }

  // One clock cycle. True when a word came or went.
  bool step() {
    in_.drive();
    dut_->out_ready = !random_.chance(stall_out_);
    dut_.settle();
    bool in = in_.taken(), out = dut_->out_valid && dut_->out_ready;
    check_offer();
    if (in) note(first_in, last_in);
    if (out) {
      note(first_out, last_out);
      on_write({dut_->out_address, dut_->out_data});
    }
    dut_.tick();
    cycle()++;
    return in || out;
  }

  // Until nothing has moved for so many cycles.
  void rest(unsigned cycles = 100) {
    for (unsigned quiet = 0; quiet < cycles; quiet++) {
      if (step()) quiet = 0;
    }
  }

  // Clock cycles of the first and last word in and out since `restart`.
  uint64_t first_in = 0, last_in = 0, first_out = 0, last_out = 0;
  void restart() { first_in = first_out = 0; }

 private:
  void request(bool write, velo::Window window, unsigned index, uint64_t value) {
    dut_->reg_valid = 1;
    dut_->reg_write = write;
    dut_->reg_address = MAP.register_address(window, index);
    dut_->reg_data = value;
    step();
    dut_->reg_valid = 0;
    dut_->reg_write = random_.below(2);
    dut_->reg_address = random_.below(4 * MAP.threads());
  }

  static void note(uint64_t &first, uint64_t &last) {
    last = cycle();
    if (!first) first = last;
  }

  // A write that was offered stays until it is taken.
  void check_offer() {
    if (offered_) {
      demand(dut_->out_valid, "a write was offered and withdrawn");
      same(dut_->out_address, offer_.address, "the address of a write that was offered and has changed:");
      same(dut_->out_data, offer_.data, "a write that was offered and has changed:");
    }
    offered_ = dut_->out_valid && !dut_->out_ready;
    offer_ = {dut_->out_address, dut_->out_data};
  }

  Random random_;
  Clocked<Vvelo_completion> dut_;
  Source in_{{dut_->in_valid, dut_->in_ready, dut_->in_data, dut_->in_last}, random_};
  double stall_out_;
  bool offered_ = false;
  Write offer_{};
};

} // namespace bench
