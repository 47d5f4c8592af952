// Streams of words with valid and ready: sources and sinks that stall at random, and keep what the protocol promises.
#pragma once

#include "bench.hpp"
#include <deque>

namespace bench {

struct Word {
  uint64_t data;
  bool last;
};

using Words = std::vector<uint64_t>;

// The four wires of a stream, in a model.
struct Wires {
  CData &valid, &ready;
  QData &data;
  CData &last;
};

// Feeds a stream. A word that is offered stays until it is taken.
class Source {
 public:
  Source(Wires wires, Random &random) : wires_(wires), random_(random) { wires_.valid = 0; }

  // Chance of a pause before a word.
  double stall = 0;

  void push(const Words &packet) {
    for (size_t index = 0; index < packet.size(); index++) queue_.push_back({packet[index], index + 1 == packet.size()});
  }

  bool empty() const { return queue_.empty(); }
  size_t waiting() const { return queue_.size(); }

  // Before the outputs settle.
  void drive() {
    offers_ = offers_ || (!queue_.empty() && !random_.chance(stall));
    wires_.valid = offers_;
    // What is not offered may be anything.
    wires_.data = offers_ ? queue_.front().data : random_.word();
    wires_.last = offers_ ? queue_.front().last : random_.below(2);
  }

  // After the outputs have settled: whether the word is taken in this cycle.
  bool taken() {
    if (!offers_ || !wires_.ready) return false;
    queue_.pop_front();
    offers_ = false;
    return true;
  }

 private:
  Wires wires_;
  Random &random_;
  std::deque<Word> queue_;
  bool offers_ = false;
};

// Takes a stream, and sees to it that a word that was offered stays as it is.
class Sink {
 public:
  Sink(Wires wires, Random &random) : wires_(wires), random_(random) {}

  // Chance of a cycle in which nothing is taken.
  double stall = 0;

  void drive() { wires_.ready = !random_.chance(stall); }

  // The word of this cycle, if there is one.
  bool take(Word &word) {
    if (offered_) {
      demand(wires_.valid, "a word was offered and withdrawn");
      same(wires_.data, word_.data, "a word that was offered and has changed:");
      same(wires_.last, word_.last, "`last` of a word that was offered and has changed:");
    }
    word_ = word = {wires_.data, static_cast<bool>(wires_.last)};
    offered_ = wires_.valid && !wires_.ready;
    return wires_.valid && wires_.ready;
  }

 private:
  Wires wires_;
  Random &random_;
  Word word_{};
  bool offered_ = false;
};

} // namespace bench
