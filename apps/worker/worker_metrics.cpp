#include "apps/worker/worker_metrics.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "telemetry/trace.hpp"

namespace offload::worker {

using telemetry::Exposition;

void WorkerMetrics::add(std::string name, std::shared_ptr<const WorkerCounts> counts) {
  workers_.push_back({std::move(name), std::move(counts)});
}

void WorkerMetrics::note_turn(core::TimePoint now, bool leaving) noexcept {
  turns_.note(now);
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

void WorkerCounts::describe(Description description) {
  const std::lock_guard lock(mutex_);
  description_ = std::move(description);
}

WorkerCounts::Description WorkerCounts::description() const {
  const std::lock_guard lock(mutex_);
  return description_;
}

namespace {

void collect_times(Exposition& page, const telemetry::Labels& labels, const WorkerCounts& counts) {
  const auto channels = counts.times();
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const backend::ChannelTimes& times = *channels[i];
    telemetry::Labels channel = labels;
    for (auto& label : page.shard("channel", i)) channel.push_back(std::move(label));
    page.counter_of_seconds(
        {"offload_worker_busy_seconds_total", "Worker's threads: time in turns with requests."},
        channel, times.turns.busy.value());
    page.counter_of_seconds(
        {"offload_worker_poll_seconds_total", "Worker's threads: time without requests."}, channel,
        times.turns.polling.value());
    page.counter_of_seconds(
        {"offload_worker_sleep_seconds_total", "Worker's threads: time asleep."}, channel,
        times.turns.asleep.value());
    page.gauge_of_most(
        {"offload_worker_longest_turn_seconds", "Longest turn of a thread of the worker."}, channel,
        static_cast<double>(times.turns.longest_turn.value()) / 1e9);
    page.histogram({"offload_worker_service_duration_seconds",
                    "Duration of one in 64 slots, from when the worker found its requests until it "
                    "had answered them."},
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
    if (const std::string backend = counts.description().backend; !backend.empty()) {
      page.gauge_of_most({"offload_worker_info", "Constant 1; labels describe the back end."},
                         telemetry::with(labels, "backend", backend), 1);
    }
    page.gauge({"offload_worker_attached", "Workers attached to a server."}, labels,
               number(counts.attached));
    page.counter({"offload_worker_attaches_total", "Attachments to a server since the start."},
                 labels, number(counts.attaches));
    page.counter({"offload_worker_losses_total", "Servers lost before they detached the worker."},
                 labels, number(counts.losses));
    page.gauge({"offload_worker_channels", "Channels that the worker processes."}, labels,
               number(counts.channels));
    page.gauge({"offload_worker_stuck_channels",
                "Channels with a request unanswered for --stuck-after or longer."},
               labels, number(counts.stuck));
    page.counter({"offload_worker_faults_total", "Requests refused by the back end."}, labels,
                 number(counts.faults));
    collect_times(page, labels, counts);
  }
  page.gauge({"offload_worker_ready", "1 if /readyz returns 200."}, {}, readiness().holds ? 1 : 0);
}

telemetry::Condition WorkerMetrics::readiness() const {
  if (leaving_.load(std::memory_order_relaxed)) return {false, "the worker is shutting down"};
  for (const Entry& worker : workers_) {
    if (worker.counts->attached.value() != 0) continue;
    return {false, (worker.name.empty() ? "" : worker.name + ": ") + "not attached to a server"};
  }
  return {true, "attached"};
}

namespace {

/// Counts of service durations by bucket, of all channels.
nlohmann::json service_of(const std::vector<backend::SharedChannelTimes>& channels) {
  auto counts = nlohmann::json::array();
  for (std::size_t bucket = 0; bucket <= telemetry::DurationHistogram::kBounds.size(); ++bucket) {
    std::uint64_t sum = 0;
    for (const auto& channel : channels) sum += channel->service.count_at(bucket);
    counts.push_back(sum);
  }
  return counts;
}

}  // namespace

nlohmann::json WorkerMetrics::status() const {
  auto workers = nlohmann::json::array();
  auto events = nlohmann::json::array();
  for (const Entry& worker : workers_) {
    const WorkerCounts& counts = *worker.counts;
    const auto channels = counts.times();
    const WorkerCounts::Description description = counts.description();
    progress::EngineTimes all;
    std::uint64_t longest = 0;
    for (const auto& channel : channels) {
      all.busy.add(channel->turns.busy.value());
      all.polling.add(channel->turns.polling.value());
      all.asleep.add(channel->turns.asleep.value());
      longest = std::max(longest, channel->turns.longest_turn.value());
    }
    workers.push_back({{"name", worker.name},
                       {"backend", description.backend},
                       {"data_path", description.data_path},
                       {"attached", counts.attached.value() != 0},
                       {"attaches", counts.attaches.value()},
                       {"losses", counts.losses.value()},
                       {"channels", counts.channels.value()},
                       {"stuck_channels", counts.stuck.value()},
                       {"busy_ns", all.busy.value()},
                       {"poll_ns", all.polling.value()},
                       {"sleep_ns", all.asleep.value()},
                       {"longest_turn_ns", longest},
                       {"service", service_of(channels)},
                       {"faults", counts.faults.value()}});
    for (auto& event : counts.events.to_json()) events.push_back(std::move(event));
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const auto& one, const auto& other) { return one["time"] < other["time"]; });
  return {{"workers", std::move(workers)},
          {"bounds_ns", telemetry::DurationHistogram::kBounds},
          {"events", std::move(events)}};
}

void WorkerMetrics::trace(telemetry::Trace& trace) const {
  for (const Entry& worker : workers_) {
    const auto channels = worker.counts->times();
    for (std::size_t i = 0; i < channels.size(); ++i) {
      trace.begin_thread(
          fmt::format("{}{}channel {}", worker.name, worker.name.empty() ? "" : ", ", i));
      for (const backend::ServiceSample& sample : channels[i]->samples.latest()) {
        trace.add_span("service", sample.began, sample.ended, sample.length);
      }
    }
  }
}

}  // namespace offload::worker
