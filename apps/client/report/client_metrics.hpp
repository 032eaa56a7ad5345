#pragma once

#include <cstdint>
#include <mutex>
#include <nlohmann/json_fwd.hpp>

#include "apps/client/load/interval.hpp"
#include "telemetry/histograms.hpp"
#include "telemetry/routes.hpp"

namespace offload::client {

/// The metrics of the load client (--metrics): what all runs of the command have counted so far,
/// warm-ups included. The main thread adds the load threads' intervals, about one a second of each,
/// so the load threads do nothing for it. Any thread may read.
class ClientMetrics final : public telemetry::Source {
 public:
  /// `open_loop`: there are response times and schedule lags.
  explicit ClientMetrics(bool open_loop) : open_loop_(open_loop) {}

  void begin_run();
  void add(const Interval& interval);
  void end_run();

  void collect(telemetry::Exposition& page) const override;
  [[nodiscard]] telemetry::Condition health() const override;
  /// Returns whether a run is under way.
  [[nodiscard]] telemetry::Condition readiness() const override;
  [[nodiscard]] nlohmann::json status() const override;
  void trace(telemetry::Trace& /*trace*/) const override {}

 private:
  const bool open_loop_;
  mutable std::mutex mutex_;  ///< of all that follows
  bool is_running_ = false;
  std::uint64_t runs_ = 0;  ///< that ended
  std::uint64_t connects_ = 0;
  IntervalCounts counts_;
  telemetry::DurationHistogram service_;
  telemetry::DurationHistogram response_;
  telemetry::DurationHistogram lag_;
};

}  // namespace offload::client
