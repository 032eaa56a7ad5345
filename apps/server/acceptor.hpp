#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "apps/server/admission/client_counts.hpp"
#include "apps/server/admission/client_limits.hpp"
#include "apps/server/admission/proxied_clients.hpp"
#include "apps/server/admission/waiting_addresses.hpp"
#include "apps/server/io_thread.hpp"
#include "core/clock.hpp"
#include "core/fd.hpp"
#include "core/log.hpp"
#include "net/address_range.hpp"
#include "net/peer_address.hpp"
#include "progress/engine.hpp"
#include "protocol/frame.hpp"

namespace offload::server {

/// Lets clients in at listening sockets and hands each to that one of its I/O threads that has the
/// fewest. The kernel would spread them over a socket a thread by a hash: a few clients then meet
/// on one thread while another has none. Control thread only.
class Acceptor final : progress::EventHandler {
 public:
  /// A listening socket, and who serves those that come there. Several may have the same threads.
  struct Port {
    core::Fd listener;                                   ///< listens already
    std::span<const std::unique_ptr<IoThread>> threads;  ///< one at least, which outlive this
    std::size_t first_choice = 0;                        ///< where several have the fewest
  };
  struct Config {
    std::vector<Port> ports;
    /// Clients get only descriptors below: the rest is for workers to attach with.
    int first_reserved_fd;
    ClientLimits limits{};
    bool tls = false;  ///< clients speak it: an error frame would be no TLS
    /// Shared with the I/O threads.
    std::shared_ptr<WaitingAddresses> waiting = std::make_shared<WaitingAddresses>();
    /// Their connections begin with a PROXY header: their clients are those that it names.
    std::vector<net::AddressRange> proxies{};
    core::Duration header_time = ProxiedClients::kTime;  ///< for that header to arrive
  };

  /// `engine` outlives it. Throws Error.
  Acceptor(progress::Engine& engine, Config config);
  /// No more clients are admitted; the kernel resets those in the socket's backlog.
  ~Acceptor();

  /// When tick() is due; TimePoint::max(): no time soon.
  [[nodiscard]] core::TimePoint next_tick() noexcept {
    return std::min(retry_, engine_->when(proxied_.deadline()));
  }
  /// Accepts again where descriptors or memory had run out, and closes connections of proxies that
  /// are late.
  void tick(core::TimePoint now);
  /// Makes the kernel record when bytes of clients arrive that connect from now on.
  void tell_arrivals();
  /// Returns false while no client can be accepted, and for some seconds after one was turned away
  /// because there was no place for any.
  [[nodiscard]] bool has_room() const noexcept;

 private:
  void on_events(std::uint32_t) override {
    for (std::size_t port = 0; port < ports_.size(); ++port) accept_at(port);
  }
  void accept_at(std::size_t port);
  void take(core::Fd socket, const net::SocketAddress& from, std::size_t port);
  void let_in(core::Fd socket, const net::PeerAddress& address, Port& port);
  static IoThread& choose_thread(Port& port) noexcept;
  void pause();
  void turn_away(const core::Fd& socket, const net::PeerAddress& address, protocol::Refusal reason,
                 std::string_view text) noexcept;
  void log_turned_away(const net::PeerAddress& address, std::string_view reason) noexcept;
  void log_nobody_accepted(std::string_view reason) noexcept;

  progress::Engine* engine_;
  std::vector<Port> ports_;
  int first_reserved_fd_;
  bool tls_;
  ClientCounts counts_;
  std::shared_ptr<WaitingAddresses> waiting_;
  ProxiedClients proxied_;
  std::uint64_t accepted_ = 0;                      ///< the number of the last one
  core::TimePoint retry_ = core::TimePoint::max();  ///< while it is paused
  core::TimePoint full_until_{};                    ///< what has_room() says
  core::RateLimit turned_away_log_;
};

}  // namespace offload::server
