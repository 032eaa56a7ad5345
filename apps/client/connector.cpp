#include "apps/client/connector.hpp"

#include <poll.h>

#include <algorithm>
#include <array>

#include "apps/client/poll_timeout.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::client {
namespace {

using core::Clock;
using core::Duration;
using core::TimePoint;

/// A SYN that gets no answer must not eat the whole time: the address may come up meanwhile.
constexpr Duration kAttemptTime = std::chrono::seconds(2);
constexpr Duration kFirstPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::milliseconds(500);

enum class Wake : std::uint8_t { ready, interrupted, timed_out };

/// Until `fd` (-1: none) is writable, a signal is there, or it is `until`.
Wake wait_for(int fd, const core::ShutdownSignals& signals, TimePoint until) {
  std::array<pollfd, 2> watched{{{fd, POLLOUT, 0}, {signals.fd(), POLLIN, 0}}};
  const int rc = ::poll(watched.data(), watched.size(), poll_timeout(until - Clock::now()));
  if (rc < 0 && errno != EINTR) core::throw_errno("poll");
  if (watched[1].revents != 0) return Wake::interrupted;
  return watched[0].revents != 0 ? Wake::ready : Wake::timed_out;
}

/// While nobody listens on a port of the ephemeral range, the kernel may pick that very port for
/// our end, and TCP then connects the socket to itself.
bool is_connected_to_itself(int fd, const net::SocketAddress& address) {
  return net::local_address(fd).to_string() == address.to_string();
}

}  // namespace

Connector::Connector(const std::string& host, std::uint16_t port, TimePoint deadline)
    : host_(host), addresses_(net::resolve(host, port, false)), deadline_(deadline) {}

core::Fd Connector::connect(const core::ShutdownSignals& signals) {
  Duration pause = kFirstPause;
  for (bool first = true;; first = false) {
    core::Fd fd = try_all(signals);
    if (fd.valid() || interrupted_) return fd;
    if (first) spdlog::info("waiting for the server: {}", reason_);
    const TimePoint now = Clock::now();
    if (now >= deadline_)
      throw core::Error(core::ErrorCode::timed_out, reason_ + " (--connect-timeout is over)");
    if (wait_for(-1, signals, std::min(now + pause, deadline_)) == Wake::interrupted) return {};
    pause = std::min(pause * 2, kLongestPause);
  }
}

core::Fd Connector::try_all(const core::ShutdownSignals& signals) {
  for (const auto& address : addresses_) {
    try {
      core::Fd fd = try_one(address, signals);
      if (fd.valid() || interrupted_) return fd;
    } catch (const core::Error& error) {
      if (error.code() == core::ErrorCode::no_memory) throw;  // out of descriptors, for example
      reason_ = error.what();
    }
  }
  return {};
}

core::Fd Connector::try_one(const net::SocketAddress& address,
                            const core::ShutdownSignals& signals) {
  core::Fd fd = net::start_connect(address);
  const TimePoint now = Clock::now();
  const TimePoint until = std::clamp(deadline_, now + kFirstPause, now + kAttemptTime);
  const Wake wake = wait_for(fd.get(), signals, until);
  if (wake == Wake::interrupted) {
    interrupted_ = true;
    return {};
  }
  const int error = wake == Wake::ready ? net::connect_result(fd.get()) : ETIMEDOUT;
  if (error != 0) core::throw_errno("cannot connect to " + address.to_string(), error);
  if (is_connected_to_itself(fd.get(), address)) {
    core::throw_errno("cannot connect to " + address.to_string(), ECONNREFUSED);
  }
  return fd;
}

}  // namespace offload::client
