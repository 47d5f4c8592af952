// Software on the nodes of a network: threads that send random messages, threads that take them, and who keeps the account.
#pragma once

#include "network.hpp"

namespace bench {

using velo::Endpoint;
using velo::Message;

// What must arrive: the messages of each sender to each thread, in order.
class Account {
 public:
  void sent(Endpoint target, const Message &message) { waiting_[{message.source, target}].push_back(message); }

  void taken(unsigned node, const Message &message) {
    auto &queue = waiting_[{message.source, Endpoint{node, message.thread}}];
    std::string from = "from thread " + std::to_string(message.source.thread) + " of node " +
                       std::to_string(message.source.node) + " to thread " + std::to_string(message.thread) +
                       " of node " + std::to_string(node);
    demand(!queue.empty(), "a message that nobody sent, " + from);
    demand(queue.front() == message, "not the next message " + from);
    queue.pop_front();
    taken_++;
  }

  uint64_t taken() const { return taken_; }

 private:
  std::map<std::pair<Endpoint, Endpoint>, std::deque<Message>> waiting_;
  uint64_t taken_ = 0;
};

constexpr unsigned THREADS = 8;        // with a mailbox
constexpr unsigned CLOSED = 2;         // more without
constexpr unsigned MOST_POSTED = 64;   // words that a processor has under way before it waits

// Threads of one node that send. They share a processor with its write-combining buffer, and interrupt each other.
class Senders {
 public:
  Senders(unsigned node, Host &host, Account &account, unsigned count, uint64_t seed)
      : node_(node), left_(count), host_(host), account_(account), random_(seed) {}

  bool done() const {
    for (const Thread &thread : threads_) {
      if (thread.at < thread.bytes.size()) return false;
    }
    return left_ == 0;
  }

  // One cycle: a store or an interrupt, or nothing.
  void step() {
    if (host_.posted() > MOST_POSTED || pause_ > 0) {
      pause_ -= pause_ > 0;
      return;
    }
    if (random_.chance(0.02)) {
      host_.flush();
      current_ = random_.below(THREADS);
    }
    Thread &thread = threads_[current_];
    if (thread.at < thread.bytes.size()) store(thread);
    else if (left_) begin(thread);
    else current_ = (current_ + 1) % THREADS;
    if (done()) host_.flush();
  }

  // Messages to open mailboxes, to closed ones and to no node; stores that are no message.
  uint64_t good = 0, to_closed = 0, to_nowhere = 0, bad = 0;

 private:
  struct Thread {
    Endpoint target{};
    std::vector<uint8_t> bytes;
    unsigned at = 0;
  };

  // The next 1 to 16 B of a message, as the processor finds best, most of the time.
  void store(Thread &thread) {
    unsigned length = thread.bytes.size(), size = random_.below(4) ? 8 << random_.below(2) : random_.between(1, 16);
    size = std::min(size, length - thread.at);
    host_.store(address(thread) + thread.at, &thread.bytes[thread.at], size);
    thread.at += size;
    if (thread.at < length) return;
    if (random_.below(2)) host_.flush();
    if (random_.below(64) == 0) pause_ = random_.below(2000);
  }

  void begin(Thread &thread) {
    left_--;
    if (random_.below(200) == 0) post_bad();
    thread.target = {random_.below(NODES), random_.below(THREADS)};
    thread.bytes.resize(random_.below(2) ? random_.between(1, velo::LINE_BYTES) : 8u << random_.below(4));
    for (auto &byte : thread.bytes) byte = random_.word();
    thread.at = 0;
    // The same line again would be combined with the message before.
    host_.flush();
    if (random_.below(50) == 0) {
      thread.target.thread = THREADS + random_.below(CLOSED);
      to_closed++;
    } else if (random_.below(100) == 0) {
      thread.target.node = random_.between(NODES, (1u << MAP.node_bits()) - 1);
      to_nowhere++;
    } else {
      unsigned number = &thread - threads_;
      account_.sent(thread.target, {{node_, number}, thread.target.thread, thread.bytes});
      good++;
    }
  }

  // A store whose offset lies behind its message.
  void post_bad() {
    uint64_t address = velo::address(MAP, current_, {0, 0}, 8, random_.between(8, 63));
    host_.post({velo::command(address, 1), random_.word()});
    bad++;
  }

  uint64_t address(const Thread &thread) const {
    return velo::address(MAP, &thread - threads_, thread.target, thread.bytes.size(), 0);
  }

  unsigned node_, left_, current_ = 0, pause_ = 0;
  Host &host_;
  Account &account_;
  Random random_;
  Thread threads_[THREADS];
};

// Threads of one node that take messages: the first is slow, with the smallest ring.
class Receivers {
 public:
  Receivers(unsigned node, Host &host, Account &account, uint64_t seed)
      : node_(node), host_(host), account_(account), random_(seed) {
    for (unsigned thread = 0; thread < THREADS; thread++) {
      unsigned pages = 1u << (thread < 2 ? 0 : random_.below(4));
      uint64_t page = (random_.below(1u << 18) * THREADS + thread) << 7;
      host_.open(thread, {page | random_.below(128 / pages) * pages, pages - 1});
    }
  }

  // One cycle: one of the threads looks into its mailbox, the slow one seldom.
  void step() {
    unsigned thread = random_.below(THREADS);
    if (thread == 0 && random_.below(16)) return;
    for (unsigned most = random_.below(8); most; most--) {
      auto packet = host_.take(thread);
      if (!packet) return;
      if (auto message = recombination_.add(*packet)) account_.taken(node_, *message);
    }
  }

  // Messages of which something is missing.
  uint64_t torn() const { return recombination_.waiting() + recombination_.faults(); }

 private:
  unsigned node_;
  Host &host_;
  Account &account_;
  Random random_;
  velo::Recombination recombination_{MAP};
};

} // namespace bench
