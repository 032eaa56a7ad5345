#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
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
/// its turn, as a division for each message would take longer than some messages; back to back, as
/// a server has them in its buffers.
class Patterns {
 public:
  Patterns(std::uint32_t size, std::uint32_t seed);

  /// The next request, and the next response.
  [[nodiscard]] std::span<const std::byte> request() const { return {request_, size_}; }
  void next_request() { advance(request_, requests_); }
  [[nodiscard]] std::span<const std::byte> response() const { return {response_, size_}; }
  void next_response() { advance(response_, responses_); }

 private:
  void advance(const std::byte*& at, const std::vector<std::byte>& all) const {
    at += stride_;
    if (at == all.data() + all.size()) at = all.data();
  }

  std::size_t size_;
  std::size_t stride_;  ///< size_, but not 0
  std::vector<std::byte> requests_;
  std::vector<std::byte> responses_;
  const std::byte* request_;
  const std::byte* response_;
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

  /// For the requester. As a server does, it has done with a response when it returns; the slots
  /// are released once a turn.
  void on_response(channel::PostRecvTask& task) {
    if (newest_ == nullptr) seen_ = core::Clock::now();
    newest_ = &task;
    if (received_ == warm_up_) begin_ = seen_;
    if (is_timed(received_) || received_ + 1 == last_together_) record_latency();
    check_response(task);
    ++received_;
  }

 private:
  [[nodiscard]] bool is_large(std::uint64_t message) const {
    return mixed_ && message % kLargeEvery == kLargeEvery - 1;
  }
  /// Whether its latency is measured by itself.
  [[nodiscard]] bool is_timed(std::uint64_t message) const {
    return message % timed_every_ == 0 && !pace_.together && !is_large(message);
  }
  [[nodiscard]] core::TimePoint& posted(std::uint64_t message) {
    return posted_[message & (requester_.capacity() - 1)];
  }
  [[nodiscard]] Patterns& patterns(std::uint64_t message) {
    return is_large(message) ? large_ : usual_;
  }
  std::uint64_t send(std::uint64_t from, std::uint64_t end);
  void check_response(const channel::PostRecvTask& task) {
    Patterns& own = patterns(received_);
    const auto expected = own.response();
    const auto payload = task.payload();
    const bool right = task.response_status() == kernels::Status::ok &&
                       payload.size() == expected.size() &&
                       std::memcmp(payload.data(), expected.data(), expected.size()) == 0;
    if (!right) note_wrong_response();
    own.next_response();
  }
  void record_latency();
  void note_wrong_response();

  channel::ChannelMemory memory_;
  channel::SharedChannel import_;
  progress::Engine engine_;
  channel::Requester requester_;
  Patterns usual_;
  Patterns large_;
  bool mixed_;
  Pace pace_{};
  core::TimePoint begun_;  ///< when those that are posted together were begun
  std::uint64_t last_together_ = ~std::uint64_t{0};  ///< behind the last of them
  std::vector<core::TimePoint> posted_;  ///< by message; of those that are timed, until answered
  std::uint32_t timed_every_ = 1;        ///< a power of two
  std::uint64_t warm_up_ = 0;            ///< messages before the first that counts
  core::TimePoint begin_;                ///< when that one's response was seen
  std::uint64_t received_ = 0;
  channel::PostRecvTask* newest_ = nullptr;  ///< of this turn's responses
  core::TimePoint seen_;                     ///< when the first of them was seen
  metrics::LatencyHistogram latency_;
  metrics::LatencyHistogram fill_;
  core::Duration duration_{};
  std::string fault_;
};

}  // namespace offload::bench
