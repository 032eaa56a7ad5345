#pragma once

#include <string>
#include <vector>

#include "cli/options.hpp"
#include "core/exit_status.hpp"
#include "kernels/channel_layout.hpp"

/// Shared by the benchmarks that measure once and exit.
namespace offload::bench {

inline void add_sizes(cli::CommandLine& line, std::vector<std::uint32_t>& sizes) {
  const auto read = [](const std::string& text) {
    return cli::read_sizes(text, 0, kernels::kMaxMessageLength);
  };
  cli::add(
      line, "--sizes", sizes, read,
      fmt::format("a list of sizes from 0 to {}, such as 64,4k,64k", kernels::kMaxMessageLength),
      "Use these message sizes, in bytes");
}

/// Runs the body of a main: `declare` adds an option for each of Options' members but output; `run`
/// measures and returns the exit status. An exception of either is the program's last message.
template <class Options, class Declare>
int run_program(int argc, char** argv, const std::string& name, const std::string& description,
                Declare declare, int (*run)(const Options&)) {
  return core::exit_status_of(name, [&] {
    Options options;
    cli::CommandLine line(name, description);
    declare(line, options);
    cli::add_text(line, "--output", options.output, "Also write the results to this file");
    if (const auto leave = line.parse(argc, argv)) return cli::leave(*leave);
    return run(options);
  });
}

}  // namespace offload::bench
