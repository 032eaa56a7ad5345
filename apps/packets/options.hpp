#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "apps/packets/lane.hpp"
#include "cli/leave.hpp"
#include "cli/log_options.hpp"
#include "core/clock.hpp"

namespace offload::packets {

struct Options {
  Command command = Command::count;
  std::string interface;
  std::string backend = "cpu";
  std::vector<std::string> rules;  ///< that were said
  std::uint32_t queues = 1;
  std::uint32_t frames = 2048;
  std::uint32_t batch = 32;
  bool only_copy = false;
  core::Duration duration{};  ///< 0: until a signal
  std::string output;
  cli::LogOptions log;

  std::uint16_t port = 7;  ///< of echo
  std::uint64_t statistics_every = 1000;
  std::string file;        ///< of capture
  std::uint64_t most = 0;  ///< packets of send and capture; 0: no end

  // The options of send.
  std::string from;  ///< ADDRESS:PORT
  std::string to;
  std::string to_mac = "ff:ff:ff:ff:ff:ff";
  std::vector<std::uint32_t> sizes = {64};
  std::uint64_t rate = 0;  ///< packets a second; 0: as fast as it goes
};

std::string_view name_of(Command command) noexcept;

/// The rules that were said; else the command's own, for an interface with these addresses.
std::vector<std::string> rules_of(const Options& options,
                                  const std::vector<std::string>& addresses);

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv);

}  // namespace offload::packets
