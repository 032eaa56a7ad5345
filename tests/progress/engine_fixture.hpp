#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "core/clock.hpp"
#include "core/fd.hpp"
#include "progress/engine.hpp"

namespace offload::progress {

/// The deadline of a sleep that something else must end: if nothing does, ctest ends the test.
inline constexpr core::TimePoint kNoDeadline = core::TimePoint::max();

inline core::TimePoint in(core::Duration time) {
  return core::Clock::now() + time;
}

/// A descriptor that can be made readable, and what came for it.
class Signal final : public EventHandler {
 public:
  explicit Signal(Engine& engine)
      : engine_(&engine), fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    engine_->watch(fd_.get(), EPOLLIN | EPOLLET, *this);
  }
  ~Signal() { engine_->unwatch(fd_.get(), *this); }

  void raise() {
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(fd_.get(), &one, sizeof one), 8);
  }
  void unwatch() { engine_->unwatch(fd_.get(), *this); }
  [[nodiscard]] int fd() const { return fd_.get(); }

  int events = 0;
  std::function<void()> then;

 private:
  void on_events(std::uint32_t epoll_events) override {
    EXPECT_EQ(epoll_events, EPOLLIN);
    ++events;
    if (then) then();
  }

  Engine* engine_;
  core::Fd fd_;
};

/// Work that the test hands out; notes the order of the engine's calls.
class FakeWork final : public Pollable {
 public:
  bool poll() override {
    calls += 'p';
    if (on_poll) on_poll();
    if (pending == 0) return false;
    --pending;
    ++done;
    return true;
  }
  [[nodiscard]] Expecting expecting() const override { return expects; }
  core::Duration arm() override {
    calls += 'a';
    if (on_arm) on_arm();
    return sleep;
  }
  void disarm() override { calls += 'd'; }

  int pending = 0;
  int done = 0;
  Expecting expects = Expecting::nothing;
  core::Duration sleep = core::Duration::max();
  std::function<void()> on_arm;
  std::function<void()> on_poll;
  std::string calls;
};

}  // namespace offload::progress
