#include "core/process/child.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <thread>

namespace offload::core {
namespace {

/// The interval of checks for the end of a process.
constexpr Duration kLook = std::chrono::milliseconds(2);
constexpr std::size_t kPiece = 65536;

/// Returns the milliseconds from now to `deadline`, rounded up; 0 if it has passed.
int milliseconds_until(TimePoint deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

}  // namespace

bool ProcessGroup::has_ended() noexcept {
  if (ended_) return true;
  const pid_t reaped = ::waitpid(process_, &status_, WNOHANG);
  is_known_ = reaped > 0;
  ended_ = reaped != 0;
  return ended_;
}

bool ProcessGroup::wait_until(TimePoint deadline) {
  while (!has_ended() && Clock::now() < deadline) std::this_thread::sleep_for(kLook);
  return ended_;
}

void ProcessGroup::end(Duration limit) {
  if (process_ == kNone) return;
  ::kill(-process_, SIGTERM);
  wait_until(Clock::now() + limit);
  kill();
}

void ProcessGroup::kill() noexcept {
  if (process_ == kNone) return;
  ::kill(-process_, SIGKILL);
  if (!ended_) is_known_ = ::waitpid(process_, &status_, 0) > 0;  // it was just killed
  ended_ = true;
  process_ = kNone;
}

std::string ProcessGroup::failure() const {
  if (!is_known_) return "unknown exit status";
  if (WIFSIGNALED(status_)) return fmt::format("signal {}", WTERMSIG(status_));
  const int status = WEXITSTATUS(status_);
  return status == 0 ? std::string() : fmt::format("exit status {}", status);
}

bool read_until_end(ProcessGroup& child, int output, int signals, TimePoint deadline,
                    const OutputReader& reader) {
  std::vector<char> piece(kPiece);
  for (bool is_open = true; is_open || !child.has_ended();) {
    // A descriptor below zero is left out.
    std::array<pollfd, 2> ready{{{signals, POLLIN, 0}, {is_open ? output : -1, POLLIN, 0}}};
    const int left = milliseconds_until(deadline);
    if (left == 0) return false;
    constexpr int kLookMs = std::chrono::duration_cast<std::chrono::milliseconds>(kLook).count();
    ::poll(ready.data(), ready.size(), is_open ? left : std::min(left, kLookMs));
    if (ready[0].revents != 0) reader.on_signal();
    if (!is_open || ready[1].revents == 0) continue;
    const ssize_t count = ::read(output, piece.data(), piece.size());
    is_open = count > 0;
    if (is_open) reader.take(std::span(piece).first(static_cast<std::size_t>(count)));
  }
  return true;
}

}  // namespace offload::core
