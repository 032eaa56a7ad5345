#include "apps/client/connector.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::client {
namespace {

using core::Clock;
using core::Duration;
using core::TimePoint;

/// The limit of one attempt: an unanswered SYN must not take all the time, as the server may come
/// up.
constexpr Duration kAttemptTime = std::chrono::seconds(2);
constexpr Duration kFirstPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::milliseconds(500);

/// If the server's port is in the ephemeral range and no socket listens on it, the kernel may
/// choose the same port for this end, and TCP connects the socket to itself.
bool is_connected_to_itself(int fd, const net::SocketAddress& address) {
  return net::local_address(fd).to_string() == address.to_string();
}

}  // namespace

Connector::Connector(const std::string& host, std::uint16_t port, TimePoint deadline,
                     const core::Signals& signals)
    : host_(host), addresses_(net::resolve(host, port, false)), deadline_(deadline) {
  // Edge-triggered: it is not read here.
  engine_.watch(signals.fd(), EPOLLIN | EPOLLET, interrupted_);
}

bool Connector::wait(const EventFlag& event, TimePoint until) {
  do {
    engine_.run_once(until);
  } while (!event.raised() && !interrupted_.raised() && Clock::now() < until);
  return event.raised() && !interrupted_.raised();
}

core::Fd Connector::connect() {
  Duration pause = kFirstPause;
  for (bool first = true;; first = false) {
    core::Fd fd = try_all();
    if (fd.valid() || interrupted_.raised()) return fd;
    if (first) core::log_info("waiting for the server: {}", reason_);
    const TimePoint now = Clock::now();
    if (now >= deadline_)
      throw core::Error(core::ErrorCode::timed_out, reason_ + " (--connect-timeout is over)");
    wait(interrupted_, std::min(now + pause, deadline_));
    if (interrupted_.raised()) return {};
    pause = std::min(pause * 2, kLongestPause);
  }
}

core::Fd Connector::try_all() {
  for (const auto& address : addresses_) {
    try {
      core::Fd fd = try_one(address);
      if (fd.valid() || interrupted_.raised()) return fd;
    } catch (const core::Error& error) {
      if (error.code() == core::ErrorCode::no_memory) throw;  // out of descriptors, for example
      reason_ = error.what();
    }
  }
  return {};
}

core::Fd Connector::try_one(const net::SocketAddress& address) {
  core::Fd fd = net::start_connect(address);
  EventFlag connected;
  engine_.watch(fd.get(), EPOLLOUT, connected);
  const TimePoint now = Clock::now();
  const bool answered =
      wait(connected, std::clamp(deadline_, now + kFirstPause, now + kAttemptTime));
  engine_.unwatch(fd.get(), connected);
  if (interrupted_.raised()) return {};
  const int error = answered ? net::connect_result(fd.get()) : ETIMEDOUT;
  if (error != 0) core::throw_errno("cannot connect to " + address.to_string(), error);
  if (is_connected_to_itself(fd.get(), address)) {
    core::throw_errno("cannot connect to " + address.to_string(), ECONNREFUSED);
  }
  return fd;
}

}  // namespace offload::client
