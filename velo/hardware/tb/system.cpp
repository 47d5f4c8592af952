// Bench of whole nodes with their hosts, two back to back or several around a switch: the vectors, and random messages of
// many threads with errors on the wires. Every message arrives once, whole, in order per sender and thread.
#include "traffic.hpp"
#include "vectors.hpp"

namespace {

using namespace bench;
using velo::Header;

constexpr uint64_t PATIENCE = 200000; // cycles without a message

std::string percent(double rate) { return std::to_string(static_cast<int>(rate * 100)) + " % of frames with errors"; }

void wait_for_hosts(Network &network) {
  for (unsigned node = 0; node < NODES; node++) {
    network.run_until([&] { return network.host(node).idle(); }, 10000);
  }
}

uint32_t sum(Network &network, velo::Register index) {
  uint32_t sum = 0;
  for (unsigned node = 0; node < NODES; node++) sum += network.read(node, index);
  return sum;
}

class RandomTraffic {
 public:
  RandomTraffic(const HostOptions &options, double rate, unsigned count, uint64_t seed)
      : rate_(rate), network_(options, rate, seed) {
    for (unsigned node = 0; node < NODES; node++) {
      receivers_.emplace_back(node, network_.host(node), account_, seed + 20 + node);
      senders_.emplace_back(node, network_.host(node), account_, count / NODES, seed + 40 + node);
    }
    wait_for_hosts(network_);
  }

  void run() {
    Watchdog watchdog(PATIENCE);
    uint64_t seen = 0;
    while (!done()) {
      for (auto &sender : senders_) sender.step();
      for (auto &receiver : receivers_) receiver.step();
      network_.step();
      if (account_.taken() != seen) watchdog.moved();
      seen = account_.taken();
      watchdog.check();
    }
    settle();
    check_counters();
  }

 private:
  uint64_t total(uint64_t Senders::*count) const {
    uint64_t total = 0;
    for (auto &sender : senders_) total += sender.*count;
    return total;
  }

  bool done() const {
    for (auto &sender : senders_) {
      if (!sender.done()) return false;
    }
    return account_.taken() == total(&Senders::good);
  }

  // What comes late would be a message twice.
  void settle() {
    for (unsigned step = 0; step < 5000; step++) {
      for (auto &receiver : receivers_) receiver.step();
      network_.step();
    }
    for (auto &receiver : receivers_) demand(receiver.torn() == 0, "a message is there in part");
    wait_for_hosts(network_);
  }

  void check_counters() {
    uint32_t headers = 0;
    for (unsigned node = 0; node < NODES; node++) headers += network_.host(node).headers();
    uint32_t closed = sum(network_, velo::FAULT_CLOSED), nowhere = sum(network_, velo::FAULT_NODE);
    same(sum(network_, velo::RECEIVED), headers, "RECEIVED of all nodes");
    uint32_t sent = sum(network_, velo::SENT);
    same(sent, headers + closed + nowhere, "SENT of all nodes");
    uint64_t messages = total(&Senders::good) + total(&Senders::to_closed) + total(&Senders::to_nowhere);
    demand(sent > messages, "no message was cut");
    same(sum(network_, velo::BAD_STORES), total(&Senders::bad), "BAD_STORES of all nodes");
    same(sum(network_, velo::FAULT_DATA), 0, "FAULT_DATA of all nodes");
    demand(closed >= total(&Senders::to_closed) && nowhere >= total(&Senders::to_nowhere), "too few faults");
    demand((sum(network_, velo::LINK_ERRORS) > 0) == (rate_ > 0), "LINK_ERRORS do not tell of errors");
    demand((sum(network_, velo::LINK_REPEATS) > 0) == (rate_ > 0), "LINK_REPEATS do not tell of repetitions");
  }

  double rate_;
  Account account_;
  Network network_;
  std::deque<Senders> senders_;
  std::deque<Receivers> receivers_;
};

// ---- vectors

// What must be in the mailboxes, packet by packet and message by message, by source and target.
class Replay {
 public:
  Replay(const Options &options, double rate, uint64_t seed) : network_(HostOptions{MAP}, rate, seed) {
    Vectors vectors(options.vectors, "traffic.vec", MAP);
    std::vector<Statement> stores;
    for (Statement line; vectors.next(line);) {
      if (line.name == "open") open(line.number(0), line.number(1), line.number(2));
      else if (line.name == "store") stores.push_back(line);
      else if (line.name == "slot") slot(line);
      else if (line.name == "take") messages_.sent(target(line), message(line)), left_++;
      else throw Violation("no such statement");
    }
    wait_for_hosts(network_);
    for (auto &line : stores) network_.host(line.number(0)).post(line.numbers(1));
  }

  void run() {
    statement() = "traffic.vec";
    network_.run_until([this] { return take(), left_ == 0; }, PATIENCE);
    for (unsigned step = 0; step < 1000; step++) {
      take();
      network_.step();
    }
    same(messages_.taken(), taken_, "messages");
  }

