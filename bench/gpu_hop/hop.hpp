#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

/// One in this number of mixed messages is large.
inline constexpr std::uint32_t kLargeEvery = 11;

/// The messages of a channel, in bytes.
struct Load {
  std::uint32_t size;
  std::uint32_t large;       ///< 0: none is. Latencies are of the others.
  std::uint32_t max_length;  ///< that the channel takes, at least the largest
};

/// Requests and what is to be answered, of a file: three numbers of 4 bytes, those of the bytes of
/// each request and of each response, and whether more than the length of a response is compared;
/// then pairs of a request and its response.
struct Answers {
  std::uint32_t request_bytes;
  std::uint32_t response_bytes;
  std::uint32_t compared;
  std::vector<std::byte> pairs;

  /// Throws Error.
  static Answers read(const std::string& path);
};

/// Different requests, so that a stale response is detected, and the frames that must come
/// back. Each in its turn, as a division for each message would take longer than some messages;
/// back to back, as a server has them in its buffers.
class Patterns {
 public:
  /// Makes requests of random bytes, which are answered in reverse order.
  Patterns(std::uint32_t size, std::uint32_t seed);
  explicit Patterns(const Answers& answers);

  [[nodiscard]] std::span<const std::byte> request() const { return {request_, size_}; }
  void next_request() { advance(request_, stride_, requests_); }

  /// Whether these are the next `count` responses, as frames; they are passed.
  [[nodiscard]] bool answered_by(std::span<const std::byte> frames, std::uint32_t count);
  /// The next response alone, as its payload; it is passed.
  [[nodiscard]] bool answered_by(std::span<const std::byte> payload);

 private:
  static void advance(const std::byte*& at, std::size_t by, const std::vector<std::byte>& all) {
    at += by;
    if (at == all.data() + all.size()) at = all.data();
  }

  std::size_t size_;
  std::size_t stride_;  ///< size_, but not 0
  std::size_t response_size_;
  bool compared_ = true;  ///< else the length alone
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
  /// `answers`: null for random bytes that are reversed.
  Hop(std::uint32_t index, std::uint32_t depth, const Load& load, channel::Wakeup wakeup,
      const Answers* answers = nullptr);
  Hop(const Hop&) = delete;
  Hop& operator=(const Hop&) = delete;

  [[nodiscard]] const channel::SharedChannel& worker_end() const noexcept { return import_; }

  /// How messages are sent.
  struct Pace {
    std::uint32_t in_flight;
    /// Posts and flushes all messages at once, and again when all are answered.
    bool together;
    core::Duration gap;  ///< a pause before it sends again
  };
  /// Sends `messages` and checks each response. Ends early with a fault.
  void run(std::uint64_t messages, const Pace& pace);

  /// Returns the times to "response seen". With one message in flight they start at "flushed", for
  /// every message. Otherwise they are of a share of the messages that are first in their turn, and
  /// start before the post, as the worker may have the message before the flush. For messages
  /// posted together they end at the last response.
  [[nodiscard]] const metrics::LatencyHistogram& latency() const { return latency_; }
  /// Returns the times to post the messages of a flush, and to flush.
  [[nodiscard]] const metrics::LatencyHistogram& fill() const { return fill_; }
  [[nodiscard]] core::Duration duration() const { return duration_; }
  /// Empty if every response was right.
  [[nodiscard]] const std::string& fault() const { return fault_; }

  /// Called by the requester. Like a server, it has finished with responses when it returns; the
  /// slots are released once a turn.
  void on_response(channel::PostRecvTask& task);
  /// on_response() detects a response longer than its request.
  [[nodiscard]] std::uint32_t longest_response(std::uint32_t length) const {
    return std::max(length, max_length_);
  }

 private:
  [[nodiscard]] bool is_large(std::uint64_t message) const {
    return mixed_ && message % kLargeEvery == kLargeEvery - 1;
  }
  /// Returns whether its latency is measured individually.
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
  void record_latency(std::uint64_t message);

  channel::ChannelMemory memory_;
  channel::SharedChannel import_;
  progress::Engine engine_;
  channel::Requester requester_;
  Patterns usual_;
  Patterns large_;
  bool mixed_;
  std::uint32_t max_length_;
  Pace pace_{};
  core::TimePoint begun_;  ///< when those that are posted together were begun
  std::uint64_t last_together_ = ~std::uint64_t{0};  ///< behind the last of them
  std::vector<core::TimePoint> posted_;  ///< by message; since when those are timed that are
  std::uint64_t timed_every_ = 1;        ///< of the messages
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
