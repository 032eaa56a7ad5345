#include "comch/control_socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>

#include "comch/handshake.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "net/fd_passing.hpp"
#include "net/socket.hpp"
#include "protocol/control.hpp"

namespace offload::comch {
namespace {

using core::check_errno;
using core::Error;
using core::ErrorCode;

constexpr std::size_t kMaxFds = 3;
/// Connections that wait to be accepted: many, as strangers may come over a network.
constexpr int kBacklog = 128;

[[noreturn]] void throw_unread() {
  throw Error(ErrorCode::timed_out, "the peer does not read its messages");
}

core::Fd open_socket() {
  return core::Fd(check_errno(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
                              "cannot open a socket"));
}

sockaddr_un to_sockaddr(const Address& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.path.data(), address.path.size());
  return name;
}

int try_connect(int fd, const Address& address) {
  const sockaddr_un name = to_sockaddr(address);
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) < 0 ? errno : 0;
}

/// This user and root: they could do anything to this process anyway.
bool is_trusted(const PeerCredentials& peer) {
  return peer.uid == ::geteuid() || peer.uid == 0;
}

bool wait_for(int fd, short events) {
  pollfd poll{fd, events, 0};
  const auto limit =
      std::chrono::duration_cast<std::chrono::milliseconds>(ControlSocket::kHandshakeTime);
  return ::poll(&poll, 1, static_cast<int>(limit.count())) > 0;
}

/// Others may reach it, so there has to be a key.
void check_key(const net::SocketAddress& at, const Address& address) {
  if (!address.key.empty() || at.is_loopback()) return;
  throw Error(ErrorCode::not_permitted,
              address.to_string() + " is not on this machine: it takes a key (--comch-key-file)");
}

core::Fd connect_tcp(const Address& address) {
  const net::SocketAddress to = net::resolve(address.host, address.port, false).front();
  check_key(to, address);
  core::Fd fd = net::start_connect(to);
  const std::string action = "cannot connect to " + address.to_string();
  if (!wait_for(fd.get(), POLLOUT)) throw Error(ErrorCode::timed_out, action + ": no answer");
  if (const int error = net::connect_result(fd.get()); error != 0) core::throw_errno(action, error);
  return fd;
}

/// Removes what a server that was killed left behind.
void remove_stale(const Address& address) {
  struct stat status {};
  if (::lstat(address.path.c_str(), &status) < 0) return;
  if (!S_ISSOCK(status.st_mode)) {
    throw Error(ErrorCode::in_use, address.to_string() + ": the path is there and not a socket");
  }
  const core::Fd probe = open_socket();
  if (try_connect(probe.get(), address) != ECONNREFUSED) {
    throw Error(ErrorCode::in_use, address.to_string() + ": another server listens there");
  }
  ::unlink(address.path.c_str());
}

}  // namespace

ControlSocket ControlSocket::connect(const Address& address) {
  if (!address.local()) {
    ControlSocket socket(connect_tcp(address), Kind::tcp);
    prove_as_worker(socket, address.key);
    return socket;
  }
  core::Fd fd = open_socket();
  if (const int error = try_connect(fd.get(), address); error != 0) {
    core::throw_errno("cannot connect to " + address.to_string(), error);
  }
  ControlSocket socket(std::move(fd));
  if (const PeerCredentials peer = socket.peer(); !is_trusted(peer)) {
    throw Error(ErrorCode::not_permitted, address.to_string() + " belongs to user " +
                                              std::to_string(peer.uid) + ", process " +
                                              std::to_string(peer.pid));
  }
  return socket;
}

void ControlSocket::send(protocol::MessageId id, std::span<const std::byte> payload,
                         std::span<const int> fds) {
  if (fds.size() > (local() ? kMaxFds : 0)) {
    throw Error(ErrorCode::invalid_value, "too many descriptors");
  }
  const auto frame = protocol::make_frame(id, payload);
  if (!local()) {
    // It has room for many times what is under way: less than all of it means that nobody reads.
    const auto sent = ::send(fd_.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(frame.size())) return;
    if (sent >= 0 || errno == EAGAIN) throw_unread();
    throw Error(ErrorCode::connection_reset,
                "the control channel broke: " + core::describe_errno(errno));
  }
  try {
    net::send_with_fds(fd_.get(), frame, fds);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::again) throw;
    throw_unread();
  }
}

void ControlSocket::refuse(protocol::Refusal code, const std::string& text) noexcept {
  try {
    const auto frame = protocol::make_error_frame(code, text);
    send(protocol::MessageId::error, std::span(frame).subspan(protocol::kFrameHeaderSize));
  } catch (const std::exception& error) {
    spdlog::debug("a refusal could not be sent: {}", error.what());
  }
}

