#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "apps/client/load/load_thread.hpp"
#include "apps/client/load/request_log.hpp"
#include "apps/client/load/run_control.hpp"
#include "apps/client/options.hpp"
#include "apps/client/run/load_run.hpp"
#include "apps/client/run/run_result.hpp"
#include "core/signals.hpp"

namespace offload::client {

using LoadThreads = std::vector<std::unique_ptr<LoadThread>>;

/// The connections of a run, of all threads.
inline std::size_t connection_count(const Options& options) {
  return std::size_t{options.thread_count} * options.connections;
}

/// The threads of a run, and the part that each belongs to.
struct Prepared {
  LoadThreads threads;
  std::vector<std::size_t> parts;
  std::size_t connections = 0;  ///< made or given up
};

/// Connects and makes the threads of all parts; fewer if a signal arrived. Adds to `result` which
/// connections failed, and the kinds.
Prepared prepare(RunResult& result, const Options& options, const RunSetting& setting,
                 const Load& load, const core::Signals& signals, RunControl& control,
                 RequestLog* log);

}  // namespace offload::client
