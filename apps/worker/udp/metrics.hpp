#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "apps/worker/udp/runner.hpp"
#include "core/clock.hpp"
#include "telemetry/turn_watch.hpp"
#include "telemetry/view.hpp"

namespace offload::worker {

/// The metrics of the worker with --udp. The main thread takes the figures, some of them by system
/// calls; the view's thread reports the latest ones.
class DatagramMetrics final : public telemetry::Source {
 public:
  /// How old a figure may be: a page is not made more often.
  static constexpr core::Duration kAge = telemetry::View::kPageAge;

  /// `backend` and `service`: what serves, for people.
  DatagramMetrics(std::string backend, std::string service);

  /// The main thread's, every kAge. Throws Error if the kernel does not tell a counter.
  void take(const DatagramRunner& runner, const packet::Port& port, core::TimePoint now);
  /// From now on it is not ready.
  void leave();

  void collect(telemetry::Exposition& page) const override;
  [[nodiscard]] telemetry::Condition health() const override { return turns_.health(); }
  /// Returns whether datagrams are answered.
  [[nodiscard]] telemetry::Condition readiness() const override;
  [[nodiscard]] nlohmann::json status() const override;
  /// Nothing: a datagram has no stages.
  void trace(telemetry::Trace&) const override {}

 private:
  struct Figures {
    bool leaves = false;
    std::vector<kernels::packet::DatagramCounts> queues{};
    std::vector<packet::RuleCount> rules{};
    packet::Socket::Statistics driver{};
    std::uint64_t wake_ups = 0;
  };
  [[nodiscard]] Figures figures() const;

  std::string backend_;
  std::string service_;
  telemetry::TurnWatch turns_{"main thread"};
  mutable std::mutex mutex_;
  Figures figures_;  ///< under the mutex
};

/// The counters of a group while it writes them: each is right, their sums may be of two moments.
kernels::packet::DatagramCounts read_counts(const kernels::packet::DatagramCounts& shown);

}  // namespace offload::worker
