#pragma once

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/worker/packets/runner.hpp"
#include "core/clock.hpp"
#include "telemetry/routes.hpp"
#include "telemetry/turn_watch.hpp"

namespace offload::worker {

/// Indexed by Martian, without the one that only an echo drops.
inline constexpr std::array kDropReasons = {"none",        "ethernet", "vlan",
                                            "destination", "source",   "source_port"};

inline double number(std::uint64_t value) {
  return static_cast<double>(value);
}

inline void collect_queue(telemetry::Exposition& page, const telemetry::Labels& labels,
                          const kernels::packets::DatagramCounts& counts) {
  page.counter({"offload_udp_datagrams_total", "Datagrams that the group of a queue read."}, labels,
               number(counts.datagrams));
  const telemetry::Metric answers{"offload_udp_answers_total", "Answers sent, by result."};
  page.counter(answers, telemetry::with(labels, "result", "ok"), number(counts.answered));
  page.counter(answers, telemetry::with(labels, "result", "worker_failed"), number(counts.refused));
  const telemetry::Metric dropped{"offload_udp_dropped_total",
                                  "Datagrams without an answer, by reason."};
  page.counter(dropped, telemetry::with(labels, "reason", "frame"), number(counts.bad_frames));
  page.counter(dropped, telemetry::with(labels, "reason", "request"),
               number(counts.malformed - counts.bad_frames));
  for (std::uint32_t i = 1; i < kDropReasons.size(); ++i) {
    page.counter(dropped, telemetry::with(labels, "reason", kDropReasons.at(i)),
                 number(counts.martians[i]));
  }
  page.counter({"offload_udp_receive_bytes_total", "Bytes of frames read."}, labels,
               number(counts.received_bytes));
  page.counter({"offload_udp_transmit_bytes_total", "Bytes of frames sent with answers."}, labels,
               number(counts.sent_bytes));
  page.counter_of_seconds(
      {"offload_udp_busy_seconds_total", "Groups' time in turns with datagrams."}, labels,
      counts.busy_ns);
  page.counter_of_seconds({"offload_udp_poll_seconds_total", "Groups' time looking for datagrams."},
                          labels, counts.poll_ns);
}

/// The counters of a group while it writes them: each is right, their sums may be of two moments.
inline kernels::packets::DatagramCounts read_counts(const kernels::packets::DatagramCounts& shown) {
  // Relaxed, as its writer's store: a count says nothing of others.
  const auto load = [](const std::uint64_t& word) {
    return __atomic_load_n(&word, __ATOMIC_RELAXED);
  };
  kernels::packets::DatagramCounts counts{};
  // First those that are parts of others: so no difference is below 0.
  counts.bad_frames = load(shown.bad_frames);
  counts.malformed = load(shown.malformed);
  if (counts.malformed < counts.bad_frames) counts.malformed = counts.bad_frames;
  for (std::uint32_t i = 0; i < kernels::packets::kMartians; ++i) {
    counts.martians[i] = load(shown.martians[i]);
  }
  counts.refused = load(shown.refused);
  counts.answered = load(shown.answered);
  counts.datagrams = load(shown.datagrams);
  counts.received_bytes = load(shown.received_bytes);
  counts.sent_bytes = load(shown.sent_bytes);
  counts.busy_ns = load(shown.busy_ns);
  counts.poll_ns = load(shown.poll_ns);
  return counts;
}

/// The metrics of the worker with --udp. The main thread takes the figures, some of them by system
/// calls; the thread of telemetry::Routes reports the latest ones.
class DatagramMetrics final : public telemetry::Source {
 public:
  /// How old a figure may be: a page is not made more often.
  static constexpr core::Duration kAge = telemetry::Routes::kPageAge;

  /// `backend` and `service`: what serves, for people.
  DatagramMetrics(std::string backend, std::string service)
      : backend_(std::move(backend)), service_(std::move(service)) {}

  /// The main thread's, every kAge. Throws Error if the kernel does not tell a counter.
  void take(const DatagramRunner& runner, const packets::Port& port, core::TimePoint now) {
    turns_.note(now);
    Figures figures;
    for (const kernels::packets::DatagramCounts& each : runner.counts())
      figures.queues.push_back(read_counts(each));
    figures.rules = port.steering().counts();
    figures.driver = port.statistics();
    figures.wake_ups = port.wake_ups();
    const std::lock_guard lock(mutex_);
    figures.leaves = figures_.leaves;
    figures_ = std::move(figures);
  }
  /// From now on it is not ready.
  void leave() {
    const std::lock_guard lock(mutex_);
    figures_.leaves = true;
  }

  void collect(telemetry::Exposition& page) const override {
    const Figures figures = this->figures();
    for (std::size_t i = 0; i < figures.queues.size(); ++i) {
      collect_queue(page, page.shard("queue", i), figures.queues[i]);
    }
    const telemetry::Metric driver{"offload_udp_driver_dropped_total",
                                   "Frames for the queues dropped by the kernel, by reason."};
    page.counter(driver, {{"reason", "ring_full"}}, number(figures.driver.ring_full));
    page.counter(driver, {{"reason", "other"}}, number(figures.driver.dropped));
    page.counter({"offload_udp_no_frames_total", "Times without a free frame to receive into."}, {},
                 number(figures.driver.no_frames));
    for (const packets::RuleCount& rule : figures.rules) {
      const telemetry::Labels labels{{"rule", rule.rule}};
      page.counter({"offload_udp_rule_packets_total", "Frames received, by rule."}, labels,
                   number(rule.packets));
      page.counter({"offload_udp_rule_bytes_total", "Bytes of frames, by rule."}, labels,
                   number(rule.bytes));
    }
    page.counter({"offload_udp_wake_ups_total", "System calls that woke the driver."}, {},
                 number(figures.wake_ups));
    page.gauge_of_most({"offload_udp_info", "Constant 1; labels describe the worker."},
                       {{"backend", backend_}, {"service", service_}}, 1);
    page.gauge({"offload_udp_ready", "1 if /readyz returns 200."}, {}, readiness().holds ? 1 : 0);
  }
  [[nodiscard]] telemetry::Condition health() const override { return turns_.health(); }
  /// Returns whether datagrams are answered.
  [[nodiscard]] telemetry::Condition readiness() const override {
    const Figures figures = this->figures();
    if (figures.leaves) return {false, "the worker is shutting down"};
    return {!figures.queues.empty(), fmt::format("{} queues are processed", figures.queues.size())};
  }
  [[nodiscard]] nlohmann::json status() const override {
    nlohmann::json queues = nlohmann::json::array();
    for (const kernels::packets::DatagramCounts& counts : figures().queues) {
      queues.push_back({{"datagrams", counts.datagrams},
                        {"answered", counts.answered},
                        {"refused", counts.refused},
                        {"malformed", counts.malformed}});
    }
    return {{"backend", backend_}, {"service", service_}, {"queues", std::move(queues)}};
  }
  /// Nothing: a datagram has no stages.
  void trace(telemetry::Trace&) const override {}

 private:
  struct Figures {
    bool leaves = false;
    std::vector<kernels::packets::DatagramCounts> queues{};
    std::vector<packets::RuleCount> rules{};
    packets::Socket::Statistics driver{};
    std::uint64_t wake_ups = 0;
  };
  [[nodiscard]] Figures figures() const {
    const std::lock_guard lock(mutex_);
    return figures_;
  }

  std::string backend_;
  std::string service_;
  telemetry::TurnWatch turns_{"main thread"};
  mutable std::mutex mutex_;
  Figures figures_;  ///< under the mutex
};

}  // namespace offload::worker
