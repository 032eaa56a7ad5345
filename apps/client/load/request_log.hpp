#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "apps/client/load/errors.hpp"
#include "core/clock.hpp"

namespace offload::client {

/// The outcome of a request.
struct RequestRecord {
  core::TimePoint intended;  ///< the time of sending in a closed loop
  core::TimePoint sent;
  core::TimePoint done;
  std::uint32_t connection = 0;  ///< numbered over all threads
  std::uint32_t bytes = 0;       ///< of the request's payload
  std::optional<ErrorKind> error;
};

/// The records of a run on their way from the load threads to the main thread, which writes them.
/// Records travel by the thousand, so that a lock is taken once for that many. Any thread.
class RequestLog {
 public:
  using Chunk = std::vector<RequestRecord>;
  static constexpr std::size_t kChunkRecords = 16384;
  /// Chunks that wait to be written, 200 MiB: beyond that, records are lost and counted.
  static constexpr std::size_t kMostWaiting = 256;

  /// Takes the records of a chunk, and returns an empty one.
  Chunk put(Chunk chunk) {
    const std::lock_guard lock(mutex_);
    if (full_.size() < kMostWaiting) {
      full_.push_back(std::move(chunk));
      chunk = {};
      if (!empty_.empty()) {
        chunk = std::move(empty_.back());
        empty_.pop_back();
      }
    } else {
      lost_ += chunk.size();
    }
    chunk.clear();
    chunk.reserve(kChunkRecords);
    return chunk;
  }
  /// All chunks since the last call.
  std::vector<Chunk> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(full_, {});
  }
  /// For put() to use again.
  void give_back(Chunk chunk) {
    const std::lock_guard lock(mutex_);
    empty_.push_back(std::move(chunk));
  }
  /// Records that found no room.
  [[nodiscard]] std::uint64_t lost() const {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Chunk> full_;
  std::vector<Chunk> empty_;
  std::uint64_t lost_ = 0;
};

/// The end of the log in one load thread, which gathers records.
class RequestLogWriter {
 public:
  /// `log`: null for none; must outlive it.
  explicit RequestLogWriter(RequestLog* log) : log_(log) {
    if (log_ != nullptr) chunk_.reserve(RequestLog::kChunkRecords);
  }

  [[nodiscard]] bool on() const noexcept { return log_ != nullptr; }
  void add(const RequestRecord& record) {
    chunk_.push_back(record);
    if (chunk_.size() == RequestLog::kChunkRecords) flush();
  }
  void flush() {
    if (log_ != nullptr && !chunk_.empty()) chunk_ = log_->put(std::move(chunk_));
  }

 private:
  RequestLog* log_;
  RequestLog::Chunk chunk_;
};

}  // namespace offload::client