std::optional<ControlMessage> ControlSocket::receive() {
  return local() ? receive_packet() : receive_from_stream();
}

ControlMessage ControlSocket::await() {
  while (true) {
    if (auto message = receive()) return *std::move(message);
    if (!wait_for(fd_.get(), POLLIN)) throw Error(ErrorCode::timed_out, "the peer does not answer");
  }
}

std::optional<ControlMessage> ControlSocket::receive_from_stream() {
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

std::optional<ControlMessage> ControlSocket::receive_packet() {
  std::array<std::byte, protocol::kFrameHeaderSize + protocol::kMaxControlLength> bytes;
  auto message = net::receive_with_fds(fd_.get(), bytes);
  if (!message) return std::nullopt;
  if (message->size == 0) {
    throw Error(ErrorCode::connection_reset, "the peer closed the control channel");
  }
  const auto stream = std::span(bytes).first(message->size);
  const auto frame = protocol::parse_frame(stream, protocol::kMaxControlLength);
  if (message->truncated || message->fds.size() > kMaxFds ||
      frame.state != protocol::FrameView::State::complete || frame.size() != stream.size()) {
    throw Error(ErrorCode::bad_message, "a control message is not one whole frame");
  }
  return ControlMessage{
      frame.id, {frame.payload.begin(), frame.payload.end()}, std::move(message->fds)};
}

PeerCredentials ControlSocket::peer() const {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  check_errno(::getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size), "SO_PEERCRED");
  return {credentials.pid, credentials.uid};
}

std::string ControlSocket::peer_name() const {
  if (local()) return "process " + std::to_string(peer().pid);
  try {
    return net::peer_address(fd_.get()).to_string();
  } catch (const Error&) {
    return "a peer that is gone";
  }
}

core::Fd ControlSocket::release() {
  if (!unread_.empty()) {
    throw Error(ErrorCode::bad_message, "the peer goes on before it was answered");
  }
  return std::move(fd_);
}

PathLock::PathLock(const Address& address) : path_(address.path + ".lock") {
  const std::string action = "cannot lock " + address.to_string() + " with " + path_;
  while (true) {
    core::Fd fd(check_errno(::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600),
                            action));
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) core::throw_errno(action);
      throw Error(ErrorCode::in_use, address.to_string() + ": another server listens there");
    }
    // Its former holder may have removed the file between the two calls: then it locks nothing.
    struct stat locked {};
    struct stat there {};
    check_errno(::fstat(fd.get(), &locked), action);
    if (::stat(path_.c_str(), &there) == 0 && there.st_ino == locked.st_ino) {
      fd_ = std::move(fd);
      return;
    }
  }
}

PathLock::~PathLock() {
  ::unlink(path_.c_str());  // still locked
}

ControlListener::ControlListener(const Address& address) : address_(address) {
  if (address_.local()) {
    lock_.emplace(address_);
    fd_ = listen_locally();
    return;
  }
  const net::SocketAddress at = net::resolve(address_.host, address_.port, true).front();
  check_key(at, address_);
  fd_ = net::listen_tcp(at, kBacklog, false);
  address_.port = net::local_address(fd_.get()).port();
}

core::Fd ControlListener::listen_locally() {
  core::Fd fd = open_socket();
  remove_stale(address_);
  const sockaddr_un name = to_sockaddr(address_);
  const std::string action = "cannot listen on " + address_.to_string();
  // A socket file gets the mode that its socket has when it is bound: right from the start.
  check_errno(::fchmod(fd.get(), 0600), action);
  check_errno(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), action);
  check_errno(::listen(fd.get(), kBacklog), action);
  return fd;
}

ControlListener::~ControlListener() {
  if (fd_.valid() && address_.local()) ::unlink(address_.path.c_str());
}

std::optional<ControlSocket> ControlListener::accept() {
  while (true) {
    core::Fd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      if (errno != EAGAIN) {
        spdlog::warn("a control connection has to wait: {}", core::describe_errno(errno));
      }
      return std::nullopt;
    }
    if (!address_.local()) return ControlSocket(std::move(fd), ControlSocket::Kind::tcp);
    ControlSocket socket(std::move(fd));
    const PeerCredentials peer = socket.peer();
    if (is_trusted(peer)) return socket;
    spdlog::warn("control connection of user {} (process {}) refused: only user {} and root may",
                 peer.uid, peer.pid, ::geteuid());
  }
}

}  // namespace offload::comch
