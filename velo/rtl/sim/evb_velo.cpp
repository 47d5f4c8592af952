// The nodes of a cluster as Verilator made them of their Verilog, and the wires between them.
//
// All wires between nodes and switch are outputs of registers: so in each cycle every model first gets what the others showed
// behind the last edge, and then all of them see the edge, one after another.
//
// LINK is the number of wires of a link in one direction, PORTS that of the ports of the switch; with 0, two nodes are
// joined back to back. Words of Verilator are little-endian, as the host has to be.

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "VeloNode.h"
#if PORTS
#include "VeloSwitch.h"
#endif
#include "verilated.h"

namespace {

constexpr unsigned MOST_NODES = PORTS ? PORTS : 2;
constexpr unsigned RESET_CYCLES = 4;
constexpr std::size_t LINK_BYTES = LINK / 8;

// One node in one cycle, as `Inputs` and `Outputs` of hardware.rs have it.
struct Inputs {
    std::uint64_t posted_data, reg_data;
    std::uint32_t reg_address;
    bool posted_valid, posted_last, write_credit, reg_valid, reg_write;
};
struct Outputs {
    std::uint64_t write_address, write_data;
    std::uint32_t reg_read;
    bool posted_credit, write_valid;
};
static_assert(sizeof(Inputs) == 32 && sizeof(Outputs) == 24, "the layout of hardware.rs");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bytes of wires are copied");

// What goes over a link in one direction in one cycle.
struct Wires {
    bool start = false;
    std::array<unsigned char, LINK_BYTES> data{};
};

template <class Model>
void edge(Model &model) {
    model.clk = 0;
    model.eval();
    model.clk = 1;
    model.eval();
}

#if PORTS
// The switch, with a node at each of its first ports.
class Middle {
  public:
    explicit Middle(VerilatedContext &context) : hub(&context) {}
    ~Middle() { hub.final(); }

    // Gives the nodes what comes to them.
    void exchange(const std::vector<Wires> &from_node, std::vector<Wires> &to_node) {
        hub.rx_start = 0;
        for (std::size_t n = 0; n < from_node.size(); ++n) {
            to_node[n].start = hub.tx_start >> n & 1;
            std::memcpy(to_node[n].data.data(), bytes(hub.tx_data) + n * LINK_BYTES, LINK_BYTES);
            hub.rx_start |= unsigned{from_node[n].start} << n;
            std::memcpy(bytes(hub.rx_data) + n * LINK_BYTES, from_node[n].data.data(), LINK_BYTES);
        }
    }

    void step(bool reset) {
        hub.rst = reset;
        edge(hub);
    }

  private:
    VeloSwitch hub;

    template <class Word>
    static unsigned char *bytes(Word &word) {
        return reinterpret_cast<unsigned char *>(&word);
    }
};
#else
// Nothing but crossed wires.
class Middle {
  public:
    explicit Middle(VerilatedContext &) {}

    void exchange(const std::vector<Wires> &from_node, std::vector<Wires> &to_node) {
        to_node[0] = from_node[1];
        to_node[1] = from_node[0];
    }

    void step(bool) {}
};
#endif

class Cluster {
  public:
    explicit Cluster(unsigned nodes) : middle(context), from_node(nodes), to_node(nodes) {
        for (unsigned n = 0; n < nodes; ++n)
            all.push_back(std::make_unique<VeloNode>(&context));
        const std::vector<Inputs> nothing(nodes);
        std::vector<Outputs> unseen(nodes);
        for (unsigned cycle = 0; cycle < RESET_CYCLES; ++cycle)
            step(nothing.data(), unseen.data(), true);
    }

    ~Cluster() {
        for (auto &node : all)
            node->final();
    }

    void step(const Inputs *inputs, Outputs *outputs, bool reset = false) {
        middle.exchange(from_node, to_node);
        for (std::size_t n = 0; n < all.size(); ++n)
            outputs[n] = step_node(*all[n], inputs[n], to_node[n], from_node[n], reset);
        middle.step(reset);
    }

  private:
    VerilatedContext context;
    std::vector<std::unique_ptr<VeloNode>> all;
    Middle middle;
    // What the nodes showed behind the last edge, and what they get now.
    std::vector<Wires> from_node, to_node;

    static Outputs step_node(VeloNode &node, const Inputs &in, const Wires &rx, Wires &tx, bool reset) {
        node.rst = reset;
        node.posted_valid = in.posted_valid;
        node.posted_data = in.posted_data;
        node.posted_last = in.posted_last;
        node.write_credit = in.write_credit;
        node.reg_valid = in.reg_valid;
        node.reg_write = in.reg_write;
        node.reg_address = in.reg_address;
        node.reg_data = in.reg_data;
        node.rx_start = rx.start;
        std::memcpy(&node.rx_data, rx.data.data(), LINK_BYTES);
        edge(node);
        tx.start = node.tx_start;
        std::memcpy(tx.data.data(), &node.tx_data, LINK_BYTES);
        Outputs out{};
        out.write_address = node.write_address;
        out.write_data = node.write_data;
        out.reg_read = node.reg_read;
        out.posted_credit = node.posted_credit;
        out.write_valid = node.write_valid;
        return out;
    }
};

}  // namespace

extern "C" {

// A cluster of so many nodes behind its reset, or nothing if there cannot be so many.
void *evb_velo_create(std::uint32_t nodes) {
    return nodes < 2 || nodes > MOST_NODES ? nullptr : new Cluster(nodes);
}

// One cycle. There are as many inputs and outputs as nodes.
void evb_velo_step(void *cluster, const Inputs *inputs, Outputs *outputs) {
    static_cast<Cluster *>(cluster)->step(inputs, outputs);
}

void evb_velo_destroy(void *cluster) {
    delete static_cast<Cluster *>(cluster);
}
}
