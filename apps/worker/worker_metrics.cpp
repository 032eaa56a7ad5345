#include "apps/worker/worker_metrics.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "telemetry/counter_table.hpp"
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

using telemetry::NamedCounter;
using Kind = telemetry::CounterKind;

constexpr std::array<NamedCounter<progress::EngineTimes>, 4> kTimes{{
    {"offload_worker_busy_seconds_total", "Worker's threads: time in turns with requests.",
     Kind::seconds, "busy_ns", &progress::EngineTimes::busy},
    {"offload_worker_poll_seconds_total", "Worker's threads: time without requests.", Kind::seconds,
     "poll_ns", &progress::EngineTimes::polling},
    {"offload_worker_sleep_seconds_total", "Worker's threads: time asleep.", Kind::seconds,
     "sleep_ns", &progress::EngineTimes::asleep},
    {"offload_worker_longest_turn_seconds", "Longest turn of a thread of the worker.",
     Kind::longest_seconds, "longest_turn_ns", &progress::EngineTimes::longest_turn},
}};

constexpr std::array<NamedCounter<WorkerCounts>, 6> kCounts{{
    {"offload_worker_attached", "Workers attached to a server.", Kind::gauge, nullptr,
     &WorkerCounts::attached},
    {"offload_worker_attaches_total", "Attachments to a server since the start.", Kind::count,
     "attaches", &WorkerCounts::attaches},
    {"offload_worker_losses_total", "Servers lost before they detached the worker.", Kind::count,
     "losses", &WorkerCounts::losses},
    {"offload_worker_channels", "Channels that the worker processes.", Kind::gauge, "channels",
     &WorkerCounts::channels},
    {"offload_worker_stuck_channels",
     "Channels with a request unanswered for --stuck-after or longer.", Kind::gauge,
     "stuck_channels", &WorkerCounts::stuck},
    {"offload_worker_faults_total", "Requests refused by the back end.", Kind::count, "faults",
     &WorkerCounts::faults},
}};

void collect_times(Exposition& page, const telemetry::Labels& labels, const WorkerCounts& counts) {
  const auto channels = counts.times();
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const backend::ChannelTimes& times = *channels[i];
    telemetry::Labels channel = labels;
    for (auto& label : page.shard("channel", i)) channel.push_back(std::move(label));
    telemetry::collect(page, channel, kTimes, times.turns);
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
    if (const std::string backend = counts.description().backend; !backend.empty()) {
      page.gauge_of_most({"offload_worker_info", "Constant 1; labels describe the back end."},
                         telemetry::with(labels, "backend", backend), 1);
    }
    telemetry::collect(page, labels, kCounts, counts);
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
    auto& object = workers.emplace_back(nlohmann::json{{"name", worker.name},
                                                       {"backend", description.backend},
                                                       {"data_path", description.data_path},
                                                       {"attached", counts.attached.value() != 0},
                                                       {"service", service_of(channels)}});
    telemetry::collect(object, kCounts, counts);
    telemetry::collect(object, kTimes, progress::EngineTimes{});  // there may be no channel yet
    for (const auto& channel : channels) telemetry::collect(object, kTimes, channel->turns);
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
