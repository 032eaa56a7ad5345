#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "net/socket.hpp"

/// Names with several addresses: who listens there listens at each of them, and who connects tries
/// one after the other.
namespace offload::net {

/// `address` with another port.
SocketAddress with_port(const SocketAddress& address, std::uint16_t port) noexcept;

/// Returns whether `error` means that this machine lacks an address, or its whole family.
[[nodiscard]] bool is_of_no_use_here(const core::Error& error) noexcept;

/// The number of ports to try if the free port of the first address is in use at another one.
inline constexpr int kMostPorts = 16;

/// Returns the results of `listen(address)` for each of `addresses`, at least one. All use one
/// port: if that is 0, `port_of()` the first result. Skips an address that this machine does not
/// have with a warning, unless there is no other. Throws as `listen` does.
template <class Listen, class PortOf>
auto listen_at_each(const std::vector<SocketAddress>& addresses, Listen listen, PortOf port_of) {
  using Listening = decltype(listen(addresses.front()));
  for (int left = kMostPorts;; --left) {
    std::vector<Listening> listening;
    std::vector<std::string> skipped;
    std::exception_ptr reason;
    try {
      for (const SocketAddress& address : addresses) {
        const std::uint16_t port = listening.empty() ? address.port() : port_of(listening.front());
        try {
          listening.push_back(listen(with_port(address, port)));
        } catch (const core::Error& error) {
          if (!is_of_no_use_here(error)) throw;
          skipped.emplace_back(error.what());
          reason = std::current_exception();
        }
      }
    } catch (const core::Error& error) {
      const bool port_was_free = addresses.front().port() == 0 && !listening.empty();
      if (error.code() == core::ErrorCode::in_use && port_was_free && left > 1) continue;
      throw;
    }
    if (listening.empty()) std::rethrow_exception(reason);
    for (const std::string& each : skipped) core::log_warning("{}: this address is skipped", each);
    return listening;
  }
}

/// Listening sockets at each of `addresses`, as listen_tcp() makes them.
std::vector<core::Fd> listen_tcp_at_each(const std::vector<SocketAddress>& addresses, int backlog);

/// Returns the result of `connect(address, until)` for the first of `addresses`, at least one, for
/// which it throws no Error. Each gets an equal part of the remaining time to `deadline`. Throws
/// the Error of the last one; that of an unusable address only if there is no other.
template <class Address, class Connect>
auto connect_to_any(const std::vector<Address>& addresses, core::TimePoint deadline,
                    Connect connect) {
  std::exception_ptr reason;
  for (std::size_t left = addresses.size(); left != 0; --left) {
    const auto now = core::Clock::now();
    const auto share = (deadline - now) / static_cast<core::Duration::rep>(left);
    try {
      return connect(addresses[addresses.size() - left], now + share);
    } catch (const core::Error& error) {
      core::log_debug("{}; remaining addresses: {}", error.what(), left - 1);
      if (!reason || !is_of_no_use_here(error)) reason = std::current_exception();
    }
  }
  std::rethrow_exception(reason);
}

}  // namespace offload::net
