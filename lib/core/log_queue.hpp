#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/clock.hpp"

namespace offload::core {

/// A bounded queue of text, and the thread that writes it to a descriptor. Callers that append
/// never wait for that descriptor: a pipe without a reader, a full disk, a stopped terminal. Text
/// that does not fit is dropped and counted, and replaced by `notice(count)` when there is room.
///
/// Two buffers of `capacity` bytes: one that is appended to, one that is being written. The lock is
/// held to append and to exchange them, never while writing.
class LogQueue {
 public:
  using Notice = std::function<std::string(std::uint64_t dropped)>;

  /// Starts the thread, which blocks all signals. `fd` stays the caller's, who leaves it open: the
  /// thread may outlive this. Throws Error.
  LogQueue(int fd, std::size_t capacity, Notice notice);
  LogQueue& operator=(LogQueue&&) = delete;
  /// Does not wait for pending text. A thread that hangs in a write stays until the process ends.
  ~LogQueue();

  /// Appends `line`, which ends in a newline, or drops it. Any thread.
  void append(std::string_view line) noexcept;

  /// Waits until all that was appended before is written or lost, for at most `limit`. Returns
  /// whether it is. Any thread but the writer.
  bool flush(Duration limit) noexcept;

 private:
  struct State;

  std::shared_ptr<State> state_;  ///< shared with the thread, which may outlive this
};

}  // namespace offload::core
