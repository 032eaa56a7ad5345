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

/// Requests that differ, so that a stale response is found out, and what is to be answered. Each in
/// its turn, as a division for each message would take longer than some messages.
class Patterns {
 public:
  Patterns(std::uint32_t size, std::uint32_t seed);

  [[nodiscard]] const std::vector<std::byte>& request() const { return requests_[sent_]; }
  void next_request() { sent_ = after(sent_); }
  [[nodiscard]] const std::vector<std::byte>& response() const { return responses_[answered_]; }
  void next_response() { answered_ = after(answered_); }

 private:
  [[nodiscard]] std::size_t after(std::size_t index) const {
    return index + 1 == requests_.size() ? 0 : index + 1;
  }

  std::vector<std::vector<std::byte>> requests_;
  std::vector<std::vector<std::byte>> responses_;
  std::size_t sent_ = 0;
  std::size_t answered_ = 0;
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

  /// How messages are sent.
  struct Pace {
    std::uint32_t in_flight;
    /// All in flight are posted and flushed at once, and again when all are answered.
    bool together;
    core::Duration gap;  ///< a pause before it sends again
  };
  /// Sends `messages` and checks each response. Ends early with a fault.
  void run(std::uint64_t messages, const Pace& pace);

  /// From "flushed" to "response seen": of every message if one is in flight, else of a share. Of
  /// messages that are posted together: from before the first is written to the last response.
  [[nodiscard]] const metrics::LatencyHistogram& latency() const { return latency_; }
  /// What it took to post the messages of a flush, and to flush.
  [[nodiscard]] const metrics::LatencyHistogram& fill() const { return fill_; }
  [[nodiscard]] core::Duration duration() const { return duration_; }
  /// Empty if every response was right.
  [[nodiscard]] const std::string& fault() const { return fault_; }

  /// For the requester.
  void on_response(channel::PostRecvTask& task) { batch_.push_back(&task); }

 private:
  [[nodiscard]] bool is_large(std::uint64_t message) const;
  /// Whether its latency is measured by itself.
  [[nodiscard]] bool is_timed(std::uint64_t message) const;
  [[nodiscard]] core::TimePoint& posted(std::uint64_t message) {
    return posted_[message & (requester_.capacity() - 1)];
  }
  [[nodiscard]] Patterns& patterns(std::uint64_t message) {
    return is_large(message) ? large_ : usual_;
  }
  std::uint64_t send(std::uint64_t from, std::uint64_t end);
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
  Pace pace_{};
  core::TimePoint begun_;                ///< when those that are posted together were begun
  std::vector<core::TimePoint> posted_;  ///< by message; of those that are timed, until answered
  std::uint64_t received_ = 0;
  metrics::LatencyHistogram latency_;
  metrics::LatencyHistogram fill_;
  core::Duration duration_{};
  std::string fault_;
};

}  // namespace offload::bench
