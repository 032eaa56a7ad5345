#include "apps/client/load/connector.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::client {

using core::Clock;
using core::Duration;
using core::TimePoint;

constexpr const char* kTimeIsOver = " (--connect-timeout is over)";

std::vector<net::SocketAddress> resolve_by(TimePoint deadline, const std::string& host,
                                           std::uint16_t port, const core::Signals& signals) {
  Duration pause = kFirstPause;
  for (bool first = true;; first = false) {
    try {
      return net::resolve(host, port, false);
    } catch (const core::Error& error) {
      const TimePoint now = Clock::now();
      if (now >= deadline) {
        throw core::Error(error.code(), std::string(error.what()) + kTimeIsOver);
      }
      if (first) core::log_info("waiting for the server: {}", error.what());
      const auto wait =
          std::chrono::ceil<std::chrono::milliseconds>(std::min(pause, deadline - now));
      pollfd signal{signals.fd(), POLLIN, 0};
      if (::poll(&signal, 1, static_cast<int>(wait.count())) > 0) return {};
      pause = std::min(pause * 2, kLongestPause);
    }
  }
}

Connector::Connector(const Target& target, TimePoint deadline, const core::Signals& signals)
    : target_(target), deadline_(deadline) {
  // Edge-triggered: it is not read here.
  engine_.watch(signals.fd(), EPOLLIN | EPOLLET, interrupted_);
}

bool Connector::wait(const EventFlag& event, TimePoint until) {
  do {
    engine_.run_once(until);
  } while (!event.raised() && !interrupted_.raised() && Clock::now() < until);
  return event.raised() && !interrupted_.raised();
}

net::Stream Connector::connect() {
  Duration pause = kFirstPause;
  for (bool first = true;; first = false) {
    net::Stream stream = try_all();
    if (stream.valid() || interrupted_.raised()) return stream;
    if (first) core::log_info("waiting for the server: {}", reason_);
    const TimePoint now = Clock::now();
    if (now >= deadline_) throw core::Error(core::ErrorCode::timed_out, reason_ + kTimeIsOver);
    wait(interrupted_, std::min(now + pause, deadline_));
    if (interrupted_.raised()) return {};
    pause = std::min(pause * 2, kLongestPause);
  }
}

net::Stream Connector::try_all() {
  for (address_ = 0; address_ < target_.addresses.size(); ++address_) {
    try {
      net::Stream stream = try_one(target_.addresses[address_]);
      if (stream.valid() || interrupted_.raised()) return stream;
    } catch (const core::Error& error) {
      if (error.code() == core::ErrorCode::no_memory) throw;  // out of descriptors, for example
      if (error.code() == core::ErrorCode::bad_message) throw;
      reason_ = error.what();
    }
  }
  return {};
}

net::Stream Connector::try_one(const net::SocketAddress& address) {
  const TimePoint begin = Clock::now();
  const TimePoint until = std::clamp(deadline_, begin + kFirstPause, begin + kAttemptTime);
  ConnectAttempt attempt(address, target_.tls ? &*target_.tls : nullptr);
  while (true) {
    EventFlag ready;
    engine_.watch(attempt.fd(), attempt.events(), ready);
    const bool answered = wait(ready, until);
    engine_.unwatch(attempt.fd(), ready);
    if (interrupted_.raised()) return {};
    const auto state = answered ? attempt.advance() : ConnectAttempt::State::pending;
    if (state == ConnectAttempt::State::connected) break;
    if (state == ConnectAttempt::State::pending && answered) continue;
    reason_ = answered ? attempt.reason() : attempt.describe(ETIMEDOUT);
    // A server that is not the one that is wanted stays so. One that went away may be starting.
    if (answered && attempt.error() == EPROTO) {
      throw core::Error(core::ErrorCode::bad_message, reason_);
    }
    return {};
  }
  times_.record(Clock::now() - begin);
  return attempt.take();
}

}  // namespace offload::client
