#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/client/experiment/paired_comparison.hpp"
#include "apps/client/load/request_log.hpp"
#include "apps/client/options.hpp"
#include "apps/client/run/load_run.hpp"
#include "apps/client/run/run_result.hpp"
#include "core/signals.hpp"

namespace offload::client {

/// A run of a target that is too short to be told about alone.
struct Slice {
  SliceFigures figures;
  bool client_late = false;
  bool failed = false;       ///< by an error
  std::string fault;         ///< the first one; empty: none, or errors are only counted
  bool interrupted = false;  ///< by a signal
};

/// The short runs of a load on one target. Each makes its own connections, which end with it.
class SliceRunner {
 public:
  SliceRunner(Options options, core::Signals& signals);

  /// Makes a slice. `number`: of the pair, so that both targets get the same requests. Throws
  /// Error.
  Slice run(std::uint64_t number);

  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] const SliceCounts& counts() const noexcept { return counts_; }
  /// Returns all slices as one run; their times follow each other with gaps.
  RunResult take_sum();

 private:
  [[nodiscard]] SliceFigures figures_of(const RunResult& result, core::TimePoint measured_from);
  void count(const RunResult& result);
  void add_to_sum(const RunResult& result);

  Options options_;
  core::Signals& signals_;
  std::uint64_t seed_;
  Load load_;
  RequestLog log_;
  SliceCounts counts_;
  RunResult sum_;
  core::Duration measured_{};  ///< the time of the intervals in the sum
  std::vector<double> latencies_;
};

}  // namespace offload::client
