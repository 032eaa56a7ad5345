#include "core/log_queue.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "core/process/signals_blocked.hpp"
#include "core/process/thread.hpp"

namespace offload::core {
namespace {

/// Returns how many bytes of `text` could be written.
std::size_t write_all(int fd, std::string_view text) noexcept {
  std::size_t done = 0;
  while (done != text.size()) {
    const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {  // another process made the open file non-blocking
      pollfd writable{fd, POLLOUT, 0};
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      break;
    }
  }
  return done;
}

}  // namespace

struct LogQueue::State {
  int fd;
  std::size_t capacity;
  Notice notice;
  std::mutex mutex;
  std::condition_variable appended;
  std::condition_variable written;
  // Under the mutex:
  std::string pending;
  std::uint64_t lines_in = 0;   ///< appended so far
  std::uint64_t lines_out = 0;  ///< of those, written or lost
  std::uint64_t dropped = 0;    ///< since the last notice
  bool ended = false;

  // The thread's:
  std::string writing;
  void run() noexcept;
  bool write_notice(std::uint64_t lost) const noexcept;
};

bool LogQueue::State::write_notice(std::uint64_t lost) const noexcept {
  try {
    const std::string text = notice(lost);
    return write_all(fd, text) == text.size();
  } catch (...) {  // no memory: it is written with the next lines
    return false;
  }
}

void LogQueue::State::run() noexcept {
  std::unique_lock lock(mutex);
  while (true) {
    appended.wait(lock, [this] { return ended || !pending.empty(); });
    if (ended) return;
    writing.swap(pending);
    const std::uint64_t last = lines_in;
    const std::uint64_t dropped_before = std::exchange(dropped, 0);
    lock.unlock();
    const std::string_view rest = std::string_view(writing).substr(write_all(fd, writing));
    // The lines that an error kept from being written count as dropped too.
    std::uint64_t lost =
        dropped_before + static_cast<std::uint64_t>(std::count(rest.begin(), rest.end(), '\n'));
    if (lost != 0 && rest.empty() && write_notice(lost)) lost = 0;
    writing.clear();
    lock.lock();
    dropped += lost;
    lines_out = last;
    written.notify_all();
  }
}

LogQueue::LogQueue(int fd, std::size_t capacity, Notice notice)
    : state_(std::make_shared<State>()) {
  state_->fd = fd;
  state_->capacity = capacity;
  state_->notice = std::move(notice);
  state_->pending.reserve(capacity);
  state_->writing.reserve(capacity);
  const SignalsBlocked blocked;
  // It may hang in a write when the process ends.
  start_thread("log", [state = state_] { state->run(); }).detach();
}

LogQueue::~LogQueue() {
  const std::lock_guard lock(state_->mutex);
  state_->ended = true;
  state_->appended.notify_one();
}

void LogQueue::append(std::string_view line) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (line.size() > state_->capacity - state_->pending.size()) {
    ++state_->dropped;
    return;
  }
  state_->pending.append(line);  // within what is reserved
  ++state_->lines_in;
  state_->appended.notify_one();
}

bool LogQueue::flush(Duration limit) noexcept {
  std::unique_lock lock(state_->mutex);
  return state_->written.wait_for(
      lock, limit, [this, last = state_->lines_in] { return state_->lines_out >= last; });
}

}  // namespace offload::core
