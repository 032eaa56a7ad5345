#pragma once

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/client/load/event_flag.hpp"
#include "apps/client/load/target.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/signals.hpp"
#include "metrics/latency_histogram.hpp"
#include "net/connect_attempt.hpp"
#include "net/stream.hpp"
#include "progress/engine.hpp"

namespace offload::client {

inline constexpr const char* kTimeIsOver = " (--connect-timeout is over)";

/// The addresses of a server's name, which is asked for again until `deadline` while it is unknown:
/// a server that is about to start may not have its name yet. None if a signal arrives first, which
/// is left for `signals.take()`. Throws core::Error (not_found): the last attempt's.
inline std::vector<net::SocketAddress> resolve_by(core::TimePoint deadline, const std::string& host,
                                                  std::uint16_t port,
                                                  const core::Signals& signals) {
  core::Duration pause = kFirstPause;
  for (bool first = true;; first = false) {
    try {
      return net::resolve(host, port);
    } catch (const core::Error& error) {
      const core::TimePoint now = core::Clock::now();
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

/// The opener of a run's first connections, one after the other. One thread.
class Connector {
 public:
  /// connect() gives up at `deadline`, after at least one attempt, or when a signal arrives, which
  /// is left for `signals.take()`. `target` must outlive it.
  Connector(const Target& target, core::TimePoint deadline, const core::Signals& signals)
      : target_(target), deadline_(deadline) {
    // Edge-triggered: it is not read here.
    engine_.watch(signals.fd(), EPOLLIN | EPOLLET, interrupted_);
  }

  /// A connection, its TLS handshake done; an invalid one if a signal arrived first. Retries with
  /// back-off while the server is not up. Throws core::Error: timed_out, with the last attempt's
  /// reason; bad_message, if the two do not agree in TLS, for which nothing is tried again.
  net::Stream connect() {
    core::Duration pause = kFirstPause;
    for (bool first = true;; first = false) {
      net::Stream stream = try_all();
      if (stream.valid() || interrupted_.raised()) return stream;
      if (first) core::log_info("waiting for the server: {}", reason_);
      const core::TimePoint now = core::Clock::now();
      if (now >= deadline_) throw core::Error(core::ErrorCode::timed_out, reason_ + kTimeIsOver);
      wait(interrupted_, std::min(now + pause, deadline_));
      if (interrupted_.raised()) return {};
      pause = std::min(pause * 2, kLongestPause);
    }
  }

  /// The number of the target's address that the last connection has.
  [[nodiscard]] std::size_t address() const noexcept { return address_; }
  /// Returns the durations of the successful attempts.
  [[nodiscard]] const metrics::LatencyHistogram& times() const noexcept { return times_; }

 private:
  /// Tries each address once; invalid if all failed, and then reason_ says why.
  net::Stream try_all() {
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
  net::Stream try_one(const net::SocketAddress& address) {
    const core::TimePoint begin = core::Clock::now();
    const core::TimePoint until = std::clamp(deadline_, begin + kFirstPause, begin + kAttemptTime);
    net::ConnectAttempt attempt(address, target_.tls ? &*target_.tls : nullptr);
    while (true) {
      EventFlag ready;
      engine_.watch(attempt.fd(), attempt.events(), ready);
      const bool answered = wait(ready, until);
      engine_.unwatch(attempt.fd(), ready);
      if (interrupted_.raised()) return {};
      const auto state = answered ? attempt.advance() : net::ConnectAttempt::State::pending;
      if (state == net::ConnectAttempt::State::connected) break;
      if (state == net::ConnectAttempt::State::pending && answered) continue;
      reason_ = answered ? attempt.reason() : attempt.describe(ETIMEDOUT);
      // A server that is not the one that is wanted stays so. One that went away may be starting.
      if (answered && attempt.error() == EPROTO) {
        throw core::Error(core::ErrorCode::bad_message, reason_);
      }
      return {};
    }
    times_.record(core::Clock::now() - begin);
    return attempt.take();
  }
  /// Waits for `event`, a signal, or `until`. Returns whether the event came first.
  bool wait(const EventFlag& event, core::TimePoint until) {
    do {
      engine_.run_once(until);
    } while (!event.raised() && !interrupted_.raised() && core::Clock::now() < until);
    return event.raised() && !interrupted_.raised();
  }

  const Target& target_;
  core::TimePoint deadline_;
  std::size_t address_ = 0;
  std::string reason_;
  metrics::LatencyHistogram times_;
  EventFlag interrupted_;
  progress::Engine engine_;
};

}  // namespace offload::client
