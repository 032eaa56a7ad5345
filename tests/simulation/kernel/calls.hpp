#pragma once

/// Common parts of the system calls. The programs and their libraries call them: from a fiber they
/// are the simulation's, otherwise libc's own.
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <array>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "tests/simulation/kernel/files.hpp"

namespace offload::simulation {

template <class Function>
Function* libc(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}
#define OFFLOAD_LIBC(name)                                   \
  (*[] {                                                     \
    static auto* const real = libc<decltype(::name)>(#name); \
    return real;                                             \
  }())

[[nodiscard]] inline bool inside() {
  return kernel != nullptr && kernel->current != nullptr;
}
[[nodiscard]] inline bool is_ours(int fd) {
  return inside() && fd >= kFirstFd;
}
inline Process& self() {
  return *kernel->current->process;
}
inline int fails(int error) {
  errno = error;
  return -1;
}
/// A system call, from its entry to its return. Memory that is allocated meanwhile is the kernel's.
class Call {
 public:
  /// `errors`: those that it can return whatever its arguments are.
  explicit Call(const char* name, std::initializer_list<int> errors = {})
      : fiber_(*kernel->current) {
    if (fiber_.calls++ != 0 || !kernel->refuses || errors.size() == 0) return;
    error_ = kernel->refuses(name, errors);
    if (error_ != 0) kernel->note(name, static_cast<std::uint64_t>(error_), 1);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { --fiber_.calls; }

  [[nodiscard]] bool refused() const { return error_ != 0; }
  [[nodiscard]] int error() const { return error_; }
  /// Returns the result of a refused call.
  [[nodiscard]] int refusal() const { return fails(error_); }

 private:
  Fiber& fiber_;
  int error_ = 0;
};
/// At this point another thread may run, and this process may be killed, which closes all its
/// descriptors: no part of self() may be held across it.
inline void step(const char* name, int fd = 0) {
  kernel->note(name, static_cast<std::uint64_t>(fd));
  if (kernel->on_step) kernel->on_step();
  kernel->yield();
}
inline Time time_of(const timespec& time) {
  return time.tv_sec * kSecond + time.tv_nsec;
}
inline bool is_path(const char* path) {
  return inside() && std::strncmp(path, "/sim/", 5) == 0;
}

inline std::string name_of(const sockaddr* address) {
  if (address->sa_family == AF_UNIX) return reinterpret_cast<const sockaddr_un*>(address)->sun_path;
  return "port " + std::to_string(ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port));
}
inline void put_address(std::uint16_t port, sockaddr* to, socklen_t* size,
                        std::uint32_t host = INADDR_LOOPBACK) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(host);
  std::memcpy(to, &address, std::min<std::size_t>(*size, sizeof address));
  *size = sizeof address;
}

/// The errors of a stream that is full for a moment, or whose peer has gone.
inline constexpr std::initializer_list<int> kStreamSendErrors{EAGAIN, EPIPE, ECONNRESET};
inline constexpr std::initializer_list<int> kPacketSendErrors{EAGAIN, EPIPE, ENOBUFS, ENOMEM};
inline std::initializer_list<int> send_errors(int fd) {
  const auto socket = self().get<Socket>(fd);
  return socket && socket->is_local ? kPacketSendErrors : kStreamSendErrors;
}
inline constexpr std::initializer_list<int> kReceiveErrors{ECONNRESET, ETIMEDOUT, ENOMEM};

/// Applies the effect of such an error: the connection is gone on both sides, or has room again
/// later.
inline ssize_t refuse_on(int fd, const Call& call) {
  const auto socket = self().get<Socket>(fd);
  if (socket && call.error() == EAGAIN) socket->fill_for_a_moment();
  if (socket &&
      (call.error() == ECONNRESET || call.error() == EPIPE || call.error() == ETIMEDOUT)) {
    if (const auto other = socket->peer.lock()) other->reset(ECONNRESET);
    socket->reset(0);
  }
  return call.refusal();
}

inline ssize_t send_on(int fd, std::span<const iovec> pieces, std::vector<File> files = {}) {
  step("send", fd);
  const auto socket = self().get<Socket>(fd);
  if (!socket) return fails(EBADF);
  const ssize_t sent = socket->send(pieces, std::move(files));
  kernel->note("sent", static_cast<std::uint64_t>(sent));
  return sent;
}
inline ssize_t receive_on(int fd, std::span<const iovec> room) {
  step("receive", fd);
  const auto socket = self().get<Socket>(fd);
  if (!socket) return fails(EBADF);
  const ssize_t received = socket->receive(room);
  kernel->note("received", static_cast<std::uint64_t>(received));
  return received;
}

inline int wait_events(int fd, epoll_event* events, int most, Time limit) {
  ++kernel->current->sleeps;
  step("epoll_wait", fd);
  const auto epoll = self().get<Epoll>(fd);
  if (!epoll) return fails(EBADF);
  if (limit > 0 && kernel->split_one_in != 0 && kernel->random.one_in(200)) return fails(EINTR);
  int count = epoll->take(events, most);
  if (count == 0 && limit > 0) {
    const Time deadline = limit > kNever - kernel->now ? kNever : kernel->now + limit;
    kernel->current->in_epoll = true;
    kernel->wait([&] { return epoll->poll() != 0; }, deadline);
    kernel->current->in_epoll = false;
    if (std::exchange(kernel->current->interrupted, false)) return fails(EINTR);
    count = epoll->take(events, most);
  }
  kernel->current->events += static_cast<std::uint64_t>(count);
  kernel->note("events", static_cast<std::uint64_t>(count));
  return count;
}

}  // namespace offload::simulation
