#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <vector>

#include "core/clock.hpp"
#include "core/fd.hpp"
#include "core/log.hpp"
#include "net/address_range.hpp"
#include "net/peer_address.hpp"
#include "progress/engine.hpp"

namespace offload::server {

/// The connections of proxies that have not named their client yet (net::ProxyHeader). One whose
/// header is wrong or late is closed. One thread.
class ProxiedClients {
 public:
  /// Takes a connection whose header is read, with the client that it named, or the proxy if it
  /// named none. `port`: as in add().
  using OnNamed = std::function<void(core::Fd, const net::PeerAddress& client, std::size_t port)>;

  static constexpr core::Duration kTime = std::chrono::seconds(5);
  /// Connections at a time: one more closes the oldest. A proxy sends the header at once.
  static constexpr std::size_t kMost = 1024;

  /// `proxies`: who is one. `engine` outlives this. `time`: for the header to arrive. `most`:
  /// connections at a time.
  ProxiedClients(progress::Engine& engine, std::vector<net::AddressRange> proxies, OnNamed on_named,
                 core::Duration time = kTime, std::size_t most = kMost);

  /// Returns whether a connection from there begins with a header.
  [[nodiscard]] bool is_proxy(const net::SocketAddress& address) const noexcept;
  /// Waits for the header of a connection of `proxy`: non-blocking. Throws Error or std::bad_alloc;
  /// the socket is closed then.
  void add(core::Fd socket, const net::PeerAddress& proxy, std::size_t port);
  /// When close_late() is due; RunTime::max(): at no time.
  [[nodiscard]] core::RunTime deadline() const noexcept;
  void close_late();

 private:
  struct Waiting final : progress::EventHandler {
    Waiting(core::Fd socket_of, const net::PeerAddress& address, std::size_t port_of,
            ProxiedClients& table);
    ~Waiting();
    void on_events(std::uint32_t epoll_events) override;

    ProxiedClients* owner;
    core::Fd socket;
    net::PeerAddress proxy;
    std::size_t port;
    core::RunTime deadline;
    std::list<Waiting>::iterator self;  ///< in waiting_
  };

  void read(Waiting& waiting, bool ended);
  void close(Waiting& waiting, const char* reason);

  progress::Engine* engine_;
  std::vector<net::AddressRange> proxies_;
  OnNamed on_named_;
  core::Duration time_;
  std::size_t most_;
  std::list<Waiting> waiting_;  ///< the first to be late in front
  core::RateLimit closed_log_;
};

}  // namespace offload::server
