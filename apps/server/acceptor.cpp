#include "apps/server/acceptor.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "core/error.hpp"
#include "core/process/out_of_memory.hpp"

namespace offload::server {
namespace {

using protocol::Refusal;

/// A flood of clients does not keep the control thread from the worker.
constexpr int kAcceptsAtOnce = 64;
/// The time for which it waits for descriptors or memory to become free.
constexpr core::Duration kRetryInterval = std::chrono::milliseconds(100);
/// The time for which it reports that it has no room. Balancers ask about once a second, and then
/// send no client that could find out whether there is room again.
constexpr core::Duration kFullTime = std::chrono::seconds(5);

/// The machine has no descriptor or no memory left: the client stays in the backlog.
bool is_exhaustion(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/// One address gets at most three quarters of the clients' places, so that it excludes no other
/// client; a proxy, or a measuring program, still has most of them.
std::size_t places_of_address(const ClientLimits& limits, std::size_t places) {
  return limits.per_address != 0 ? limits.per_address : std::max<std::size_t>(places / 4 * 3, 1);
}

std::size_t places(const ClientLimits& limits, int first_reserved_fd) {
  return limits.connections != 0 ? limits.connections
                                 : static_cast<std::size_t>(std::max(first_reserved_fd, 1));
}

}  // namespace

Acceptor::Acceptor(progress::Engine& engine, Config config)
    : engine_(&engine),
      ports_(std::move(config.ports)),
      first_reserved_fd_(config.first_reserved_fd),
      tls_(config.tls),
      counts_(places(config.limits, first_reserved_fd_),
              places_of_address(config.limits, places(config.limits, first_reserved_fd_))),
      waiting_(std::move(config.waiting)),
      proxied_(
          engine, std::move(config.proxies),
          [this](core::Fd socket, const net::PeerAddress& client, std::size_t port) {
            let_in(std::move(socket), client, ports_[port]);
          },
          config.header_time) {
  for (const Port& port : ports_) engine_->watch(port.listener.get(), EPOLLIN, *this);
}

Acceptor::~Acceptor() {
  for (const Port& port : ports_) engine_->unwatch(port.listener.get(), *this);
}

void Acceptor::tick(core::TimePoint now) {
  proxied_.close_late();
  if (now < retry_) return;
  retry_ = now + kRetryInterval;
  try {
    for (const Port& port : ports_) engine_->watch(port.listener.get(), EPOLLIN, *this);
    retry_ = core::TimePoint::max();
  } catch (const core::Error& error) {
    for (const Port& port : ports_) engine_->unwatch(port.listener.get(), *this);
    log_nobody_accepted(error.what());
  }
}

bool Acceptor::has_room() const noexcept {
  return retry_ == core::TimePoint::max() && core::Clock::now() >= full_until_;
}

void Acceptor::accept_at(std::size_t port) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    net::SocketAddress from;
    from.size = sizeof from.storage;
    core::Fd socket(::accept4(ports_[port].listener.get(),
                              reinterpret_cast<sockaddr*>(&from.storage), &from.size,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      if (is_exhaustion(errno)) {
        log_nobody_accepted(core::describe_errno(errno));
        pause();
      }
      return;  // no client, or one that has hung up: others make the socket readable
    }
    take(std::move(socket), from, port);
  }
}

/// Lets it in, or waits for its proxy to name it.
void Acceptor::take(core::Fd socket, const net::SocketAddress& from, std::size_t port) {
  const net::PeerAddress address(from.storage);
  if (socket.get() >= first_reserved_fd_) {
    ++accepted_;
    full_until_ = engine_->now() + kFullTime;
    return log_turned_away(address, "the limit of open files is reached");
  }
  if (!proxied_.is_proxy(from)) return let_in(std::move(socket), address, ports_[port]);
  try {
    proxied_.add(std::move(socket), address, port);
  } catch (const std::exception& error) {
    ++accepted_;
    log_turned_away(address, core::what_of(error));
  }
}

void Acceptor::let_in(core::Fd socket, const net::PeerAddress& address, Port& port) {
  ++accepted_;
  if (waiting_->contains(address, engine_->now())) {
    return turn_away(socket, address, Refusal::worker_failed,
                     "workers were lost with a request from this address recently");
  }
  try {
    Admission admission{address, {}, accepted_};
    switch (counts_.admit(address, admission.place)) {
      case ClientCounts::Outcome::let_in:
        core::log_debug("client {}, {}, is admitted", accepted_, std::string_view(address.text()));
        return choose_thread(port).take(std::move(socket), std::move(admission));
      case ClientCounts::Outcome::too_many:
        full_until_ = engine_->now() + kFullTime;
        return turn_away(socket, address, Refusal::too_many_clients,
                         protocol::describe(Refusal::too_many_clients));
      case ClientCounts::Outcome::too_many_of_address:
        net::limited_sources.add(net::Door::clients);
        return turn_away(socket, address, Refusal::too_many_of_address,
                         protocol::describe(Refusal::too_many_of_address));
    }
  } catch (const std::bad_alloc&) {
    log_turned_away(address, protocol::describe(Refusal::out_of_memory));
  }
}

/// It is told why, if its socket takes that at once; not before a TLS handshake, where it could not
/// read that. `text`: for the log.
void Acceptor::turn_away(const core::Fd& socket, const net::PeerAddress& address, Refusal reason,
                         std::string_view text) noexcept {
  if (!tls_) {
    std::array<std::byte, protocol::kErrorFrameRoom> frame;
    const std::size_t size = protocol::store_error_frame(frame.data(), reason);
    (void)::send(socket.get(), frame.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  log_turned_away(address, text);
}

/// That with the fewest clients; of several such, in turn.
IoThread& Acceptor::choose_thread(Port& port) noexcept {
  const auto& threads = port.threads;
  const std::size_t count = threads.size();
  std::size_t best = port.first_choice % count;
  for (std::size_t i = 1; i < count; ++i) {
    const std::size_t candidate = (port.first_choice + i) % count;
    if (threads[candidate]->client_count() < threads[best]->client_count()) {
      best = candidate;
    }
  }
  port.first_choice = best + 1;
  return *threads[best];
}

void Acceptor::tell_arrivals() {
  for (const Port& port : ports_) net::tell_arrivals(port.listener.get());
}

/// Until tick(): a listener, which stays readable, would keep the thread awake.
void Acceptor::pause() {
  for (const Port& port : ports_) engine_->unwatch(port.listener.get(), *this);
  retry_ = engine_->now() + kRetryInterval;
}

void Acceptor::log_turned_away(const net::PeerAddress& address, std::string_view reason) noexcept {
  if (!turned_away_log_.allow(engine_->now())) return;
  const auto from = address.text();
  core::log_warning("client {}, {}, is rejected: {} ({} more were not logged)", accepted_,
                    std::string_view(from), reason, turned_away_log_.suppressed());
}

void Acceptor::log_nobody_accepted(std::string_view reason) noexcept {
  if (!turned_away_log_.allow(engine_->now())) return;
  core::log_warning("no client is accepted for now: {} ({} more were not logged)", reason,
                    turned_away_log_.suppressed());
}

}  // namespace offload::server
