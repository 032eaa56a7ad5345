#include "apps/worker/worker_metrics.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace offload::worker {

using telemetry::Exposition;

void WorkerMetrics::add(std::string name, std::shared_ptr<const WorkerCounts> counts) {
  workers_.push_back({std::move(name), std::move(counts)});
}

void WorkerMetrics::note_turn(core::TimePoint now, bool leaving) noexcept {
  turned_.set(static_cast<std::uint64_t>(now.time_since_epoch().count()));
  leaving_.store(leaving, std::memory_order_relaxed);
}

void WorkerMetrics::collect(Exposition& page) const {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const WorkerCounts& counts = *workers_[i].counts;
    const telemetry::Labels labels = page.shard("worker", i);
    const auto number = [](const core::Counter& counter) {
      return static_cast<double>(counter.value());
    };
    page.gauge({"offload_worker_attached", "Workers that are attached to a server."}, labels,
               number(counts.attached));
    page.counter({"offload_worker_attaches_total", "Attachments to a server."}, labels,
                 number(counts.attaches));
    page.counter(
        {"offload_worker_losses_total", "Servers that are gone, and did not let the worker go."},
        labels, number(counts.losses));
    page.gauge({"offload_worker_channels", "Channels that are served."}, labels,
               number(counts.channels));
    page.gauge({"offload_worker_stuck_channels",
                "Channels with a request that is unanswered for --stuck-after."},
               labels, number(counts.stuck));
    page.counter_of_seconds(
        {"offload_worker_busy_seconds_total", "Back end's threads: turns with requests."}, labels,
        counts.busy.value());
    page.counter_of_seconds(
        {"offload_worker_poll_seconds_total", "Back end's threads: turns that found none."}, labels,
        counts.polling.value());
    page.counter_of_seconds({"offload_worker_sleep_seconds_total", "Back end's threads: asleep."},
                            labels, counts.asleep.value());
    page.counter({"offload_worker_faults_total", "Requests that the back end refused."}, labels,
                 number(counts.faults));
  }
  page.gauge({"offload_worker_ready", "Whether /readyz says so."}, {}, readiness().holds ? 1 : 0);
}

telemetry::Condition WorkerMetrics::health() const {
  const core::TimePoint turned{core::Duration(static_cast<core::Duration::rep>(turned_.value()))};
  const auto since = core::Clock::now() - turned;
  return {since < kLongestTurn,
          fmt::format("the main thread turned {:.1f} s ago", core::to_seconds(since))};
}

telemetry::Condition WorkerMetrics::readiness() const {
  if (leaving_.load(std::memory_order_relaxed)) return {false, "the worker leaves"};
  for (const Entry& worker : workers_) {
    if (worker.counts->attached.value() != 0) continue;
    return {false, (worker.name.empty() ? "" : worker.name + ": ") + "it is attached to no server"};
  }
  return {true, "attached"};
}

nlohmann::json WorkerMetrics::status() const {
  auto workers = nlohmann::json::array();
  auto events = nlohmann::json::array();
  for (const Entry& worker : workers_) {
    const WorkerCounts& counts = *worker.counts;
    workers.push_back({{"name", worker.name},
                       {"attached", counts.attached.value() != 0},
                       {"attaches", counts.attaches.value()},
                       {"losses", counts.losses.value()},
                       {"channels", counts.channels.value()},
                       {"stuck_channels", counts.stuck.value()},
                       {"busy_ns", counts.busy.value()},
                       {"poll_ns", counts.polling.value()},
                       {"sleep_ns", counts.asleep.value()},
                       {"faults", counts.faults.value()}});
    for (auto& event : counts.events.to_json()) events.push_back(std::move(event));
  }
  return {{"workers", std::move(workers)}, {"events", std::move(events)}};
}

/// What a worker does with each request is in the server's trace.
nlohmann::json WorkerMetrics::trace() const {
  return nlohmann::json::array();
}

}  // namespace offload::worker
