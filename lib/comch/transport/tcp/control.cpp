#include "comch/transport/tcp/control.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <optional>
#include <vector>

#include "comch/transport/tcp/data.hpp"
#include "comch/transport/tcp/pre_shared_keys.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "net/every_address.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;

/// Connections of a socket that wait to be accepted: many, as anybody may connect, and one that
/// finds no room tries again after a second.
constexpr int kBacklog = 1024;
/// What was sent on a control or data connection has to be acknowledged within this, else the peer
/// is taken for dead. Beside it net turns SO_KEEPALIVE on, for connections that send nothing.
constexpr core::Duration kDeadPeerTimeout = std::chrono::seconds(15);

/// Waits for an event of poll(2). Returns whether it came before `until`.
bool wait_for(short event, int fd, core::TimePoint until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - core::Clock::now());
  pollfd poll{fd, event, 0};
  return left.count() > 0 && ::poll(&poll, 1, static_cast<int>(left.count())) != 0;
}

/// Returns when a step of connecting that begins now has to end.
core::TimePoint end_of_step(core::TimePoint until) {
  return std::min(until, core::Clock::now() + kHandshakeTime);
}

core::Fd connect_socket(const net::SocketAddress& to, const std::string& action,
                        core::TimePoint until) {
  core::Fd fd = net::start_connect(to);
  if (!wait_for(POLLOUT, fd.get(), until)) {
    throw Error(ErrorCode::timed_out, action + ": no answer");
  }
  if (const int error = net::connect_result(fd.get()); error != 0) core::throw_errno(action, error);
  net::set_dead_peer_timeout(fd.get(), kDeadPeerTimeout);
  return fd;
}

Stream connect_to(const net::SocketAddress& to, const Address& address, core::TimePoint until) {
  const std::string name = address.to_string() + " at " + to.to_string();
  core::Fd fd = connect_socket(to, "cannot connect to " + name, end_of_step(until));
  if (!address.takes_key()) return Stream(std::move(fd));
  Stream stream(std::move(fd), worker_context(*address.keys));
  const auto deadline = end_of_step(until);
  while (!stream.handshake()) {
    if (!wait_for(stream.wants_to_send() ? POLLOUT : POLLIN, stream.fd(), deadline)) {
      throw Error(ErrorCode::timed_out, name + " proves no key in time");
    }
  }
  return stream;
}

/// Connects to the first address at which a server answers and, where a key is taken, proves it.
Stream connect_tcp_stream(const Address& address) {
  address.require_key();
  const auto addresses = net::resolve(address.host, address.port, false);
  return net::connect_to_any(addresses, core::Clock::now() + 2 * kHandshakeTime,
                             [&](const net::SocketAddress& to, core::TimePoint until) {
                               return connect_to(to, address, until);
                             });
}

/// Returns `address` with the host and port of `peer`: its name may be that of several servers.
Address narrowed(Address address, const net::SocketAddress& peer) {
  if (peer.family() != AF_INET && peer.family() != AF_INET6) return address;
  address.host = peer.family() == AF_INET6 ? "[" + peer.host() + "]" : peer.host();
  address.port = peer.port();
  return address;
}

class StreamControlConnection final : public NetworkControlConnection {
 public:
  StreamControlConnection(Stream stream, ConnectStream connect,
                          std::shared_ptr<const Keyring> keys) noexcept
      : stream_(std::move(stream)), connect_(connect), keys_(std::move(keys)) {}

  std::optional<ControlMessage> receive() override {
    if (keys_ && !proven_) {
      proven_ = stream_.handshake();
      if (!proven_) return std::nullopt;
    }
    while (true) {
      const auto frame = protocol::parse_frame(input_, protocol::kMaxControlLength);
      if (frame.state == protocol::FrameView::State::bad) {
        throw Error(ErrorCode::bad_message,
                    "no control message: " + std::string(protocol::describe(frame.reason)));
      }
      if (frame.state == protocol::FrameView::State::complete) {
        ControlMessage message{frame.id, {frame.payload.begin(), frame.payload.end()}, {}};
        input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(frame.size()));
        return message;
      }
      std::array<std::byte, protocol::kFrameHeaderSize + protocol::kMaxControlLength> bytes;
      const auto received = stream_.receive(bytes);
      if (received < 0 && errno == EAGAIN) return std::nullopt;
      if (received <= 0) {
        throw Error(ErrorCode::connection_reset,
                    received == 0 ? "the peer closed the control channel" : stream_.failure(errno));
      }
      input_.insert(input_.end(), bytes.begin(), bytes.begin() + received);
    }
  }
  [[nodiscard]] int fd() const noexcept override { return stream_.fd(); }
  [[nodiscard]] std::string peer_name() const override {
    const net::SocketAddress peer = source();
    return peer.size != 0 ? peer.to_string() : "a peer that is gone";
  }
  [[nodiscard]] net::SocketAddress source() const override {
    try {
      return net::peer_address(stream_.fd());
    } catch (const Error&) {
      return {};
    }
  }
  [[nodiscard]] bool proven() const noexcept override { return proven_; }
  [[nodiscard]] std::optional<bool> may_have_key() override {
    return keys_ ? names_a_key(stream_.fd(), *keys_) : true;
  }
  [[nodiscard]] std::unique_ptr<NetworkControlConnection> connect_another(
      const Address& address) const override {
    return make_stream_connection(connect_(narrowed(address, source())), connect_);
  }

 private:
  void send_frame(std::span<const std::byte> frame) override {
    // The socket has room for many times what is under way: less than all of it means that the peer
    // does not read.
    const iovec piece{const_cast<std::byte*>(frame.data()), frame.size()};
    const auto sent = stream_.send({&piece, 1});
    if (sent == static_cast<ssize_t>(frame.size())) return;
    if (sent >= 0 || errno == EAGAIN) {
      throw Error(ErrorCode::timed_out, "the peer does not read its messages");
    }
    throw Error(ErrorCode::connection_reset,
                "the control channel broke: " + stream_.failure(errno));
  }
  std::vector<std::byte> open_data_endpoint(std::uint32_t) override { return {}; }
  std::unique_ptr<DataEndpoint> connect_data_endpoint(std::span<const std::byte> peer) override {
    if (!peer.empty()) throw Error(ErrorCode::bad_message, "an endpoint where none belongs");
    if (!input_.empty()) {
      throw Error(ErrorCode::bad_message, "the peer goes on before it was answered");
    }
    return std::make_unique<TcpDataEndpoint>(std::move(stream_));
  }

  Stream stream_;
  ConnectStream connect_;
  std::shared_ptr<const Keyring> keys_;  ///< null: there is nothing to prove, or it was proven
  bool proven_ = false;
  std::vector<std::byte> input_;  ///< bytes that came and are no whole message yet
};

