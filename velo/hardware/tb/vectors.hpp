// Vector files: a statement a line, words apart by blanks, `#` begins a comment. Each file begins with what it says.
#pragma once

#include "bench.hpp"
#include <fstream>
#include <sstream>

namespace bench {

// A statement: its name, and what follows.
struct Statement {
  std::string name, place;
  std::vector<std::string> words;

  uint64_t number(size_t index) const {
    if (index >= words.size()) throw Violation(place + ": `" + name + "` needs more words");
    try {
      return std::stoull(words[index], nullptr, 16);
    } catch (const std::exception &) {
      throw Violation(place + ": `" + words[index] + "` is no hexadecimal number");
    }
  }

  // All numbers from one on.
  std::vector<uint64_t> numbers(size_t from) const {
    std::vector<uint64_t> numbers;
    for (size_t index = from; index < words.size(); index++) numbers.push_back(number(index));
    return numbers;
  }

  // The bytes of a word of two digits for each.
  std::vector<uint8_t> bytes(size_t index) const {
    if (index >= words.size() || words[index].size() % 2) throw Violation(place + ": no bytes");
    std::vector<uint8_t> bytes;
    for (size_t at = 0; at < words[index].size(); at += 2) {
      bytes.push_back(std::stoul(words[index].substr(at, 2), nullptr, 16));
    }
    return bytes;
  }
};

// The statements of a file, without those of the map, which must be `map`. A failure names the statement that was read last.
class Vectors {
 public:
  Vectors(const std::string &folder, const std::string &file, velo::Map map) : file_(file), text_(folder + "/" + file) {
    demand(text_.good(), folder + "/" + file + " cannot be read: give its folder by --vectors");
    Statement first;
    demand(next(first) && first.name == "map", file + " must begin with `map`");
    demand(first.number(0) == map.n && first.number(1) == map.t, first.place + ": the bench has another map");
  }

  bool next(Statement &to) {
    std::string line;
    while (std::getline(text_, line)) {
      line_++;
      std::istringstream words(line.substr(0, line.find('#')));
      Statement read;
      if (!(words >> read.name)) continue;
      for (std::string word; words >> word;) read.words.push_back(word);
      read.place = file_ + ":" + std::to_string(line_);
      statement() = read.place + " `" + read.name + "`";
      to = std::move(read);
      return true;
    }
    return false;
  }

 private:
  std::string file_;
  std::ifstream text_;
  unsigned line_ = 0;
};

} // namespace bench
