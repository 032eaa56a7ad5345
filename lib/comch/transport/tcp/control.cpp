#include "comch/transport/tcp/control.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "comch/transport/tcp/data.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "net/socket.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;

/// Connections that wait to be accepted: many, as anybody may connect.
constexpr int kBacklog = 128;
/// What was sent on a control or data connection has to be acknowledged within this, else the peer
/// is taken for dead. Beside it net turns SO_KEEPALIVE on, for connections that send nothing.
constexpr core::Duration kDeadPeerTimeout = std::chrono::seconds(15);

net::SocketAddress resolve_tcp(const Address& address, bool passive) {
  const net::SocketAddress resolved = net::resolve(address.host, address.port, passive).front();
  if (!address.key.empty() || resolved.is_loopback()) return resolved;
  throw Error(ErrorCode::not_permitted,
              address.to_string() + " is not on this machine: it takes a key (--comch-key-file)");
}

core::Fd connect_tcp_socket(const Address& address) {
  core::Fd fd = net::start_connect(resolve_tcp(address, false));
  const std::string action = "cannot connect to " + address.to_string();
  pollfd poll{fd.get(), POLLOUT, 0};
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(kHandshakeTime);
  if (::poll(&poll, 1, static_cast<int>(limit.count())) == 0) {
    throw Error(ErrorCode::timed_out, action + ": no answer");
  }
  if (const int error = net::connect_result(fd.get()); error != 0) core::throw_errno(action, error);
  net::set_dead_peer_timeout(fd.get(), kDeadPeerTimeout);
  return fd;
}

class StreamControlConnection final : public NetworkControlConnection {
 public:
  StreamControlConnection(core::Fd fd, ConnectSocket connect) noexcept
      : fd_(std::move(fd)), connect_(connect) {}

  std::optional<ControlMessage> receive() override {
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
      const auto received = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
      if (received < 0 && errno == EAGAIN) return std::nullopt;
      if (received <= 0) {
        throw Error(ErrorCode::connection_reset, received == 0
                                                     ? "the peer closed the control channel"
                                                     : core::describe_errno(errno));
      }
      input_.insert(input_.end(), bytes.begin(), bytes.begin() + received);
    }
  }
  [[nodiscard]] int fd() const noexcept override { return fd_.get(); }
  [[nodiscard]] std::string peer_name() const override {
    try {
      return net::peer_address(fd_.get()).to_string();
    } catch (const Error&) {
      return "a peer that is gone";
    }
  }
  [[nodiscard]] std::unique_ptr<NetworkControlConnection> connect_another(
      const Address& address) const override {
    return make_stream_connection(connect_(address), connect_);
  }

 private:
  void send_frame(std::span<const std::byte> frame) override {
    // The socket has room for many times what is under way: less than all of it means that the peer
    // does not read.
    const auto sent = ::send(fd_.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(frame.size())) return;
    if (sent >= 0 || errno == EAGAIN) {
      throw Error(ErrorCode::timed_out, "the peer does not read its messages");
    }
    throw Error(ErrorCode::connection_reset,
                "the control channel broke: " + core::describe_errno(errno));
  }
  std::vector<std::byte> open_data_endpoint(std::uint32_t) override { return {}; }
  std::unique_ptr<DataEndpoint> connect_data_endpoint(std::span<const std::byte> peer) override {
    if (!peer.empty()) throw Error(ErrorCode::bad_message, "an endpoint where none belongs");
    if (!input_.empty()) {
      throw Error(ErrorCode::bad_message, "the peer goes on before it was answered");
    }
    return std::make_unique<TcpDataEndpoint>(std::move(fd_));
  }

  core::Fd fd_;
  ConnectSocket connect_;
  std::vector<std::byte> input_;  ///< bytes that came and are no whole message yet
};

class TcpListener final : public Listener {
 public:
  explicit TcpListener(const Address& address)
      : Listener(address), fd_(net::listen_tcp(resolve_tcp(address, true), kBacklog)) {
    set_port(net::local_address(fd_.get()).port());
  }

  std::unique_ptr<ControlConnection> accept() override {
    core::Fd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      net::set_dead_peer_timeout(fd.get(), kDeadPeerTimeout);
      return make_stream_connection(std::move(fd), connect_tcp_socket);
    }
    if (errno != EAGAIN && waiting_log_.allow(core::Clock::now())) {
      core::log_warning("a control connection has to wait: {}", core::describe_errno(errno));
    }
    return nullptr;
  }
  [[nodiscard]] int fd() const noexcept override { return fd_.get(); }

 private:
  core::Fd fd_;
  core::RateLimit waiting_log_;
};

}  // namespace

std::unique_ptr<NetworkControlConnection> make_stream_connection(core::Fd socket,
                                                                 ConnectSocket connect) {
  return std::make_unique<StreamControlConnection>(std::move(socket), connect);
}

std::unique_ptr<ControlConnection> connect_tcp(const Address& address) {
  return make_stream_connection(connect_tcp_socket(address), connect_tcp_socket);
}

std::unique_ptr<Listener> listen_tcp(const Address& address) {
  return std::make_unique<TcpListener>(address);
}

}  // namespace offload::comch
