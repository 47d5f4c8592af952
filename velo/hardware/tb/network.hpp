// Nodes, each with its host, and the wires between them: two back to back, or several around a switch.
#pragma once

#include "Vvelo_node.h"
#include "bench.hpp"
#include "host.hpp"
#include "map.hpp"
#include "upset.hpp"

#ifndef NODES
#define NODES 2
#endif
#if NODES > 2
#include "Vvelo_switch.h"
#endif

namespace bench {

using velo::Host;
using velo::HostOptions;

class Node {
 public:
  Node(const HostOptions &options, uint64_t seed) : host(options, seed), dut_(seed) {
    set({});
    receive({});
    dut_.reset();
  }

  Host host;

  LinkWires sent() {
    LinkWires wires{};
    memcpy(wires.data(), &dut_->tx_data, LINK_BYTES);
    wires[LINK_BYTES] = dut_->tx_start;
    return wires;
  }

  void receive(const LinkWires &wires) {
    memcpy(&dut_->rx_data, wires.data(), LINK_BYTES);
    dut_->rx_start = wires[LINK_BYTES];
  }

  // The host's part of a cycle: all that the device gives comes from registers.
  void cycle() {
    set(host.cycle({static_cast<bool>(dut_->posted_credit), static_cast<bool>(dut_->write_valid), dut_->write_address,
                    dut_->write_data, dut_->reg_read}));
  }

  void tick() { dut_.tick(); }

 private:
  void set(const velo::ToDevice &wires) {
    dut_->posted_valid = wires.posted_valid;
    dut_->posted_data = wires.posted_data;
    dut_->posted_last = wires.posted_last;
    dut_->write_credit = wires.write_credit;
    dut_->reg_valid = wires.reg_valid;
    dut_->reg_write = wires.reg_write;
    dut_->reg_address = wires.reg_address;
    dut_->reg_data = wires.reg_data;
  }

  Clocked<Vvelo_node> dut_;
};

class Network {
 public:
  // `rate`: chance of an error in each frame of each wire.
  Network(const HostOptions &options, double rate, uint64_t seed) : fabric_(seed) {
    for (unsigned number = 0; number < NODES; number++) {
      nodes_.push_back(std::make_unique<Node>(options, seed + 10 + number));
      for (int way = 0; way < 2; way++) upsets_.emplace_back(rate, seed + 100 + 2 * number + way);
      host(number).write_register(velo::CONTROL, velo::NODE, number);
    }
  }

  Host &host(unsigned number) { return nodes_[number]->host; }

  // One clock cycle of everything.
  void step() {
    for (auto &node : nodes_) node->cycle();
    std::vector<LinkWires> sent;
    for (auto &node : nodes_) sent.push_back(upset(node->sent(), sent.size()));
    fabric_.exchange(sent);
    for (unsigned number = 0; number < NODES; number++) {
      nodes_[number]->receive(upset(sent[number], NODES + number));
    }
    for (auto &node : nodes_) node->tick();
    fabric_.tick();
    bench::cycle()++;
  }

  // Steps until `done`; nothing may take longer than `most` cycles.
  template <class Done> void run_until(Done done, uint64_t most) {
    for (uint64_t steps = 0; !done(); steps++) {
      demand(steps < most, "it takes more than " + std::to_string(most) + " cycles");
      step();
    }
  }

  uint32_t read(unsigned number, velo::Register index) {
    uint32_t answer = 0;
    bool there = false;
    host(number).read_register(velo::CONTROL, index, [&](uint32_t value) { answer = value, there = true; });
    run_until([&] { return there; }, 1000);
    return answer;
  }

 private:
  LinkWires upset(LinkWires wires, size_t way) {
    LinkWires flips = upsets_[way].flips(wires);
    for (size_t byte = 0; byte < wires.size(); byte++) wires[byte] ^= flips[byte];
    return wires;
  }

  // Two nodes back to back.
  struct Cable {
    explicit Cable(uint64_t) {}
    void exchange(std::vector<LinkWires> &wires) { std::swap(wires[0], wires[1]); }
    void tick() {}
  };

#if NODES > 2
  // Node n at port n.
  struct Switch {
    explicit Switch(uint64_t seed) : dut(seed) {
      dut->rx_start = 0;
      dut.reset();
    }
    void exchange(std::vector<LinkWires> &wires) {
      auto *to = reinterpret_cast<uint8_t *>(&dut->rx_data);
      auto *from = reinterpret_cast<const uint8_t *>(&dut->tx_data);
      dut->rx_start = 0;
      for (unsigned port = 0; port < NODES; port++) {
        memcpy(to + port * LINK_BYTES, wires[port].data(), LINK_BYTES);
        dut->rx_start |= (wires[port][LINK_BYTES] & 1) << port;
        memcpy(wires[port].data(), from + port * LINK_BYTES, LINK_BYTES);
        wires[port][LINK_BYTES] = dut->tx_start >> port & 1;
      }
    }
    void tick() { dut.tick(); }

    Clocked<Vvelo_switch> dut;
  };
  using Fabric = Switch;
#else
  using Fabric = Cable;
#endif

  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Upset> upsets_;
  Fabric fabric_;
};

} // namespace bench
