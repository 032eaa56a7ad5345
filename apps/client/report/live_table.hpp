#pragma once

#include <cstdint>
#include <optional>

#include "apps/client/run/time_line.hpp"
#include "core/clock.hpp"

namespace offload::client {

/// A table on standard error that grows by a line each second of a run, if that is a terminal. One
/// thread.
class LiveTable {
 public:
  /// `quiet`: not even on a terminal.
  explicit LiveTable(bool quiet);

  /// A run begins. `length`: of its sending, warm-up included, if it is known. `open_loop`: shows
  /// the response time, else the service time.
  void begin(std::optional<core::Duration> length, bool open_loop);
  void show(const results::RunInterval& second);

 private:
  bool on_;
  bool open_loop_ = false;
  std::optional<core::Duration> length_;
  std::uint64_t lines_ = 0;
};

}  // namespace offload::client
