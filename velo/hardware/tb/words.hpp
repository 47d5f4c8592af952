// Words of the engine, as its contract says: headers, commands of the host's bus, data in their byte lanes, and mailboxes.
// A second statement of what the crate `evb-velo` says, so that benches do not check the hardware against itself.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace velo {

constexpr unsigned PAGE_BITS = 12;
constexpr unsigned LINE_BITS = 6;
constexpr unsigned LINE_BYTES = 64;
constexpr unsigned WORD_BYTES = 8;
constexpr unsigned LINE_WORDS = LINE_BYTES / WORD_BYTES;
constexpr unsigned TARGET_SHIFT = 18;
constexpr unsigned SOURCE_SHIFT = 40;
constexpr unsigned ENDPOINT_BITS = 22;
constexpr uint64_t FIXED = 2ull << 62;
constexpr unsigned COMMAND_DATA_SHIFT = 58;

// A slot of a mailbox: the header, the data, and room up to the next power of two.
constexpr unsigned SLOT_BYTES = 128;
constexpr unsigned PAGE_SLOTS = (1u << PAGE_BITS) / SLOT_BYTES;
// Head and tail count messages modulo this.
constexpr unsigned POINTERS = 1u << 13;

// Windows of the register file, and registers of the first.
enum Window : unsigned { CONTROL, HEAD, TABLE, TAIL };
enum Register : unsigned {
  NODE,
  SENT,
  RECEIVED,
  BAD_STORES,
  FAULT_NODE,
  FAULT_CLOSED,
  FAULT_DATA,
  LINK_ERRORS,
  LINK_REPEATS,
};

// What a device or a file did that it must not do.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline std::string hex(uint64_t word) {
  char text[20];
  snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(word));
  return text;
}

// How addresses are divided: `n` bits, `t` of them below the node.
struct Map {
  unsigned n, t;

  unsigned node_bits() const { return n - t; }
  unsigned thread_bits() const { return t - PAGE_BITS; }
  unsigned threads() const { return 1u << thread_bits(); }
  unsigned register_address(Window window, unsigned index) const { return window << thread_bits() | index; }
};

struct Endpoint {
  unsigned node, thread;

  bool operator<(const Endpoint &other) const {
    return node != other.node ? node < other.node : thread < other.thread;
  }
  bool operator==(const Endpoint &other) const { return node == other.node && thread == other.thread; }
};

struct Header {
  Endpoint source, target;
  unsigned length, offset, data; // bytes

  // Data words of the packet: data stay in their byte lanes.
  unsigned words() const { return (offset % WORD_BYTES + data + WORD_BYTES - 1) / WORD_BYTES; }
};

inline uint64_t endpoint(Map map, Endpoint of) { return uint64_t{of.node} << map.thread_bits() | of.thread; }

inline uint64_t encode(Map map, const Header &header) {
  return FIXED | endpoint(map, header.source) << SOURCE_SHIFT | endpoint(map, header.target) << TARGET_SHIFT |
         uint64_t{header.data - 1} << (2 * LINE_BITS) | (header.length - 1) << LINE_BITS | header.offset;
}

inline Header decode(Map map, uint64_t word) {
  auto line = [&](unsigned shift) { return static_cast<unsigned>(word >> shift) % LINE_BYTES; };
  auto thread = [&](unsigned shift) {
    auto field = static_cast<unsigned>((word >> shift) % (1u << ENDPOINT_BITS));
    return Endpoint{field >> map.thread_bits(), field % map.threads()};
  };
  return {thread(SOURCE_SHIFT), thread(TARGET_SHIFT), line(LINE_BITS) + 1, line(0), line(2 * LINE_BITS) + 1};
}

// The address of a store, from the base of the BAR: the window of the sender, and what `AddressMap` says.
inline uint64_t address(Map map, unsigned sender, Endpoint target, unsigned length, unsigned offset) {
  return uint64_t{sender} << map.n | uint64_t{target.node} << map.t | uint64_t{target.thread} << PAGE_BITS |
         (length - 1) << LINE_BITS | offset;
}

inline uint64_t command(uint64_t address, unsigned data) {
  return address | uint64_t{data - 1} << COMMAND_DATA_SHIFT;
}

// Bits of data word `index` of a packet (counted from the word that `offset` is in) that are data.
inline uint64_t data_mask(unsigned offset, unsigned data, unsigned index) {
  uint64_t mask = 0;
  for (unsigned lane = 0; lane < WORD_BYTES; lane++) {
    unsigned byte = (offset / WORD_BYTES + index) * WORD_BYTES + lane;
    if (byte >= offset && byte < offset + data) mask |= 0xffull << 8 * lane;
  }
  return mask;
}

// Bytes [offset, offset + data) of a message in their lanes; all other bits are those of `fill`.
inline std::vector<uint64_t> lanes(const uint8_t *bytes, unsigned offset, unsigned data, uint64_t fill = 0) {
  std::vector<uint64_t> words((offset % WORD_BYTES + data + WORD_BYTES - 1) / WORD_BYTES, fill);
  for (unsigned byte = offset; byte < offset + data; byte++) {
    uint64_t &word = words[byte / WORD_BYTES - offset / WORD_BYTES];
    unsigned shift = byte % WORD_BYTES * 8;
    word = (word & ~(0xffull << shift)) | uint64_t{bytes[byte - offset]} << shift;
  }
  return words;
}

// A packet in a mailbox: the header, and the data words where they stand in the message.
struct Packet {
  uint64_t header;
  std::array<uint64_t, LINE_WORDS> words;

  uint8_t byte(unsigned index) const { return words[index / WORD_BYTES] >> index % WORD_BYTES * 8; }
};

// An entry of TABLE. The ring has `mask + 1` pages from page `page` on.
struct Ring {
  uint64_t page;
  unsigned mask;

  uint64_t base() const { return page << PAGE_BITS; }
  unsigned slots() const { return (mask + 1) * PAGE_SLOTS; }
  uint64_t entry() const { return page | uint64_t{mask} << 28 | 1ull << 35; }
  static Ring of(uint64_t entry) { return {entry & 0xfffffff, static_cast<unsigned>(entry >> 28) & 0x7f}; }
  static bool enabled(uint64_t entry) { return entry >> 35 & 1; }
};

} // namespace velo
