// Mailboxes in the memory of a host: what the device may write there, and what software takes out.
#pragma once

#include "words.hpp"
#include <map>
#include <optional>

namespace velo {

// The rings of one node. Each write of the device must fall into the next slot of an enabled ring, and that slot must have
// been given back; the header must be the last word, and the words before it must be those that it speaks of.
class Mailboxes {
 public:
  explicit Mailboxes(Map map) : map_(map) {}

  // Opens the mailbox of a thread; `tail` is where the device goes on counting.
  void open(unsigned thread, Ring ring, unsigned tail) {
    Box box{thread, ring, std::vector<Slot>(ring.slots()), tail, tail, tail};
    if (!boxes_.emplace(ring.base(), std::move(box)).second) throw Violation("two rings at " + hex(ring.base()));
    bases_[thread] = ring.base();
  }

  void close(unsigned thread) {
    boxes_.erase(bases_.at(thread));
    bases_.erase(thread);
  }

  bool is_open(unsigned thread) const { return bases_.count(thread) != 0; }

  // A write of the device. True when it was a header: then a message is there.
  bool write(uint64_t address, uint64_t word) {
    Box &box = box_of(address);
    uint64_t at = address - box.ring.base();
    unsigned index = at % SLOT_BYTES / WORD_BYTES;
    auto fail = [&](const std::string &why) { throw Violation("write to " + hex(address) + ": " + why); };
    if (address % WORD_BYTES || index > LINE_WORDS) fail("no word of a slot");
    if (box.tail - box.given >= box.ring.slots()) fail("the ring is full: no slot was given back");
    if (at / SLOT_BYTES != box.tail % box.ring.slots()) fail("not slot " + std::to_string(box.tail % box.ring.slots()));
    Slot &slot = box.slot(box.tail);
    if (slot.packet.header) fail("software has not cleared the header");
    if (index > 0) {
      if (slot.written >> (index - 1) & 1) fail("written twice");
      slot.written |= 1u << (index - 1);
      slot.packet.words[index - 1] = word;
      return false;
    }
    check(box, slot, word, fail);
    slot.packet.header = word;
    box.tail++;
    return true;
  }

  // The next packet of a thread, whose header is cleared. Its slot stays in use until it is given back.
  std::optional<Packet> take(unsigned thread) {
    Box &box = boxes_.at(bases_.at(thread));
    Slot &slot = box.slot(box.taken);
    if (!slot.packet.header) return {};
    Packet packet = slot.packet;
    slot = Slot{};
    box.taken++;
    return packet;
  }

  // Gives back all slots that were taken: the value for HEAD.
  unsigned give_back(unsigned thread) {
    Box &box = boxes_.at(bases_.at(thread));
    box.given = box.taken;
    return box.given % POINTERS;
  }

 private:
  struct Slot {
    Packet packet{};
    unsigned written = 0; // one bit for each data word
  };
  struct Box {
    unsigned thread;
    Ring ring;
    std::vector<Slot> slots;
    unsigned tail, taken, given; // messages, not modulo

    Slot &slot(unsigned count) { return slots[count % ring.slots()]; }
  };

  Box &box_of(uint64_t address) {
    auto above = boxes_.upper_bound(address);
    if (above != boxes_.begin()) {
      Box &box = std::prev(above)->second;
      if (address - box.ring.base() < uint64_t{box.ring.slots()} * SLOT_BYTES) return box;
    }
    throw Violation("write to " + hex(address) + ": in no ring that is open");
  }

  template <class Fail> void check(const Box &box, const Slot &slot, uint64_t word, Fail fail) const {
    Header header = decode(map_, word);
    if (word >> 62 != FIXED >> 62) fail("header " + hex(word) + " is none");
    if (header.target.thread != box.thread) fail("header " + hex(word) + " is for another thread");
    if (header.offset + header.data > header.length) fail("header " + hex(word) + " has data behind its message");
    unsigned first = header.offset / WORD_BYTES;
    if (slot.written != ((1u << header.words()) - 1) << first) fail("header before data, or with other data");
    for (unsigned index = 0; index < header.words(); index++) {
      if (slot.packet.words[first + index] & ~data_mask(header.offset, header.data, index)) {
        fail("bytes beside the data are not 0");
      }
    }
  }

  Map map_;
  std::map<uint64_t, Box> boxes_;       // by base
  std::map<unsigned, uint64_t> bases_;  // by thread
};

// A whole message.
struct Message {
  Endpoint source;
  unsigned thread;
  std::vector<uint8_t> bytes;

  bool operator==(const Message &other) const {
    return source == other.source && thread == other.thread && bytes == other.bytes;
  }
};

// Puts messages together that came in pieces: those of one sender follow each other, from the beginning on. What does not is
// a fault, and gone with what was there of its message; so is a message that was begun when its sender begins another.
class Recombination {
 public:
  explicit Recombination(Map map) : map_(map) {}

  // A packet as it was taken; the message when it is whole.
  std::optional<Message> add(const Packet &packet) {
    Header header = decode(map_, packet.header);
    auto key = std::make_pair(header.source, header.target.thread);
    auto found = partials_.find(key);
    Partial partial{header.length, {}};
    if (found != partials_.end()) {
      if (header.offset) partial = std::move(found->second);
      else faults_++;
      partials_.erase(found);
    }
    if (header.offset != partial.bytes.size() || header.length != partial.length) return faults_++, std::nullopt;
    for (unsigned byte = 0; byte < header.data; byte++) partial.bytes.push_back(packet.byte(header.offset + byte));
    if (partial.bytes.size() == header.length) {
      return Message{header.source, header.target.thread, std::move(partial.bytes)};
    }
    partials_.emplace(key, std::move(partial));
    return {};
  }

  // Messages of which parts are there.
  size_t waiting() const { return partials_.size(); }

  uint64_t faults() const { return faults_; }

 private:
  struct Partial {
    unsigned length;
    std::vector<uint8_t> bytes;
  };

  Map map_;
  std::map<std::pair<Endpoint, unsigned>, Partial> partials_;
  uint64_t faults_ = 0;
};

} // namespace velo
