#include "comch/transport/local/control.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "comch/transport/local/runtime_folder.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "net/fd_passing.hpp"

namespace offload::comch {
namespace {

using core::check_errno;
using core::Error;
using core::ErrorCode;

constexpr std::size_t kMaxFds = 4;
constexpr int kLocalBacklog = 128;  // connections that wait to be accepted, as for tcp

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

/// Returns true for this user and root, which have control of this process anyway.
bool is_trusted(const PeerCredentials& peer, const Address& address) {
  return address.insecure || peer.uid == ::geteuid() || peer.uid == 0;
}

/// Removes the socket file of a server that was killed.
void remove_stale(const Address& address) {
  struct stat status {};
  if (::lstat(address.path.c_str(), &status) < 0) return;
  if (!S_ISSOCK(status.st_mode)) {
    throw Error(ErrorCode::in_use, address.to_string() + ": the path exists and is not a socket");
  }
  const core::Fd probe = open_socket();
  if (try_connect(probe.get(), address) != ECONNREFUSED) {
    throw Error(ErrorCode::in_use, address.to_string() + ": another server listens there");
  }
  net::remove_same_file(address.path, status);
}

/// Creates the folder of the path, if it is the default one, and returns the address.
const Address& prepared(const Address& address) {
  make_runtime_folder(address.path);
  return address;
}

class UnixControlConnection final : public LocalControlConnection {
 public:
  explicit UnixControlConnection(core::Fd fd) noexcept : fd_(std::move(fd)) {}

  void send_with_fds(protocol::MessageId id, std::span<const std::byte> payload,
                     std::span<const int> fds) override {
    if (fds.size() > kMaxFds) throw Error(ErrorCode::invalid_value, "too many descriptors");
    send_packet(protocol::make_frame(id, payload), fds);
  }
  std::optional<ControlMessage> receive() override {
    std::array<std::byte, protocol::kFrameHeaderSize + protocol::kMaxControlLength> bytes;
    auto message = net::receive_with_fds(fd_.get(), bytes);
    if (!message) return std::nullopt;
    if (message->size == 0) {
      throw Error(ErrorCode::connection_reset, "the peer closed the control channel");
    }
    if (message->truncated || message->fds.size() > kMaxFds) {
      throw Error(ErrorCode::bad_message, "a control message is not one whole frame");
    }
    ControlMessage control = parse_packet(std::span(bytes).first(message->size));
    control.fds = std::move(message->fds);
    return control;
  }
  [[nodiscard]] int fd() const noexcept override { return fd_.get(); }
  [[nodiscard]] PeerCredentials peer() const override {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    check_errno(::getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size),
                "SO_PEERCRED");
    return {credentials.pid, credentials.uid};
  }
  [[nodiscard]] std::string peer_name() const override {
    return "process " + std::to_string(peer().pid);
  }

 private:
  void send_frame(std::span<const std::byte> frame) override { send_packet(frame, {}); }
  void send_packet(std::span<const std::byte> frame, std::span<const int> fds) {
    try {
      net::send_with_fds(fd_.get(), frame, fds);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::again) throw;
      throw Error(ErrorCode::timed_out, "the peer does not read its messages");
    }
  }

  core::Fd fd_;
};

class UnixListener final : public Listener {
 public:
  explicit UnixListener(const Address& address)
      : Listener(prepared(address)), lock_(address), fd_(open_socket()) {
    remove_stale(address);
    const sockaddr_un name = to_sockaddr(address);
    const std::string action = "cannot listen on " + address.to_string();
    // A socket file gets the mode of its socket at bind(2), so that it is right from the start.
    check_errno(::fchmod(fd_.get(), 0600), action);
    check_errno(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), action);
    file_.emplace(address.path);
    // Not at bind(2), which applies the umask; and never the target of a link in its place.
    if (address.insecure) {
      check_errno(::fchmodat(AT_FDCWD, address.path.c_str(), 0666, AT_SYMLINK_NOFOLLOW), action);
    }
    check_errno(::listen(fd_.get(), kLocalBacklog), action);
  }

  std::unique_ptr<ControlConnection> accept() override {
    while (true) {
      core::Fd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) {
        if (errno != EAGAIN && waiting_log_.allow(core::Clock::now())) {
          core::log_warning("a control connection must wait: {}", core::describe_errno(errno));
        }
        return nullptr;
      }
      auto connection = std::make_unique<UnixControlConnection>(std::move(fd));
      const PeerCredentials peer = connection->peer();
      if (is_trusted(peer, address())) return connection;
      core::log_warning(
          "control connection of user {} (process {}) refused: only user {} and root may connect "
          "(--insecure allows all)",
          peer.uid, peer.pid, ::geteuid());
    }
  }
  [[nodiscard]] int fd() const noexcept override { return fd_.get(); }

 private:
  PathLock lock_;
  core::Fd fd_;
  std::optional<net::OwnFile> file_;
  core::RateLimit waiting_log_;
};

}  // namespace

PathLock::PathLock(const Address& address) {
  const std::string path = address.path + ".lock";
  const std::string action = "cannot lock " + address.to_string() + " with " + path;
  while (true) {
    core::Fd fd(
        check_errno(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), action));
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) core::throw_errno(action);
      throw Error(ErrorCode::in_use, address.to_string() + ": another server listens there");
    }
    // The previous holder may have removed the file between the two calls: then the lock has no
    // effect.
    struct stat locked {};
    struct stat there {};
    check_errno(::fstat(fd.get(), &locked), action);
    if (::stat(path.c_str(), &there) == 0 && there.st_dev == locked.st_dev &&
        there.st_ino == locked.st_ino) {
      fd_ = std::move(fd);
      file_.emplace(path, locked);
      return;
    }
  }
}

std::unique_ptr<ControlConnection> connect_local(const Address& address) {
  check_runtime_folder(address.path);
  core::Fd fd = open_socket();
  if (const int error = try_connect(fd.get(), address); error != 0) {
    core::throw_errno("cannot connect to " + address.to_string(), error);
  }
  auto connection = std::make_unique<UnixControlConnection>(std::move(fd));
  if (const PeerCredentials peer = connection->peer(); !is_trusted(peer, address)) {
    throw Error(ErrorCode::not_permitted, address.to_string() + " belongs to user " +
                                              std::to_string(peer.uid) + ", process " +
                                              std::to_string(peer.pid) +
                                              ": only this user and root are trusted (--insecure "
                                              "trusts all)");
  }
  return connection;
}

std::unique_ptr<Listener> listen_local(const Address& address) {
  return std::make_unique<UnixListener>(address);
}

}  // namespace offload::comch
