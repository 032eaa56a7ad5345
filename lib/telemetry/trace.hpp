#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace offload::telemetry {

/// A Chrome trace, as Perfetto and chrome://tracing load it. Times are ticks of core::Clock (ns).
class Trace {
 public:
  /// A trace of this process. `program`: its name.
  explicit Trace(const std::string& program);

  /// A thread whose spans come from now on, until the next one.
  void begin_thread(std::string name);
  /// Adds a span of the thread. Each ends no earlier than the previous one; overlapping spans get
  /// separate rows, because viewers nest spans of one row.
  void add_span(const char* name, std::uint64_t begin, std::uint64_t end, std::uint64_t bytes);
  /// A span within the one that was added last.
  void add_part(const char* name, std::uint64_t begin, std::uint64_t end, std::uint64_t bytes);

  [[nodiscard]] std::string text() const;

 private:
  struct Row {
    int number;
    std::uint64_t end;  ///< of its last span
  };

  void add_name(const char* what, int row, const std::string& name);

  std::string events_;  ///< JSON objects with commas between
  std::string thread_;
  std::vector<Row> rows_;  ///< of the thread
  int last_row_ = 0;       ///< of all threads
  int row_ = 0;            ///< of the last span
};

}  // namespace offload::telemetry
