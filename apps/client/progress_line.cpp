#include "apps/client/progress_line.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

namespace offload::client {

ProgressLine::ProgressLine()
    : on_terminal_(::isatty(STDERR_FILENO) != 0), start_(core::Clock::now()), shown_at_(start_) {}

ProgressLine::~ProgressLine() {
  if (on_terminal_ && shown_at_ != start_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::update(std::uint64_t operations) {
  const auto now = core::Clock::now();
  if (!on_terminal_ || now - shown_at_ < kInterval) return;
  const double rate =
      static_cast<double>(operations - shown_) / core::to_seconds(now - shown_at_) / 1e6;
  fmt::print(stderr, "\r{:.0f} s: {} operations, {:.3f} MIOP/s\033[K",
             core::to_seconds(now - start_), operations, rate);
  shown_at_ = now;
  shown_ = operations;
}

}  // namespace offload::client
