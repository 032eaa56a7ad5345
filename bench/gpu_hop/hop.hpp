#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "channel/channel_memory.hpp"
#include "channel/requester.hpp"
#include "core/clock.hpp"
#include "metrics/latency_histogram.hpp"
#include "progress/engine.hpp"

namespace offload::bench {

/// Of mixed messages, every so many-th is large.
inline constexpr std::uint32_t kLargeEvery = 11;

/// What messages a channel carries, bytes.
struct Load {
  std::uint32_t size;
  std::uint32_t large;       ///< 0: none is. Latencies are of the others.
  std::uint32_t max_length;  ///< that the channel takes, at least the largest
};

/// Requests that differ, so that a stale response is found out, and what is to be answered.
class Patterns {
 public:
  Patterns(std::uint32_t size, std::uint32_t seed);

  [[nodiscard]] const std::vector<std::byte>& request(std::uint64_t message) const {
    return requests_[message % requests_.size()];
  }
  [[nodiscard]] const std::vector<std::byte>& response(std::uint64_t message) const {
    return responses_[message % responses_.size()];
  }

 private:
  std::vector<std::vector<std::byte>> requests_;
  std::vector<std::vector<std::byte>> responses_;
};

/// Both ends of one channel in one process: the server's, driven by run(), and the worker's, for a
/// back end.
class Hop {
 public:
  /// `wakeup`: the back end's.
  Hop(std::uint32_t index, std::uint32_t depth, const Load& load, channel::Wakeup wakeup);
  Hop(const Hop&) = delete;
  Hop& operator=(const Hop&) = delete;

  [[nodiscard]] const channel::SharedChannel& worker_end() const noexcept { return import_; }

  /// Sends `messages` and checks each response, `in_flight` at a time, with a pause of `gap` before
  /// it sends again. Ends early with a fault.
  void run(std::uint64_t messages, std::uint32_t in_flight, core::Duration gap);

  /// From "posted" to "response seen": of every message if one is in flight, else of a share.
  [[nodiscard]] const metrics::LatencyHistogram& latency() const { return latency_; }
  /// What it took to write a request into its slot, before that.
  [[nodiscard]] const metrics::LatencyHistogram& fill() const { return fill_; }
  [[nodiscard]] core::Duration duration() const { return duration_; }
  /// Empty if every response was right.
  [[nodiscard]] const std::string& fault() const { return fault_; }

  /// For the requester.
  void on_response(channel::PostRecvTask& task) { batch_.push_back(&task); }

 private:
  [[nodiscard]] bool is_large(std::uint64_t message) const;
  [[nodiscard]] const Patterns& patterns(std::uint64_t message) const {
    return is_large(message) ? large_ : usual_;
  }
  void send(std::uint64_t message);
  void check_response(std::uint64_t message, const channel::PostRecvTask& task);
  void finish_batch();

  channel::ChannelMemory memory_;
  channel::SharedChannel import_;
  progress::Engine engine_;
  channel::Requester requester_;
  std::vector<channel::PostRecvTask*> batch_;  ///< responses of one turn
  Patterns usual_;
  Patterns large_;
  bool mixed_;
  bool times_all_ = true;
  std::vector<core::TimePoint> posted_;  ///< by slot; of those that are timed, until answered
  std::uint64_t received_ = 0;
  metrics::LatencyHistogram latency_;
  metrics::LatencyHistogram fill_;
  core::Duration duration_{};
  std::string fault_;
};

}  // namespace offload::bench
