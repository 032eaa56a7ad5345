#include "apps/server/view/server_metrics.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/probe.hpp"
#include "telemetry/counter_table.hpp"
#include "telemetry/trace.hpp"

namespace offload::server {
namespace {

using progress::EngineTimes;
using protocol::Refusal;
using telemetry::Exposition;
using telemetry::Labels;
using telemetry::NamedCounter;
using telemetry::with;
using Kind = telemetry::CounterKind;

constexpr std::array<NamedCounter<ThreadMetrics>, 7> kClients{{
    {"offload_server_connections", "Connected clients.", Kind::gauge, "connections",
     &ThreadMetrics::connections},
    {"offload_server_connections_accepted_total", "Accepted client connections.", Kind::count,
     "accepted", &ThreadMetrics::accepted},
    {"offload_server_requests_total", "Requests received.", Kind::count, "requests",
     &ThreadMetrics::requests},
    {"offload_server_culprits_total", "Requests refused because three workers were lost with them.",
     Kind::count, nullptr, &ThreadMetrics::culprits},
    {"offload_server_slow_requests_total", "Requests that took --slow-request or longer.",
     Kind::count, "slow_requests", &ThreadMetrics::slow_requests},
    {"offload_server_receive_bytes_total", "Bytes received from clients.", Kind::count,
     "receive_bytes", &ThreadMetrics::received},
    {"offload_server_transmit_bytes_total",
     "Bytes to clients, sent or buffered until the clients read.", Kind::count, "transmit_bytes",
     &ThreadMetrics::transmitted},
}};

constexpr telemetry::Metric kResponses{
    "offload_server_responses_total",
    "Responses to clients, by result: ok, or the reason of an error frame."};
constexpr std::array<NamedCounter<ThreadMetrics>, 1> kGoodResponses{
    {{kResponses.name, kResponses.help, Kind::count, "responses", &ThreadMetrics::responses}}};

constexpr std::array<NamedCounter<ThreadMetrics>, 3> kChannel{{
    {"offload_channel_slots", "Requests that fit in the channel.", Kind::gauge, "slots",
     &ThreadMetrics::slots},
    {"offload_channel_in_flight", "Requests that the worker has not answered yet.", Kind::gauge,
     "in_flight", &ThreadMetrics::in_flight},
    {"offload_channel_full_seconds_total", "Time during which the channel was full.", Kind::seconds,
     "channel_full_ns", &ThreadMetrics::channel_full},
}};

constexpr std::array<NamedCounter<EngineTimes>, 5> kThreadTimes{{
    {"offload_server_busy_seconds_total", "I/O threads' time in turns with work.", Kind::seconds,
     "busy_ns", &EngineTimes::busy},
    {"offload_server_poll_seconds_total", "I/O threads' time in turns without work.", Kind::seconds,
     "poll_ns", &EngineTimes::polling},
    {"offload_server_sleep_seconds_total", "I/O threads' time asleep.", Kind::seconds, "sleep_ns",
     &EngineTimes::asleep},
    {"offload_server_longest_turn_seconds", "Longest turn of an I/O thread since the start.",
     Kind::longest_seconds, "longest_turn_ns", &EngineTimes::longest_turn},
    {"offload_server_stalls_total", "I/O threads' turns of --stall-limit or longer.", Kind::count,
     "stalls", &EngineTimes::stalls},
}};

constexpr std::array<NamedCounter<EngineTimes>, 2> kControlTimes{{
    {"offload_server_control_longest_turn_seconds",
     "Longest turn of the control thread since the start.", Kind::longest_seconds,
     "longest_turn_ns", &EngineTimes::longest_turn},
    {"offload_server_control_stalls_total",
     "Turns of the control thread of --stall-limit or longer.", Kind::count, "stalls",
     &EngineTimes::stalls},
}};

/// Returns an exemplar with the numbers by which the log names the request.
telemetry::Exemplar exemplar_of(const SlowRequest& slow) {
  return {{{"client", std::to_string(slow.client)}, {"slow_request", std::to_string(slow.number)}},
          static_cast<double>(slow.took) / 1e9,
          static_cast<double>(slow.ended) / 1e9};
}

}  // namespace

ServerMetrics::ServerMetrics(std::vector<std::string> services, core::Duration stall_limit,
                             bool is_shown)
    : services_(std::move(services)),
      has_several_services_(std::ranges::adjacent_find(services_, std::ranges::not_equal_to()) !=
                            services_.end()) {
  for (std::size_t i = 0; i < services_.size(); ++i) {
    threads_.push_back(std::make_shared<ThreadMetrics>());
    threads_.back()->is_shown = is_shown;
    threads_.back()->times.stall_limit = static_cast<std::uint64_t>(stall_limit.count());
  }
  control_.stall_limit = static_cast<std::uint64_t>(stall_limit.count());
}

// ---- The control thread

void ServerMetrics::note_turn(core::TimePoint now, bool served, bool draining) {
  turns_.note(now);
  served_.store(served, std::memory_order_relaxed);
  draining_.store(draining, std::memory_order_relaxed);
  // The engine finds a turn too long when the next one begins.
  if (control_.stalls.value() != stalls_) report_stall(now);
  work_[1] = std::exchange(work_[0], {});
}

/// Reports the work of the turn before this one, which was too long.
void ServerMetrics::report_stall(core::TimePoint now) {
  stalls_ = control_.stalls.value();
  if (!stall_log_.allow(now)) return;
  const Work& work = work_[1];
  const std::string text = fmt::format(
      "control thread: a turn took {:.1f} ms, with {} workers attached, {} gone, {} commands, {} "
      "reloads",
      static_cast<double>(control_.last_stall.value()) / 1e6, work.attached, work.lost,
      work.commands, work.reloads);
  core::log_warning("{} ({} more were not logged)", text, stall_log_.suppressed());
  events_->add(text);
}

void ServerMetrics::note_attached(const comch::AttachedWorker& worker, std::string name) {
  attaches_.add();
  work_[0].attached += 1;
  OFFLOAD_PROBE1(attach, worker.id);
  events_->add(
      fmt::format("worker {} attached{}", name, worker.stands_by ? ", as a stand-by" : ""));
  const std::lock_guard lock(mutex_);
  workers_[worker.id] = {std::move(name), worker.backend, worker.key, 0,
                         std::chrono::system_clock::now()};
}

void ServerMetrics::note_serving(comch::WorkerId worker, std::uint32_t channels) {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(worker);
  if (found != workers_.end()) found->second.channels = channels;
}

void ServerMetrics::note_newest_key(std::string key) {
  const std::lock_guard lock(mutex_);
  newest_key_ = std::move(key);
}

void ServerMetrics::note_drained(bool drained) {
  drained_.store(drained, std::memory_order_relaxed);
  events_->add(drained ? "drained by a command" : "drain cancelled");
}

void ServerMetrics::note_lost(comch::WorkerId worker) {
  losses_.add();
  work_[0].lost += 1;
  OFFLOAD_PROBE1(loss, worker);
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  events_->add("worker " + found->second.name + " is gone");
  workers_.erase(found);
}

// ---- The view's thread

void ServerMetrics::collect(Exposition& page) const {
  collect_clients(page);
  collect_times(page);
  telemetry::collect(page, {}, kControlTimes, control_);
  collect_workers(page);
}

/// `labels` and the thread's service, if there are several.
Labels ServerMetrics::with_service(Labels labels, std::size_t thread) const {
  return has_several_services_ ? with(std::move(labels), "service", services_[thread]) : labels;
}

void ServerMetrics::collect_clients(Exposition& page) const {
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const ThreadMetrics& thread = *threads_[i];
    const Labels labels = with_service(page.shard("thread", i), i);
    telemetry::collect(page, labels, kClients, thread);
    for (std::size_t end = 0; end < kConnectionEnds.size(); ++end) {
      page.counter({"offload_server_connections_closed_total", "Closed connections, by reason."},
                   with(labels, "reason", kConnectionEnds[end]),
                   static_cast<double>(thread.closed[end].value()));
    }
    for (std::size_t kind = 0; kind < kHandshakeFailures.size(); ++kind) {
      page.counter({"offload_server_tls_failures_total", "Failed TLS handshakes, by reason."},
                   with(labels, "reason", kHandshakeFailures[kind]),
                   static_cast<double>(thread.tls_failures[kind].value()));
    }
    telemetry::collect(page, with(labels, "result", "ok"), kGoodResponses, thread);
    for (std::size_t code = 0; code < ThreadMetrics::kRefusals; ++code) {
      const std::string_view name = protocol::name_of(static_cast<Refusal>(code));
      if (name.empty() || thread.refused[code].value() == 0) continue;
      page.counter(kResponses, with(labels, "result", std::string(name)),
                   static_cast<double>(thread.refused[code].value()));
    }
    telemetry::collect(page, with_service(page.shard("channel", i), i), kChannel, thread);
  }
}