/// The sockets of each address of `address`, which have one port.
std::vector<core::Fd> listen_at(const Address& address) {
  auto groups = net::listen_at_each(
      net::resolve(address.host, address.port, true),
      [](const net::SocketAddress& at) { return net::listen_tcp_by_source(at, kBacklog); },
      [](const auto& sockets) { return net::local_address(sockets.front().get()).port(); });
  std::vector<core::Fd> sockets;
  for (auto& group : groups) std::ranges::move(group, std::back_inserter(sockets));
  return sockets;
}

class TcpListener final : public Listener {
 public:
  explicit TcpListener(const Address& address)
      : Listener(address),
        sockets_(listen_at(address)),
        epoll_(core::check_errno(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")) {
    address.require_key();
    set_port(net::local_address(sockets_.front().get()).port());
    for (const core::Fd& socket : sockets_) {
      epoll_event event{EPOLLIN, {.fd = socket.get()}};
      core::check_errno(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event),
                        "epoll_ctl");
    }
  }

  /// Takes connections of the sockets in turn, so that none keeps the others waiting: epoll_wait(2)
  /// puts a socket that it returned behind all others that are ready. Of a flood that is not
  /// admitted the rest waits for the next event.
  std::unique_ptr<ControlConnection> accept() override {
    epoll_event ready{};
    for (int tried = 0; tried < kBacklog; ++tried) {
      const int count = ::epoll_wait(epoll_.get(), &ready, 1, 0);
      if (count == 0) return nullptr;
      if (count < 0) continue;  // by a signal
      net::SocketAddress peer;
      peer.size = sizeof peer.storage;
      core::Fd fd(::accept4(ready.data.fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.size,
                            SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) {
        if (errno == ECONNABORTED || errno == EINTR || errno == EAGAIN) continue;
        if (waiting_log_.allow(core::Clock::now())) {
          core::log_warning("a control connection has to wait: {}", core::describe_errno(errno));
        }
        return nullptr;
      }
      if (!admits(peer)) continue;  // which closes it
      return take(std::move(fd));
    }
    return nullptr;
  }
  [[nodiscard]] int fd() const noexcept override { return epoll_.get(); }

 private:
  std::unique_ptr<ControlConnection> take(core::Fd fd) {
    net::set_dead_peer_timeout(fd.get(), kDeadPeerTimeout);
    if (!address().takes_key()) {
      return make_stream_connection(Stream(std::move(fd)), connect_tcp_stream);
    }
    return make_stream_connection(Stream(std::move(fd), context()), connect_tcp_stream,
                                  address().keys);
  }
  /// Made anew when the keys were read again.
  const net::TlsContext& context() {
    const unsigned generation = address().keys->generation();
    if (!context_ || generation_ != generation) context_ = server_context(*address().keys);
    generation_ = generation;
    return *context_;
  }

  std::vector<core::Fd> sockets_;
  core::Fd epoll_;  ///< of all sockets; readable while one of them is
  std::optional<net::TlsContext> context_;
  unsigned generation_ = 0;  ///< of the keys in it
  core::RateLimit waiting_log_;
};

}  // namespace

std::unique_ptr<NetworkControlConnection> make_stream_connection(
    Stream stream, ConnectStream connect, std::shared_ptr<const Keyring> keys) {
  return std::make_unique<StreamControlConnection>(std::move(stream), connect, std::move(keys));
}

std::unique_ptr<ControlConnection> connect_tcp(const Address& address) {
  Stream stream = connect_tcp_stream(address);
  core::log_info("connected to {}: {}", address.to_string(), stream.describe());
  return make_stream_connection(std::move(stream), connect_tcp_stream);
}

std::unique_ptr<Listener> listen_tcp(const Address& address) {
  return std::make_unique<TcpListener>(address);
}

}  // namespace offload::comch
