#include <fmt/core.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "bench/doca/way.hpp"
#include "cli/options.hpp"
#include "core/exit_status.hpp"

/// Measures what DOCA's interface costs: the same messages by its calls and by the objects behind
/// them, in turn. Control messages and data go through sockets of this machine, RDMA writes to a
/// device that has done at once what is posted, or in bench-doca-device to a real one. Times are
/// those of the processor, system calls included.
namespace offload::bench {
namespace {

struct Options {
  std::uint64_t messages = 2'000;
  std::uint32_t rounds = 51;
  std::vector<std::uint32_t> sizes{64, 1024};
  std::vector<std::uint32_t> in_flight{1, 16};
  std::string kind = "all";
  std::string only = "both";
};

struct Kind {
  const char* name;
  std::size_t longest;
  MakeWay by_objects;
  MakeWay by_calls;
};

constexpr std::array<Kind, 3> kKinds{
    Kind{"message", 4080, messages_by_objects, messages_by_calls},
    Kind{"data", 1 << 20, data_by_objects, data_by_calls},
    Kind{"write", 1 << 20, writes_by_objects, writes_by_calls},
};

/// The time that this thread has had its processor, ns.
double processor_time() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Returns the time of a message, ns.
double measure(Way& way, std::uint64_t messages) {
  const double begun = processor_time();
  way.carry(messages);
  return (processor_time() - begun) / static_cast<double>(messages);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void compare(const Kind& kind, const Load& load, const Options& options) {
  const auto objects = kind.by_objects(load);
  const auto calls = kind.by_calls(load);
  objects->carry(options.messages);
  calls->carry(options.messages);
  std::vector<double> by_objects;
  std::vector<double> by_calls;
  std::vector<double> ratios;
  for (std::uint32_t i = 0; i < options.rounds; ++i) {
    const bool objects_first = i % 2 == 0;
    if (objects_first) by_objects.push_back(measure(*objects, options.messages));
    by_calls.push_back(measure(*calls, options.messages));
    if (!objects_first) by_objects.push_back(measure(*objects, options.messages));
    ratios.push_back(by_objects.back() / by_calls.back());
  }
  const auto [least, greatest] = std::minmax_element(ratios.begin(), ratios.end());
  fmt::print("{:8} {:7} {:9} {:11.0f} {:11.0f} {:7.3f} ({:.2f}, {:.2f})\n", kind.name, load.size,
             load.in_flight, median(by_objects), median(by_calls), median(ratios), *least,
             *greatest);
}

/// Carries messages by one way, for a tool that counts instructions.
void carry_only(const Kind& kind, const Load& load, const Options& options) {
  const auto way = options.only == "objects" ? kind.by_objects(load) : kind.by_calls(load);
  fmt::print("{:8} {:7} {:9} {:11.0f}\n", kind.name, load.size, load.in_flight,
             measure(*way, options.messages));
}

/// A folder for sockets, while it lives.
class SocketFolder {
 public:
  SocketFolder() {
    if (::mkdtemp(path_) == nullptr) core::throw_errno("cannot make a folder for sockets");
    ::setenv("OFFLOAD_RUNTIME_DIR", path_, 1);
    ::setenv("OFFLOAD_DOCA_DEVICES", "03:00.0/b1:00.0,b1:00.0", 1);
    ::unsetenv("OFFLOAD_DOCA_COMCH");
  }
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder() { ::rmdir(path_); }

 private:
  char path_[32] = "/tmp/bench-doca-XXXXXX";
};

int run(const Options& options) {
  const SocketFolder folder;
  if (options.only == "both") {
    fmt::print("{:8} {:>7} {:>9} {:>11} {:>11} {:>7} (least, greatest)\n", "kind", "bytes",
               "in flight", "objects, ns", "calls, ns", "ratio");
  }
  for (const Kind& kind : kKinds) {
    if (options.kind != "all" && options.kind != kind.name) continue;
    for (const std::uint32_t size : options.sizes) {
      for (const std::uint32_t in_flight : options.in_flight) {
        const Load load{size, in_flight};
        if (size > kind.longest) continue;
        options.only == "both" ? compare(kind, load, options) : carry_only(kind, load, options);
        std::fflush(stdout);
      }
    }
  }
  return 0;
}

void declare(cli::CommandLine& line, Options& options) {
  const auto one_of = [](std::vector<std::string> words) {
    return [words](const std::string& text) {
      return std::find(words.begin(), words.end(), text) != words.end() ? std::optional(text)
                                                                        : std::nullopt;
    };
  };
  cli::add(line, "--kind NAME", options.kind, one_of({"all", "message", "data", "write"}),
           "all, message, data or write", "Measure this kind of message");
  cli::add(line, "--only WAY", options.only, one_of({"both", "objects", "calls"}),
           "both, objects or calls", "Carry messages by this way only, without a comparison");
  cli::add_integer<std::uint64_t>(line, "--messages", options.messages, 1, 1'000'000'000,
                                  "Carry this number of messages in each round");
  cli::add_integer<std::uint32_t>(line, "--rounds", options.rounds, 1, 100'000,
                                  "Measure this number of rounds of each way");
  cli::add(
      line, "--sizes LIST", options.sizes,
      [](const std::string& text) { return cli::read_sizes(text, 1, 1 << 20); },
      "a list of sizes from 1 to 1048576, such as 64,4k", "Use these message sizes, in bytes");
  cli::add(
      line, "--in-flight LIST", options.in_flight,
      [](const std::string& text) { return cli::read_sizes(text, 1, 64); },
      "a list of numbers from 1 to 64", "Keep these numbers of messages in flight");
}

}  // namespace
}  // namespace offload::bench

int main(int argc, char** argv) {
  using namespace offload;
  return core::exit_status_of(::program_invocation_short_name, [&] {
    bench::Options options;
    cli::CommandLine line(
        ::program_invocation_short_name,
        "Compares messages by DOCA's interface with the same by the objects that "
        "the library has behind it. A ratio below 1 is the cost of the interface.");
    bench::declare(line, options);
    if (const auto leave = line.parse(argc, argv)) return cli::leave(*leave);
    return bench::run(options);
  });
}