 private:
  static Endpoint target(const Statement &line) {
    return {static_cast<unsigned>(line.number(0)), static_cast<unsigned>(line.number(1))};
  }

  static Endpoint source(uint64_t field) {
    return {static_cast<unsigned>(field >> MAP.thread_bits()), static_cast<unsigned>(field % MAP.threads())};
  }

  static Message message(const Statement &line) {
    return {source(line.number(2)), static_cast<unsigned>(line.number(1)), line.bytes(3)};
  }

  void open(unsigned node, unsigned thread, unsigned pages) {
    network_.host(node).open(thread, {thread * 128, pages - 1});
    mailboxes_.push_back({node, thread});
  }

  void slot(const Statement &line) {
    Header header = velo::decode(MAP, line.number(2));
    slots_[{header.source, target(line)}].push_back(line);
    left_++;
  }

  void take() {
    for (Endpoint mailbox : mailboxes_) {
      auto packet = network_.host(mailbox.node).take(mailbox.thread);
      if (!packet) continue;
      check(mailbox, *packet);
      if (auto whole = recombination_[mailbox.node].add(*packet)) {
        messages_.taken(mailbox.node, *whole);
        left_--;
        taken_++;
      }
    }
  }

  void check(Endpoint mailbox, const velo::Packet &packet) {
    Header header = velo::decode(MAP, packet.header);
    auto &queue = slots_[{header.source, mailbox}];
    demand(!queue.empty(), "packet " + velo::hex(packet.header) + " is in no line");
    statement() = queue.front().place;
    same(packet.header, queue.front().number(2), "the next header");
    auto words = queue.front().numbers(3);
    for (size_t word = 0; word < words.size(); word++) {
      same(packet.words[header.offset / velo::WORD_BYTES + word], words[word], "word " + std::to_string(word));
    }
    queue.pop_front();
    left_--;
  }

  Network network_;
  std::vector<Endpoint> mailboxes_;
  std::map<std::pair<Endpoint, Endpoint>, std::deque<Statement>> slots_;
  Account messages_;
  std::vector<velo::Recombination> recombination_{NODES, velo::Recombination(MAP)};
  uint64_t left_ = 0, taken_ = 0;
};

// ---- measurements

std::string name(const std::string &what, unsigned length) {
  std::string through = NODES > 2 ? ", through a switch" : "";
  return what + ", " + std::to_string(length) + " B, " + std::to_string(LINK) + " wires" + through;
}

void store(Host &host, unsigned node, unsigned length) {
  std::vector<uint8_t> bytes(length, 0x5a);
  for (unsigned at = 0; at < length; at += 8) {
    host.store(velo::address(MAP, 1, {1 - node, 0}, length, at), &bytes[at], 8);
  }
  host.flush();
}

// From the command on the bus of one host to the header in the memory of the other.
void measure_latency(unsigned length) {
  Network network(HostOptions{MAP}, 0, 0);
  network.host(1).open(0, {0, 0});
  wait_for_hosts(network);
  for (int i = 0; i < 50; i++) network.step();
  uint64_t start = network.host(0).cycles();
  store(network.host(0), 0, length);
  network.run_until([&] { return network.host(1).headers() == 1; }, 1000);
  measured("system", name("latency end to end", length), "cycles", network.host(1).last_header() - start);
}

void measure_rate(unsigned length, bool both) {
  Network network(HostOptions{MAP}, 0, 0);
  for (unsigned node : {0, 1}) network.host(node).open(0, {0, 127});
  wait_for_hosts(network);
  const unsigned messages = 1000;
  for (unsigned number = 0; number < messages; number++) {
    for (unsigned node = 0; node <= both; node++) store(network.host(node), node, length);
  }
  Host &to = network.host(1);
  network.run_until([&] { return to.headers() == 1; }, 10000);
  uint64_t first = to.last_header();
  network.run_until([&] { return to.headers() == messages; }, 1000000);
  std::string what = both ? "cycles per message, both ways" : "cycles per message, one way";
  measured("system", name(what, length), "cycles", double(to.last_header() - first) / (messages - 1));
}

} // namespace

int main(int count, char **words) {
  return run("system", count, words, [](const Options &options) {
    unsigned messages = options.count ? options.count : 100000;
    uint64_t seed = options.seed;
    for (double rate : {0.0, 0.05}) {
      if (!options.vectors.empty()) Replay(options, rate, seed).run();
    }
    for (double rate : {0.0, 0.01, 0.05}) {
      if (options.errors >= 0) rate = options.errors / 100;
      statement() = "random messages, " + percent(rate);
      HostOptions host{MAP};
      if (rate == 0.01) host.posted_pause = 0.1, host.write_delay = 40, host.head_delay = 300;
      RandomTraffic(host, rate, rate == 0.01 ? messages : messages / 5, seed++).run();
    }
    statement() = "measurement";
    for (unsigned length : {8, 32, 64}) {
      measure_latency(length);
      measure_rate(length, false);
      measure_rate(length, true);
    }
  });
}
