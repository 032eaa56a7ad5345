#include "comch/control_socket.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>

#include "core/error.hpp"
#include "core/log.hpp"
#include "net/fd_passing.hpp"
#include "protocol/control.hpp"

namespace offload::comch {
namespace {

using core::check_errno;
using core::Error;
using core::ErrorCode;

constexpr std::size_t kMaxFds = 3;

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
  if (fds.size() > kMaxFds) throw Error(ErrorCode::invalid_value, "too many descriptors");
  try {
    net::send_with_fds(fd_.get(), protocol::make_frame(id, payload), fds);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::again) throw;
    throw Error(ErrorCode::timed_out, "the peer does not read its messages");
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

ControlListener::ControlListener(const Address& address)
    : address_(address), lock_(address), fd_(open_socket()) {
  remove_stale(address_);
  const sockaddr_un name = to_sockaddr(address_);
  const std::string action = "cannot listen on " + address_.to_string();
  // A socket file gets the mode that its socket has when it is bound: right from the start.
  check_errno(::fchmod(fd_.get(), 0600), action);
  check_errno(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), action);
  check_errno(::listen(fd_.get(), 8), action);
}

ControlListener::~ControlListener() {
  ::unlink(address_.path.c_str());
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
    ControlSocket socket(std::move(fd));
    const PeerCredentials peer = socket.peer();
    if (is_trusted(peer)) return socket;
    spdlog::warn("control connection of user {} (process {}) refused: only user {} and root may",
                 peer.uid, peer.pid, ::geteuid());
  }
}

}  // namespace offload::comch
