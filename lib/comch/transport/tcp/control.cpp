#include "protocol/control.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "comch/transport/control_connection.hpp"
#include "comch/transport/tcp/data.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "net/socket.hpp"

/// The control channel over TCP.
namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;

/// Connections that wait to be accepted: many, as strangers may come.
constexpr int kBacklog = 128;
/// What was sent, on control or data connections, has to be acknowledged within this.
constexpr core::Duration kSilentPeer = std::chrono::seconds(15);

/// Others may reach it, so there has to be a key.
void check_key(const net::SocketAddress& at, const Address& address) {
  if (!address.key.empty() || at.is_loopback()) return;
  throw Error(ErrorCode::not_permitted,
              address.to_string() + " is not on this machine: it takes a key (--comch-key-file)");
}

class TcpControlConnection final : public ControlConnection {
 public:
  explicit TcpControlConnection(core::Fd fd) noexcept : fd_(std::move(fd)) {}

  void send(std::span<const std::byte> frame, std::span<const int> fds) override {
    if (!fds.empty()) throw Error(ErrorCode::invalid_value, "descriptors do not travel over TCP");
    // It has room for many times what is under way: less than all of it means that nobody reads.
    const auto sent = ::send(fd_.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(frame.size())) return;
    if (sent >= 0 || errno == EAGAIN) {
      throw Error(ErrorCode::timed_out, "the peer does not read its messages");
    }
    throw Error(ErrorCode::connection_reset,
                "the control channel broke: " + core::describe_errno(errno));
  }
  std::optional<ControlMessage> receive() override;
  [[nodiscard]] int fd() const noexcept override { return fd_.get(); }
  [[nodiscard]] std::string peer_name() const override {
    try {
      return net::peer_address(fd_.get()).to_string();
    } catch (const Error&) {
      return "a peer that is gone";
    }
  }

  [[nodiscard]] std::unique_ptr<ControlConnection> connect_again(
      const Address& address) const override {
    return connect_tcp(address);
  }
  std::vector<std::byte> begin_line(std::uint32_t) override { return {}; }
  std::unique_ptr<DataEndpoint> end_line(std::span<const std::byte> peer) override {
    if (!peer.empty()) throw Error(ErrorCode::bad_message, "an endpoint where none belongs");
    if (!unread_.empty()) {
      throw Error(ErrorCode::bad_message, "the peer goes on before it was answered");
    }
    return std::make_unique<TcpDataEndpoint>(std::move(fd_));
  }

 private:
  core::Fd fd_;
  std::vector<std::byte> unread_;  ///< what came and is no whole message yet
};

std::optional<ControlMessage> TcpControlConnection::receive() {
  while (true) {
    const auto frame = protocol::parse_frame(unread_, protocol::kMaxControlLength);
    if (frame.state == protocol::FrameView::State::bad) {
      throw Error(ErrorCode::bad_message,
                  "no control message: " + std::string(protocol::describe(frame.reason)));
    }
    if (frame.state == protocol::FrameView::State::complete) {
      ControlMessage message{frame.id, {frame.payload.begin(), frame.payload.end()}, {}};
      unread_.erase(unread_.begin(), unread_.begin() + static_cast<std::ptrdiff_t>(frame.size()));
      return message;
    }
    std::array<std::byte, protocol::kFrameHeaderSize + protocol::kMaxControlLength> bytes;
    const auto received = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (received < 0 && errno == EAGAIN) return std::nullopt;
    if (received <= 0) {
      throw Error(ErrorCode::connection_reset, received == 0 ? "the peer closed the control channel"
                                                             : core::describe_errno(errno));
    }
    unread_.insert(unread_.end(), bytes.begin(), bytes.begin() + received);
  }
}

class TcpListener final : public Listener {
 public:
  explicit TcpListener(core::Fd fd) noexcept : fd_(std::move(fd)) {}

  std::unique_ptr<ControlConnection> accept() override {
    core::Fd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      net::give_up_after(fd.get(), kSilentPeer);
      return make_tcp_wire(std::move(fd));
    }
    if (errno != EAGAIN && waiting_log_.allow(core::Clock::now())) {
      core::log_warning("a control connection has to wait: {}", core::describe_errno(errno));
    }
    return nullptr;
  }
  [[nodiscard]] int fd() const noexcept override { return fd_.get(); }
  [[nodiscard]] std::uint16_t port() const noexcept override {
    return net::local_address(fd_.get()).port();
  }

 private:
  core::Fd fd_;
  core::RateLimit waiting_log_;
};

}  // namespace

std::unique_ptr<ControlConnection> make_tcp_wire(core::Fd connection) {
  return std::make_unique<TcpControlConnection>(std::move(connection));
}

std::unique_ptr<ControlConnection> connect_tcp(const Address& address) {
  const net::SocketAddress to = net::resolve(address.host, address.port, false).front();
  check_key(to, address);
  core::Fd fd = net::start_connect(to);
  const std::string action = "cannot connect to " + address.to_string();
  pollfd poll{fd.get(), POLLOUT, 0};
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(kHandshakeTime);
  if (::poll(&poll, 1, static_cast<int>(limit.count())) == 0) {
    throw Error(ErrorCode::timed_out, action + ": no answer");
  }
  if (const int error = net::connect_result(fd.get()); error != 0) core::throw_errno(action, error);
  net::give_up_after(fd.get(), kSilentPeer);
  return make_tcp_wire(std::move(fd));
}

std::unique_ptr<Listener> listen_tcp(const Address& address) {
  const net::SocketAddress at = net::resolve(address.host, address.port, true).front();
  check_key(at, address);
  return std::make_unique<TcpListener>(net::listen_tcp(at, kBacklog));
}

}  // namespace offload::comch
