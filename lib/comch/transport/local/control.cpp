#include "protocol/control.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cstring>

#include "comch/transport/control_connection.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "net/fd_passing.hpp"

/// The control channel of one machine.
namespace offload::comch {
namespace {

using core::check_errno;
using core::Error;
using core::ErrorCode;

constexpr std::size_t kMaxFds = 3;
constexpr int kLocalBacklog = 128;  // as those of a network

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

/// Keeps other servers from a path while it lives: a lock on a file beside it (PATH.lock), which
/// stays when its holder is killed and does no harm then.
class PathLock {
 public:
  /// Throws Error: in_use where another server has it.
  explicit PathLock(const Address& address);
  PathLock(const PathLock&) = delete;
  PathLock& operator=(const PathLock&) = delete;
  ~PathLock();

 private:
  std::string path_;
  core::Fd fd_;
};

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

class LocalControlConnection final : public ControlConnection {
 public:
  explicit LocalControlConnection(core::Fd fd) noexcept : fd_(std::move(fd)) {}

  void send(std::span<const std::byte> frame, std::span<const int> fds) override {
    if (fds.size() > kMaxFds) throw Error(ErrorCode::invalid_value, "too many descriptors");
    try {
      net::send_with_fds(fd_.get(), frame, fds);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::again) throw;
      throw Error(ErrorCode::timed_out, "the peer does not read its messages");
    }
  }
  std::optional<ControlMessage> receive() override;
  [[nodiscard]] int fd() const noexcept override { return fd_.get(); }
  [[nodiscard]] std::string peer_name() const override {
    return "process " + std::to_string(credentials()->pid);
  }
  [[nodiscard]] std::optional<PeerCredentials> credentials() const override {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    check_errno(::getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size),
                "SO_PEERCRED");
    return PeerCredentials{credentials.pid, credentials.uid};
  }
  [[nodiscard]] std::unique_ptr<ControlConnection> connect_again(const Address&) const override {
    throw_needless();
  }
  std::vector<std::byte> begin_line(std::uint32_t) override { throw_needless(); }
  std::unique_ptr<DataEndpoint> end_line(std::span<const std::byte>) override { throw_needless(); }

 private:
  /// The channels of one machine are shared memory.
  [[noreturn]] static void throw_needless() {
    throw Error(ErrorCode::not_supported, "a local channel needs no connection of its own");
  }

  core::Fd fd_;
};

std::optional<ControlMessage> LocalControlConnection::receive() {
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

class LocalListener final : public Listener {
 public:
  explicit LocalListener(const Address& address)
      : address_(address), lock_(address), fd_(open_socket()) {
    remove_stale(address);
    const sockaddr_un name = to_sockaddr(address);
    const std::string action = "cannot listen on " + address.to_string();
    // A socket file gets the mode that its socket has when it is bound: right from the start.
    check_errno(::fchmod(fd_.get(), 0600), action);
    check_errno(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), action);
    check_errno(::listen(fd_.get(), kLocalBacklog), action);
  }
  ~LocalListener() override { ::unlink(address_.path.c_str()); }

  std::unique_ptr<ControlConnection> accept() override;
  [[nodiscard]] int fd() const noexcept override { return fd_.get(); }

 private:
  Address address_;
  PathLock lock_;
  core::Fd fd_;
  core::RateLimit waiting_log_;
};

std::unique_ptr<ControlConnection> LocalListener::accept() {
  while (true) {
    core::Fd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      if (errno != EAGAIN && waiting_log_.allow(core::Clock::now())) {
        core::log_warning("a control connection has to wait: {}", core::describe_errno(errno));
      }
      return nullptr;
    }
    auto wire = std::make_unique<LocalControlConnection>(std::move(fd));
    const PeerCredentials peer = *wire->credentials();
    if (is_trusted(peer)) return wire;
    core::log_warning(
        "control connection of user {} (process {}) refused: only user {} and root may", peer.uid,
        peer.pid, ::geteuid());
  }
}

}  // namespace

ControlMessage parse_packet(std::span<const std::byte> bytes) {
  const auto frame = protocol::parse_frame(bytes, protocol::kMaxControlLength);
  if (frame.state != protocol::FrameView::State::complete || frame.size() != bytes.size()) {
    throw Error(ErrorCode::bad_message, "a control message is not one whole frame");
  }
  return {frame.id, {frame.payload.begin(), frame.payload.end()}, {}};
}

std::unique_ptr<ControlConnection> connect_locally(const Address& address) {
  core::Fd fd = open_socket();
  if (const int error = try_connect(fd.get(), address); error != 0) {
    core::throw_errno("cannot connect to " + address.to_string(), error);
  }
  auto wire = std::make_unique<LocalControlConnection>(std::move(fd));
  if (const PeerCredentials peer = *wire->credentials(); !is_trusted(peer)) {
    throw Error(ErrorCode::not_permitted, address.to_string() + " belongs to user " +
                                              std::to_string(peer.uid) + ", process " +
                                              std::to_string(peer.pid));
  }
  return wire;
}

std::unique_ptr<Listener> listen_locally(const Address& address) {
  return std::make_unique<LocalListener>(address);
}

}  // namespace offload::comch
