#pragma once

#include <functional>
#include <optional>
#include <string>

#include "apps/rdma_tasks/bring_up/bring_up_options.hpp"
#include "apps/rdma_tasks/bring_up/finding.hpp"
#include "apps/rdma_tasks/bring_up/lane_loopback.hpp"
#include "apps/rdma_tasks/bring_up/verbs_loopback.hpp"
#include "core/signals.hpp"

namespace offload::rdma_tool {

/// The steps of `offload-rdma bring-up`, one after the other, each with a finding. Steps that need
/// a failed one are not tried. One thread.
class BringUp {
 public:
  /// Called with each finding as soon as its step ends.
  using Show = std::function<void(const StepFinding&)>;

  BringUp(const BringUpOptions& options, core::Signals& signals, Show show);
  BringUp& operator=(BringUp&&) = delete;

  /// Runs all steps, each wait within the time-out. Throws core::Interrupted.
  const StepFindings& run();

 private:
  /// An action of a step: returns what it found, or throws Error.
  using Action = std::function<std::string()>;

  void run_steps();
  /// Adds a finding; returns whether the data path works with it.
  bool add(StepFinding finding);
  /// Adds the finding of `action`; returns whether it was good.
  bool attempt(StepVerdict on_failure, const std::string& step, const std::string& to_fix,
               const Action& action);
  /// Returns whether the device is open and its port is in use.
  bool open_device();
  bool run_verbs();
  /// Returns whether all operations over rings of this kind were right; nothing if the device has
  /// no such rings.
  std::optional<bool> run_lanes(Rings kind, bool is_chosen);
  bool run_lane_steps(LaneLoopback& loopback, const std::string& kind, StepVerdict on_failure);
  void conclude(bool verbs, std::optional<bool> card, std::optional<bool> proxy);

  BringUpOptions options_;
  core::Signals& signals_;
  Show show_;
  StepFindings findings_;
  bool has_atomics_ = false;
  bool has_gpu_ = false;
};

}  // namespace offload::rdma_tool
