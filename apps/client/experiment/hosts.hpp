#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/client/experiment/answer.hpp"
#include "apps/client/experiment/experiment.hpp"
#include "core/signals.hpp"

namespace offload::client {

/// The clock of a host beside that of this machine, in seconds.
struct ClockOffset {
  double offset = 0;       ///< what to add to a time of this machine
  double uncertainty = 0;  ///< the offset is within this
};

/// One question of a clock: the time before it was asked, its answer, and the time after.
struct ClockReading {
  double before = 0;
  double answer = 0;
  double after = 0;
};

/// Returns the offset by the reading that took the shortest time: the answer is from the middle of
/// it, within half of that time. `readings`: at least one.
ClockOffset offset_of(const std::vector<ClockReading>& readings);

struct HostClock {
  std::string host;
  ClockOffset clock;
};

/// Runs a load on one target from all hosts of the experiment at the same time: offload-client is
/// started on each, `local` or by ssh, and offload-report merges the results, which are kept in
/// `folder`. The clocks of other hosts are asked first, so that all begin at the same time.
/// `result`: the merged one, format 1 as JSON; empty if there is none.
Answer run_on_hosts(const Experiment& experiment, const ExperimentTarget& target,
                    const ExperimentLoad& load, const std::string& folder, core::Signals& signals,
                    std::vector<HostClock>& clocks, std::string& result);

}  // namespace offload::client