void ServerMetrics::collect_times(Exposition& page) const {
  constexpr telemetry::Metric kDuration{
      "offload_server_request_duration_seconds",
      "One in 64 requests, from its first bytes until its answer was written."};
  constexpr telemetry::Metric kStageDuration{
      "offload_server_stage_duration_seconds",
      "Duration of the stages of one in 64 requests: receive (all bytes), queue (until the worker "
      "has it), worker, send."};
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const ThreadMetrics& thread = *threads_[i];
    const Labels of_service = with_service({}, i);
    // The sums of a service's threads: separately, these would be most of the page.
    page.histogram({"offload_server_request_bytes", "Lengths of the payloads of requests."},
                   of_service, thread.request_bytes);
    page.histogram(kDuration, of_service, thread.duration);
    for (std::size_t bucket = 0; bucket < thread.last_slow.size(); ++bucket) {
      for (const SlowRequest& slow : thread.last_slow[bucket].latest()) {
        page.exemplar(kDuration, of_service, bucket, exemplar_of(slow));
      }
    }
    for (std::size_t stage = 0; stage < kStages.size(); ++stage) {
      page.histogram(kStageDuration, with(of_service, "stage", kStages[stage]),
                     thread.stages[stage]);
    }
    telemetry::collect(page, with_service(page.shard("thread", i), i), kThreadTimes, thread.times);
  }
}

