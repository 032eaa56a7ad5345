#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace offload::client {

/// An offload-server's counts at one moment, from /status of its --metrics.
struct ServerFigures {
  struct Stage {
    std::string name;
    std::vector<std::uint64_t> counts;  ///< by bucket
  };

  std::int64_t process = 0;
  std::uint64_t requests = 0;
  std::uint64_t responses = 0;
  std::uint64_t errors = 0;
  std::vector<std::uint64_t> bounds_ns;  ///< of the buckets but the last
  std::vector<Stage> stages;
  std::uint64_t busy_ns = 0;  ///< of all I/O threads, as are the next
  std::uint64_t poll_ns = 0;
  std::uint64_t sleep_ns = 0;
};

/// Asks a server. `address`: HOST:PORT of its --metrics. Throws Error.
ServerFigures scrape(const std::string& address);

/// Parses a /status. Throws Error for one that no offload-server sends.
ServerFigures read_server_figures(const std::string& status);

/// A server's counts between two moments.
struct ServerShare {
  struct Stage {
    std::string name;
    std::uint64_t count;
    std::optional<double> p50_us;  ///< as buckets tell; nothing if too few were timed
    std::optional<double> p99_us;
  };

  std::uint64_t requests;
  std::uint64_t responses;
  std::uint64_t errors;
  std::vector<Stage> stages;
  double busy;  ///< share of the I/O threads' time, as are the next; they add up to 1
  double polling;
  double asleep;
};

/// Throws Error if they are of two processes: the server was restarted meanwhile.
ServerShare between(const ServerFigures& before, const ServerFigures& after);

/// Some lines for people.
std::string make_text(const ServerShare& share);

}  // namespace offload::client
