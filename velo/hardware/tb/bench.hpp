// What every bench needs: options, a clock with a watchdog, measurements, and an end that says what was wrong and where.
#pragma once

#include "random.hpp"
#include "words.hpp"
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <verilated.h>
#ifdef TRACED
#include <verilated_vcd_c.h>
#endif

// Time of a simulation, for messages of the models; benches count cycles.
inline double sc_time_stamp() { return 0; }

namespace bench {

using velo::Random;
using velo::Violation;

// `--seed S`, `--count N`, `--errors PER_CENT`; what is not given is the bench's to choose. `--vectors FOLDER`: those are
// replayed, too.
struct Options {
  uint64_t seed = 1;
  unsigned count = 0;
  double errors = -1;
  std::string vectors;

  static Options parse(int count, char **words) {
    Options options;
    for (int index = 1; index < count; index += 2) {
      std::string name = words[index];
      if (index + 1 == count) throw Violation(name + " without a value");
      std::string value = words[index + 1];
      if (name == "--seed") options.seed = std::stoull(value);
      else if (name == "--count") options.count = std::stoul(value);
      else if (name == "--errors") options.errors = std::stod(value);
      else if (name == "--vectors") options.vectors = value;
      else throw Violation(name + " is no option: use --seed, --count, --errors, --vectors");
    }
    return options;
  }
};

// What is being done, for the message of a bench that fails: a statement of a file, or a part of the bench.
inline std::string &statement() {
  static std::string text;
  return text;
}

// The cycle of the model that was clocked last.
inline uint64_t &cycle() {
  static uint64_t count = 0;
  return count;
}

inline void demand(bool is_so, const std::string &otherwise) {
  if (!is_so) throw Violation(otherwise);
}

// Demands that two words are the same.
inline void same(uint64_t is, uint64_t should, const std::string &what) {
  if (is != should) throw Violation(what + " is " + velo::hex(is) + " and should be " + velo::hex(should));
}

// One line of JSON for each measurement.
inline void measured(const char *bench, const std::string &what, const char *unit, double value) {
  printf("{\"bench\":\"%s\",\"what\":\"%s\",\"unit\":\"%s\",\"value\":%g}\n", bench, what.c_str(), unit, value);
}

// Ends a run in which nothing moves any more.
class Watchdog {
 public:
  explicit Watchdog(uint64_t most_cycles) : most_(most_cycles) {}

  void moved() { since_ = cycle(); }
  void check() const {
    if (cycle() - since_ > most_) throw Violation("nothing has moved for " + std::to_string(most_) + " cycles");
  }

 private:
  uint64_t most_, since_ = cycle();
};

#ifdef TRACED
// All signals of a model, in a file for each: `trace-0.vcd`, `trace-1.vcd`. A cycle is 10 ns, as in the prototype.
class Trace {
 public:
  template <class Model> void open(Model &model, VerilatedContext &context) {
    static int files = 0;
    context.traceEverOn(true);
    context.timeunit(-9);
    context.timeprecision(-9);
    model.trace(&file_, 99);
    file_.open(("trace-" + std::to_string(files++) + ".vcd").c_str());
  }
  void note() { file_.dump(static_cast<uint64_t>(time_ += 5)); }
  void close() { file_.close(); }

 private:
  VerilatedVcdC file_;
  uint64_t time_ = 0;
};
#else
struct Trace {
  template <class Model> void open(Model &, VerilatedContext &) {}
  void note() {}
  void close() {}
};
#endif

// A model with a clock, whose registers begin at random.
template <class Model> class Clocked {
 public:
  explicit Clocked(uint64_t seed) : context_(new VerilatedContext) {
    context_->randReset(2);
    context_->randSeed(static_cast<int>(seed % 0x7fffffff) + 1);
    model_ = std::make_unique<Model>(context_.get());
    trace_.open(*model_, *context_);
  }
  ~Clocked() {
    trace_.close();
    model_->final();
    // The scopes of a model take themselves out of the context of the thread, whichever was used last.
    Verilated::threadContextp(context_.get());
    model_.reset();
  }

  Model *operator->() { return model_.get(); }
  Model &operator*() { return *model_; }

  // The outputs follow the inputs.
  void settle() { model_->eval(); }

  // The clock edge, and the settled outputs after it.
  void tick() {
    model_->clk = 1;
    model_->eval();
    trace_.note();
    model_->clk = 0;
    model_->eval();
    trace_.note();
  }

  void reset() {
    model_->clk = 0;
    model_->rst = 1;
    for (int i = 0; i < 4; i++) tick();
    model_->rst = 0;
    settle();
  }

 private:
  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Model> model_;
  Trace trace_;
};

// Runs a bench: what it throws is told with statement and cycle, and is the exit status.
inline int run(const char *name, int count, char **words, const std::function<void(const Options &)> &bench) {
  uint64_t seed = 0;
  try {
    Options options = Options::parse(count, words);
    seed = options.seed;
    printf("%s: seed %llu\n", name, static_cast<unsigned long long>(seed));
    bench(options);
    return 0;
  } catch (const std::exception &error) {
    fflush(stdout);
    fprintf(stderr, "%s: %s, cycle %llu, seed %llu: %s\n", name, statement().c_str(),
            static_cast<unsigned long long>(cycle()), static_cast<unsigned long long>(seed), error.what());
    return 1;
  }
}

} // namespace bench
