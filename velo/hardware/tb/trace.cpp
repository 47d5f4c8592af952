// Some messages between two nodes, with every signal of both in files for a wave viewer.
#define TRACED
#include "network.hpp"
#include <verilated_vcd_c.cpp>

using namespace bench;

namespace {

// Sends a message and waits until it is in the memory of the other.
void send(Network &network, unsigned from, unsigned length, unsigned before) {
  Host &to = network.host(1 - from);
  std::vector<uint8_t> bytes(length);
  for (unsigned at = 0; at < length; at++) bytes[at] = uint8_t(at + 1);
  for (unsigned at = 0; at < length; at += 8) {
    network.host(from).store(velo::address(MAP, 1, {1 - from, 0}, length, at), &bytes[at], 8);
  }
  network.host(from).flush();
  uint64_t start = cycle();
  network.run_until([&] { return to.headers() == before + 1; }, 10000);
  printf("%u B from node %u: cycles %llu to %llu\n", length, from, static_cast<unsigned long long>(start),
         static_cast<unsigned long long>(cycle()));
}

} // namespace

int main(int count, char **words) {
  return run("trace", count, words, [](const Options &options) {
    Network network(HostOptions{MAP}, options.errors > 0 ? options.errors / 100 : 0, options.seed);
    for (unsigned node : {0, 1}) network.host(node).open(0, {0, 0});
    network.run_until([&] { return network.host(0).idle() && network.host(1).idle(); }, 1000);
    unsigned messages = options.count ? options.count : 4;
    for (unsigned number = 0; number < messages; number++) {
      send(network, number % 2, number / 2 % 2 ? 64 : 8, number / 2);
    }
    for (int i = 0; i < 40; i++) network.step();
  });
}
