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

std::vector<backend::SharedChannelTimes> WorkerCounts::times_of(std::size_t count) {
  const std::lock_guard lock(mutex_);
  while (times_.size() < count) times_.push_back(std::make_shared<backend::ChannelTimes>());
  return {times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(count)};
}

std::vector<backend::SharedChannelTimes> WorkerCounts::times() const {
  const std::lock_guard lock(mutex_);
  return times_;
}

namespace {

void collect_times(Exposition& page, const telemetry::Labels& labels, const WorkerCounts& counts) {
  const auto channels = counts.times();
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const backend::ChannelTimes& times = *channels[i];
    telemetry::Labels channel = labels;
    for (auto& label : page.shard("channel", i)) channel.push_back(std::move(label));
    page.counter_of_seconds(
        {"offload_worker_busy_seconds_total", "Worker's threads: turns with requests."}, channel,
        times.turns.busy.value());
    page.counter_of_seconds(
        {"offload_worker_poll_seconds_total", "Worker's threads: turns that found none."}, channel,
        times.turns.polling.value());
    page.counter_of_seconds({"offload_worker_sleep_seconds_total", "Worker's threads: asleep."},
                            channel, times.turns.asleep.value());
    page.gauge_of_most(
        {"offload_worker_longest_turn_seconds", "The longest turn of a worker's thread."}, channel,
        static_cast<double>(times.turns.longest_turn.value()) / 1e9);
    page.histogram({"offload_worker_service_duration_seconds",
                    "One of 64 slots, from when the worker had found its requests until they were "
                    "answered."},
                   labels, times.service);
  }
}

}  // namespace

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
    page.counter({"offload_worker_faults_total", "Requests that the back end refused."}, labels,
                 number(counts.faults));
    collect_times(page, labels, counts);
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
    progress::EngineTimes all;
    for (const auto& channel : counts.times()) {
      all.busy.add(channel->turns.busy.value());
      all.polling.add(channel->turns.polling.value());
      all.asleep.add(channel->turns.asleep.value());
    }
    workers.push_back({{"name", worker.name},
                       {"attached", counts.attached.value() != 0},
                       {"attaches", counts.attaches.value()},
                       {"losses", counts.losses.value()},
                       {"channels", counts.channels.value()},
                       {"stuck_channels", counts.stuck.value()},
                       {"busy_ns", all.busy.value()},
                       {"poll_ns", all.polling.value()},
                       {"sleep_ns", all.asleep.value()},
                       {"faults", counts.faults.value()}});
    for (auto& event : counts.events.to_json()) events.push_back(std::move(event));
  }
  return {{"workers", std::move(workers)}, {"events", std::move(events)}};
}

/// A thread of the trace is a channel; of several workers each has a thousand of them.
nlohmann::json WorkerMetrics::trace() const {
  constexpr std::size_t kThreadsOfOne = 1000;
  auto spans = nlohmann::json::array();
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    const auto channels = workers_[worker].counts->times();
    for (std::size_t i = 0; i < channels.size(); ++i) {
      for (const backend::ServiceSample& sample : channels[i]->samples.latest()) {
        telemetry::add_span(spans, "service", worker * kThreadsOfOne + i, sample.began,
                            sample.ended, sample.length);
      }
    }
  }
  return spans;
}

}  // namespace offload::worker