void ServerMetrics::collect_workers(Exposition& page) const {
  double attached = 0;
  {
    const std::lock_guard lock(mutex_);
    attached = static_cast<double>(workers_.size());
  }
  page.gauge({"offload_server_workers_attached", "Attached workers."}, {}, attached);
  page.counter(
      {"offload_server_workers_attaches_total", "Workers that have attached since the start."}, {},
      static_cast<double>(attaches_.value()));
  page.counter({"offload_server_workers_losses_total",
                "Workers lost since the start: detached, dropped or ended."},
               {}, static_cast<double>(losses_.value()));
  page.gauge({"offload_server_ready", "1 if /readyz returns 200."}, {}, readiness().holds ? 1 : 0);
}

telemetry::Condition ServerMetrics::readiness() const {
  if (draining_.load(std::memory_order_relaxed)) return {false, "the server is shutting down"};
  if (drained_.load(std::memory_order_relaxed)) return {false, "drained by a command"};
  if (!served_.load(std::memory_order_relaxed)) return {false, "no worker answers"};
  if (full_.load(std::memory_order_relaxed)) return {false, "there is no room for another client"};
  return {true, "a worker answers"};
}

namespace {

/// The sum of a number of all threads.
template <class Read>
std::uint64_t sum_of(const std::vector<std::shared_ptr<ThreadMetrics>>& threads, Read read) {
  std::uint64_t sum = 0;
  for (const auto& thread : threads) sum += read(*thread);
  return sum;
}

/// Counts of all threads by bucket, from which a reader makes quantiles of any span of time.
/// `histogram`: the one of a thread.
template <class Histogram>
nlohmann::json counts_of(const std::vector<std::shared_ptr<ThreadMetrics>>& threads,
                         Histogram histogram) {
  auto counts = nlohmann::json::array();
  for (std::size_t bucket = 0; bucket <= telemetry::DurationHistogram::kBounds.size(); ++bucket) {
    counts.push_back(sum_of(
        threads, [&](const ThreadMetrics& thread) { return histogram(thread).count_at(bucket); }));
  }
  return counts;
}

nlohmann::json stages_of(const std::vector<std::shared_ptr<ThreadMetrics>>& threads) {
  nlohmann::json stages;
  for (std::size_t i = 0; i < kStages.size(); ++i) {
    stages[kStages[i]] = counts_of(
        threads, [i](const auto& thread) -> const auto& { return thread.stages[i]; });
  }
  stages["request"] = counts_of(
      threads, [](const auto& thread) -> const auto& { return thread.duration; });
  return stages;
}

nlohmann::json totals_of(const std::vector<std::shared_ptr<ThreadMetrics>>& threads) {
  nlohmann::json totals;
  for (const auto& thread : threads) {
    telemetry::collect(totals, kClients, *thread);
    telemetry::collect(totals, kGoodResponses, *thread);
  }
  totals["errors"] = sum_of(threads, [](const ThreadMetrics& thread) {
    std::uint64_t refused = 0;
    for (const core::Counter& reason : thread.refused) refused += reason.value();
    return refused;
  });
  return totals;
}

/// Connections that are gone, by why.
nlohmann::json closed_of(const std::vector<std::shared_ptr<ThreadMetrics>>& threads) {
  nlohmann::json closed;
  for (std::size_t end = 0; end < kConnectionEnds.size(); ++end) {
    closed[kConnectionEnds[end]] =
        sum_of(threads, [end](const auto& thread) { return thread.closed[end].value(); });
  }
  return closed;
}

/// Error answers by reason, of those that there were.
nlohmann::json errors_of(const std::vector<std::shared_ptr<ThreadMetrics>>& threads) {
  auto errors = nlohmann::json::object();
  for (std::size_t code = 0; code < ThreadMetrics::kRefusals; ++code) {
    const std::string name(protocol::name_of(static_cast<Refusal>(code)));
    const auto count =
        sum_of(threads, [code](const auto& thread) { return thread.refused[code].value(); });
    if (!name.empty() && count != 0) errors[name] = count;
  }
  return errors;
}

}  // namespace

