#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/client/load/request_log.hpp"
#include "apps/client/load/target.hpp"
#include "apps/client/options.hpp"
#include "apps/client/requests/request_pool.hpp"
#include "apps/client/requests/schedule.hpp"
#include "apps/client/run/run_result.hpp"
#include "core/signals.hpp"

namespace offload::client {

/// The state that the runs of a command share, made once.
struct Load {
  /// Waits for the server's name to be known, for --connect-timeout; if a signal comes first, the
  /// target has no address. Throws Error for a name that stays unknown, a file that cannot be read,
  /// ...; core::Interrupted if a signal comes while a command of --verify runs.
  Load(const Options& options, const core::Signals& signals);

  /// The requests of a kind, and where they go.
  struct Part {
    std::string name;  ///< empty: there is one kind
    std::uint16_t port = 0;
    double share = 1;  ///< of the load
    RequestPool pool;
    Target target{};
  };

  std::optional<Schedule> schedule;
  std::vector<Part> parts;  ///< at least one
};

/// Is told about the progress of a run, on the thread that calls run_load().
struct RunObserver {
  RequestLog* log = nullptr;  ///< takes a record of each request
  std::function<void()> on_start = [] {};
  /// Takes each interval of a load thread; before the start, one with the first connections.
  std::function<void(const Interval&)> on_interval = [](const Interval&) {};
  TimeLine::OnSecond on_second = [](const results::RunInterval&) {};
  std::function<void()> on_turn = [] {};  ///< every 0.1 s at least
};

/// Connects, starts all threads at the same time, and waits until they end. A signal stops all of
/// them, and so does the first fault unless errors are counted. Throws core::Error if it cannot
/// connect; where errors are counted, only if no connection comes about.
RunResult run_load(const Options& options, const RunSetting& setting, const Load& load,
                   core::Signals& signals, const RunObserver& observer);

}  // namespace offload::client