nlohmann::json ServerMetrics::status() const {
  auto workers = nlohmann::json::array();
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, worker] : workers_) {
      const std::chrono::duration<double> attached = worker.attached.time_since_epoch();
      workers.push_back({{"worker", id},
                         {"name", worker.name},
                         {"backend", worker.backend},
                         {"channels", worker.channels},
                         {"attached_time", attached.count()}});
      if (worker.key.empty()) continue;
      workers.back()["key"] = worker.key;
      workers.back()["has_newest_key"] = worker.key == newest_key_;
    }
  }
  auto threads = nlohmann::json::array();
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const auto& thread = threads_[i];
    auto& object = threads.emplace_back();
    object["service"] = services_[i];
    telemetry::collect(object, kClients, *thread);
    telemetry::collect(object, kGoodResponses, *thread);
    telemetry::collect(object, kChannel, *thread);
    telemetry::collect(object, kThreadTimes, thread->times);
  }
  nlohmann::json control;
  telemetry::collect(control, kControlTimes, control_);
  return {{"totals", totals_of(threads_)}, {"bounds_ns", telemetry::DurationHistogram::kBounds},
          {"errors", errors_of(threads_)}, {"closed", closed_of(threads_)},
          {"stages", stages_of(threads_)}, {"workers", std::move(workers)},
          {"threads", std::move(threads)}, {"control", std::move(control)},
          {"events", events_->to_json()}};
}

void ServerMetrics::trace(telemetry::Trace& trace) const {
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    trace.begin_thread(fmt::format("I/O thread {}", i));
    for (const RequestSample& sample : threads_[i]->samples.latest()) {
      trace.add_span("request", sample.began, sample.written, sample.length);
      std::uint64_t begin = sample.began;
      for (std::size_t stage = 0; stage < kStages.size(); ++stage) {
        const std::uint64_t end = sample.ends()[stage];
        trace.add_part(kStages[stage], std::exchange(begin, end), end, sample.length);
      }
    }
  }
}

}  // namespace offload::server
