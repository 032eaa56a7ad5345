/// The system calls, as the programs and their libraries call them: of a fiber they are the
/// simulation's, else libc's own.
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
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
namespace {

template <class Function>
Function* libc(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}
#define OFFLOAD_LIBC(name) (*[] { static auto* const real = libc<decltype(::name)>(#name); return real; }())

[[nodiscard]] bool inside() { return kernel != nullptr && kernel->current != nullptr; }
[[nodiscard]] bool is_ours(int fd) { return inside() && fd >= kFirstFd; }
Process& self() { return *kernel->current->process; }
int fails(int error) {
  errno = error;
  return -1;
}
/// What every system call begins with.
void step(const char* name, int fd = 0) {
  kernel->note(name, static_cast<std::uint64_t>(fd));
  kernel->yield();
}
Time time_of(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }
bool is_path(const char* path) { return inside() && std::strncmp(path, "/sim/", 5) == 0; }

std::string name_of(const sockaddr* address) {
  if (address->sa_family == AF_UNIX) return reinterpret_cast<const sockaddr_un*>(address)->sun_path;
  return "port " + std::to_string(ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port));
}
void put_address(std::uint16_t port, sockaddr* to, socklen_t* size) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::memcpy(to, &address, std::min<std::size_t>(*size, sizeof address));
  *size = sizeof address;
}

ssize_t send_on(int fd, std::span<const iovec> pieces, std::vector<File> files = {}) {
  step("send", fd);
  const auto socket = self().get<Socket>(fd);
  if (!socket) return fails(EBADF);
  const ssize_t sent = socket->send(pieces, std::move(files));
  kernel->note("sent", static_cast<std::uint64_t>(sent));
  return sent;
}
ssize_t receive_on(int fd, std::span<const iovec> room) {
  step("receive", fd);
  const auto socket = self().get<Socket>(fd);
  if (!socket) return fails(EBADF);
  const ssize_t received = socket->receive(room);
  kernel->note("received", static_cast<std::uint64_t>(received));
  return received;
}

int wait_events(int fd, epoll_event* events, int most, Time limit) {
  ++kernel->current->sleeps;
  step("epoll_wait", fd);
  const auto epoll = self().get<Epoll>(fd);
  if (!epoll) return fails(EBADF);
  if (limit > 0 && kernel->split_one_in != 0 && kernel->random.one_in(200)) return fails(EINTR);
  int count = epoll->take(events, most);
  if (count == 0 && limit > 0) {
    const Time deadline = limit > kNever - kernel->now ? kNever : kernel->now + limit;
    kernel->wait([&] { return epoll->poll() != 0; }, deadline);
    count = epoll->take(events, most);
  }
  kernel->note("events", static_cast<std::uint64_t>(count));
  return count;
}

}  // namespace
}  // namespace offload::simulation

using namespace offload::simulation;  // NOLINT

#pragma GCC visibility push(default)
#pragma GCC diagnostic ignored "-Wmissing-declarations"
extern "C" {

// ---- Descriptors

int close(int fd) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(close)(fd);
  step("close", fd);
  auto found = self().fds.extract(fd);
  return found.empty() ? fails(EBADF) : 0;
}
ssize_t write(int fd, const void* data, size_t size) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(write)(fd, data, size);
  if (const auto event = self().get<EventFd>(fd)) {
    step("notify", fd);
    ++event->count;
    ++event->in_wakes;
    return static_cast<ssize_t>(size);
  }
  if (const auto pipe = self().get<PipeWriter>(fd)) {
    step("ring", fd);
    const auto reader = pipe->reader.lock();
    if (!reader) return fails(EPIPE);
    if (reader->bytes + size > 65536) return fails(EAGAIN);
    reader->bytes += size;
    ++reader->in_wakes;
    return static_cast<ssize_t>(size);
  }
  const iovec piece{const_cast<void*>(data), size};
  return send_on(fd, {&piece, 1});
}
ssize_t read(int fd, void* data, size_t size) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(read)(fd, data, size);
  if (const auto pipe = self().get<PipeReader>(fd)) {
    step("drain", fd);
    const std::size_t taken = std::min(size, pipe->bytes);
    pipe->bytes -= taken;
    return taken != 0 || pipe->ended ? static_cast<ssize_t>(taken) : fails(EAGAIN);
  }
  if (self().get<SignalFd>(fd)) {
    if (self().signals.empty()) return fails(EAGAIN);
    signalfd_siginfo info{};
    info.ssi_signo = static_cast<std::uint32_t>(self().signals.front());
    self().signals.pop_front();
    std::memcpy(data, &info, sizeof info);
    return sizeof info;
  }
  const iovec piece{data, size};
  return receive_on(fd, {&piece, 1});
}
ssize_t __read_chk(int fd, void* data, size_t size, size_t) { return read(fd, data, size); }
int eventfd(unsigned value, int flags) {
  if (!inside()) return OFFLOAD_LIBC(eventfd)(value, flags);
  return self().add(std::make_shared<EventFd>());
}
int signalfd(int fd, const sigset_t* mask, int flags) {
  if (!inside()) return OFFLOAD_LIBC(signalfd)(fd, mask, flags);
  return self().add(std::make_shared<SignalFd>(self()));
}
int pipe2(int* ends, int flags) {
  if (!inside()) return OFFLOAD_LIBC(pipe2)(ends, flags);
  auto reader = std::make_shared<PipeReader>();
  auto writer = std::make_shared<PipeWriter>();
  writer->reader = reader;
  ends[0] = self().add(std::move(reader));
  if (ends[0] < 0) return -1;
  ends[1] = self().add(std::move(writer));
  if (ends[1] < 0) self().fds.erase(ends[0]);
  return ends[1] < 0 ? -1 : 0;
}
int epoll_create1(int flags) {
  if (!inside()) return OFFLOAD_LIBC(epoll_create1)(flags);
  return self().add(std::make_shared<Epoll>());
}
int epoll_ctl(int epoll_fd, int operation, int fd, epoll_event* event) {
  if (!is_ours(epoll_fd)) return OFFLOAD_LIBC(epoll_ctl)(epoll_fd, operation, fd, event);
  step("epoll_ctl", fd);
  const auto epoll = self().get<Epoll>(epoll_fd);
  const auto object = self().get<Object>(fd);
  if (!epoll || !object) return fails(EBADF);
  const auto item = epoll->items.find(fd);
  const bool there = item != epoll->items.end() && item->second.object.lock() == object;
  if (operation == EPOLL_CTL_ADD && there) return fails(EEXIST);
  if (operation != EPOLL_CTL_ADD && !there) return fails(ENOENT);
  if (operation == EPOLL_CTL_DEL) {
    epoll->items.erase(item);
  } else {
    epoll->items[fd] = {object, *event, object->in_wakes - 1, object->out_wakes - 1};
  }
  return 0;
}
int epoll_pwait2(int fd, epoll_event* events, int most, const timespec* limit, const sigset_t* mask) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(epoll_pwait2)(fd, events, most, limit, mask);
  return wait_events(fd, events, most,
                     limit == nullptr || limit->tv_sec > 1'000'000'000 ? kNever : time_of(*limit));
}
int poll(pollfd* fds, nfds_t count, int milliseconds) {
  if (!inside()) return OFFLOAD_LIBC(poll)(fds, count, milliseconds);
  step("poll");
  auto& process = self();
  const auto look = [fds, count, &process] {
    int ready = 0;
    for (nfds_t i = 0; i < count; ++i) {
      const auto object = process.get<Object>(fds[i].fd);
      const std::uint32_t mask = object ? object->poll() : EPOLLERR;
      fds[i].revents = static_cast<short>(
          mask & (static_cast<std::uint32_t>(fds[i].events) | EPOLLERR | EPOLLHUP));
      if (fds[i].revents != 0) ++ready;
    }
    return ready;
  };
  if (look() == 0 && milliseconds != 0) {
    kernel->wait([look] { return look() != 0; },
                 milliseconds < 0 ? kNever : kernel->now + milliseconds * kMillisecond);
  }
  return look();
}
int __poll_chk(pollfd* fds, nfds_t count, int milliseconds, size_t) {
  return poll(fds, count, milliseconds);
}

// ---- Sockets

int socket(int family, int type, int protocol) {
  if (!inside()) return OFFLOAD_LIBC(socket)(family, type, protocol);
  step("socket");
  auto made = std::make_shared<Socket>();
  made->is_local = family == AF_UNIX;
  return self().add(std::move(made));
}
int setsockopt(int fd, int level, int option, const void* value, socklen_t size) {
  return is_ours(fd) ? 0 : OFFLOAD_LIBC(setsockopt)(fd, level, option, value, size);
}
int getsockopt(int fd, int level, int option, void* value, socklen_t* size) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(getsockopt)(fd, level, option, value, size);
  const auto socket = self().get<Socket>(fd);
  if (!socket) return fails(ENOTSOCK);
  if (option == SO_PEERCRED) {
    *static_cast<ucred*>(value) = {socket->peer_pid, ::geteuid(), 0};
  } else if (option == SO_ERROR) {
    *static_cast<int*>(value) = std::exchange(socket->error, 0);
  } else {
    return fails(ENOPROTOOPT);
  }
  return 0;
}
int bind(int fd, const sockaddr* address, socklen_t size) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(bind)(fd, address, size);
  auto listener = std::make_shared<Listener>();
  listener->is_local = address->sa_family == AF_UNIX;
  listener->name = name_of(address);
  if (!listener->is_local) {
    listener->port = ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port);
  }
  if (const auto held = kernel->names.find(listener->name);
      held != kernel->names.end() && (listener->is_local || !held->second.expired())) {
    return fails(EADDRINUSE);
  }
  kernel->names[listener->name] = listener;
  self().fds[fd] = std::move(listener);
  return 0;
}
int listen(int fd, int backlog) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(listen)(fd, backlog);
  self().get<Listener>(fd)->listens = true;
  return 0;
}
int connect(int fd, const sockaddr* address, socklen_t size) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(connect)(fd, address, size);
  step("connect", fd);
  const auto socket = self().get<Socket>(fd);
  const auto found = kernel->names.find(name_of(address));
  if (found == kernel->names.end()) return fails(socket->is_local ? ENOENT : ECONNREFUSED);
  const auto listener = std::dynamic_pointer_cast<Listener>(found->second.lock());
  if (!listener || !listener->listens) return fails(ECONNREFUSED);
  if (socket->is_local && listener->waiting.size() > 100) return fails(EAGAIN);
  auto other = std::make_shared<Socket>();
  Socket::join(socket, other);
  socket->peer_port = other->port = listener->port;
  static std::uint16_t next_port = 40000;
  socket->port = other->peer_port = next_port++;
  other->peer_pid = self().pid;
  for (const auto& process : kernel->processes) {
    for (const auto& [number, file] : process->fds) {
      if (file == listener) socket->peer_pid = process->pid;
    }
  }
  const auto arrive = [listener = std::weak_ptr(listener), weak = std::weak_ptr(socket), other] {
    const auto connecting = weak.lock();
    const auto at = listener.lock();
    if (connecting) {
      connecting->connecting = false;
      connecting->connected = true;
      if (!at) connecting->reset(ECONNREFUSED);
      ++connecting->out_wakes;
    }
    if (at) {
      at->waiting.push_back(other);
      ++at->in_wakes;
    }
  };
  if (socket->is_local) {
    arrive();
    return 0;
  }
  socket->connecting = true;
  kernel->at(kernel->now + 1000 + static_cast<Time>(kernel->random.below(kMillisecond)), arrive);
  return fails(EINPROGRESS);
}
int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(accept4)(fd, address, size, flags);
  step("accept", fd);
  const auto listener = self().get<Listener>(fd);
  if (!listener) return fails(EINVAL);
  if (listener->waiting.empty()) return fails(EAGAIN);
  const int number = self().add(listener->waiting.front());
  if (number < 0) return -1;
  const auto accepted = listener->waiting.front();
  listener->waiting.pop_front();
  if (address != nullptr) put_address(accepted->peer_port, address, size);
  return number;
}
int getsockname(int fd, sockaddr* address, socklen_t* size) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(getsockname)(fd, address, size);
  const auto listener = self().get<Listener>(fd);
  const auto socket = self().get<Socket>(fd);
  put_address(listener ? listener->port : socket ? socket->port : std::uint16_t{0}, address, size);
  return 0;
}
int getpeername(int fd, sockaddr* address, socklen_t* size) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(getpeername)(fd, address, size);
  const auto socket = self().get<Socket>(fd);
  if (!socket || socket->broken) return fails(ENOTCONN);
  put_address(socket->peer_port, address, size);
  return 0;
}
int shutdown(int fd, int how) {
  if (inside() && fd < kFirstFd) return fails(ENOTSOCK);  // a worker that gives up shuts down all
  if (!is_ours(fd)) return OFFLOAD_LIBC(shutdown)(fd, how);
  const auto socket = self().get<Socket>(fd);
  if (!socket) return fails(ENOTSOCK);
  step("shutdown", fd);
  socket->end_sending();
  return 0;
}
ssize_t send(int fd, const void* data, size_t size, int flags) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(send)(fd, data, size, flags);
  const iovec piece{const_cast<void*>(data), size};
  return send_on(fd, {&piece, 1});
}
ssize_t recv(int fd, void* data, size_t size, int flags) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(recv)(fd, data, size, flags);
  const iovec piece{data, size};
  return receive_on(fd, {&piece, 1});
}
ssize_t __recv_chk(int fd, void* data, size_t size, size_t, int flags) {
  return recv(fd, data, size, flags);
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(sendmsg)(fd, message, flags);
  std::vector<File> files;
  if (message->msg_control != nullptr) {
    const cmsghdr* const rights = CMSG_FIRSTHDR(message);
    const std::size_t count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(rights) + i * sizeof(int), sizeof number);
      files.push_back(self().get<Object>(number));
    }
  }
  return send_on(fd, {message->msg_iov, message->msg_iovlen}, std::move(files));
}
ssize_t recvmsg(int fd, msghdr* message, int flags) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(recvmsg)(fd, message, flags);
  const auto socket = self().get<Socket>(fd);
  const std::size_t control_room = std::exchange(message->msg_controllen, 0);
  message->msg_flags = 0;
  if (!socket->is_local || socket->packets.empty()) {
    return receive_on(fd, {message->msg_iov, message->msg_iovlen});
  }
  step("receive", fd);
  const Socket::Packet packet = std::move(socket->packets.front());
  socket->packets.pop_front();
  if (const auto from = socket->peer.lock()) {
    from->under_way -= packet.bytes.size();
    if (std::exchange(from->wants_room, false)) ++from->out_wakes;
  }
  const std::size_t size = std::min(packet.bytes.size(), message->msg_iov->iov_len);
  std::memcpy(message->msg_iov->iov_base, packet.bytes.data(), size);
  const std::size_t bytes = packet.files.size() * sizeof(int);
  if (bytes != 0 && control_room >= CMSG_SPACE(bytes)) {
    auto* const rights = static_cast<cmsghdr*>(message->msg_control);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(bytes);
    for (std::size_t i = 0; i < packet.files.size(); ++i) {
      const int number = self().add(packet.files[i]);
      std::memcpy(CMSG_DATA(rights) + i * sizeof(int), &number, sizeof number);
      if (number < 0) message->msg_flags |= MSG_CTRUNC;
    }
    message->msg_controllen = CMSG_SPACE(bytes);
  }
  return static_cast<ssize_t>(size);
}
int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** list) {
  if (!inside()) return OFFLOAD_LIBC(getaddrinfo)(host, service, hints, list);
  auto* const made = static_cast<addrinfo*>(std::calloc(1, sizeof(addrinfo) + sizeof(sockaddr_in)));
  made->ai_family = AF_INET;
  made->ai_socktype = SOCK_STREAM;
  made->ai_addrlen = sizeof(sockaddr_in);
  made->ai_addr = reinterpret_cast<sockaddr*>(made + 1);
  socklen_t size = sizeof(sockaddr_in);
  put_address(static_cast<std::uint16_t>(std::atoi(service)), made->ai_addr, &size);
  *list = made;
  return 0;
}

// ---- Files and memory

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = va_arg(rest, mode_t);
  va_end(rest);
  // A memfd that is opened again, to be read only.
  const std::string_view text(path);
  constexpr std::string_view kOwn = "/proc/self/fd/";
  const int fd = text.starts_with(kOwn) ? std::atoi(path + kOwn.size()) : -1;
  if (const auto file = is_ours(fd) ? self().get<RealFile>(fd) : nullptr) {
    const int real = OFFLOAD_LIBC(open)((std::string(kOwn) + std::to_string(file->real)).c_str(), flags, mode);
    return real < 0 ? real : self().add(std::make_shared<RealFile>(real));
  }
  if (!is_path(path)) return OFFLOAD_LIBC(open)(path, flags, mode);
  return self().add(std::make_shared<EventFd>());  // the lock beside a path
}
int flock(int fd, int operation) {
  return is_ours(fd) ? 0 : OFFLOAD_LIBC(flock)(fd, operation);
}
int stat(const char* path, struct stat* status) {
  if (!is_path(path)) return OFFLOAD_LIBC(stat)(path, status);
  *status = {};
  return 0;
}
int lstat(const char* path, struct stat* status) {
  if (!is_path(path)) return OFFLOAD_LIBC(lstat)(path, status);
  if (!kernel->names.contains(path)) return fails(ENOENT);
  *status = {};
  status->st_mode = S_IFSOCK;
  return 0;
}
int unlink(const char* path) {
  if (!is_path(path)) return OFFLOAD_LIBC(unlink)(path);
  return kernel->names.erase(path) != 0 ? 0 : fails(ENOENT);
}
int fchmod(int fd, mode_t mode) { return is_ours(fd) ? 0 : OFFLOAD_LIBC(fchmod)(fd, mode); }
int memfd_create(const char* name, unsigned flags) {
  const int real = OFFLOAD_LIBC(memfd_create)(name, flags);
  if (!inside() || real < 0) return real;
  return self().add(std::make_shared<RealFile>(real));
}
int fstat(int fd, struct stat* status) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(fstat)(fd, status);
  const auto file = self().get<RealFile>(fd);
  *status = {};
  return file ? OFFLOAD_LIBC(fstat)(file->real, status) : 0;
}
int ftruncate(int fd, off_t size) {
  const auto file = is_ours(fd) ? self().get<RealFile>(fd) : nullptr;
  return OFFLOAD_LIBC(ftruncate)(file ? file->real : fd, size);
}
int fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  const auto argument = va_arg(rest, long);
  va_end(rest);
  if (!is_ours(fd)) return OFFLOAD_LIBC(fcntl)(fd, command, argument);
  if (command == F_DUPFD_CLOEXEC) return self().add(self().get<Object>(fd));
  const auto file = self().get<RealFile>(fd);
  if (file) return OFFLOAD_LIBC(fcntl)(file->real, command, argument);
  // The access mode of a doorbell's end; all do not block.
  return command != F_GETFL               ? 0
         : self().get<PipeWriter>(fd)     ? O_WRONLY | O_NONBLOCK
         : self().get<PipeReader>(fd)     ? O_RDONLY | O_NONBLOCK
                                          : O_RDWR | O_NONBLOCK;
}
void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
  const auto file = is_ours(fd) ? self().get<RealFile>(fd) : nullptr;
  return OFFLOAD_LIBC(mmap)(at, size, protection, flags, file ? file->real : fd, offset);
}
int getrlimit(__rlimit_resource_t resource, rlimit* limit) {
  if (!inside() || resource != RLIMIT_NOFILE) return OFFLOAD_LIBC(getrlimit)(resource, limit);
  limit->rlim_cur = limit->rlim_max = kFirstFd + self().most_fds;
  return 0;
}
int setrlimit(__rlimit_resource_t resource, const rlimit* limit) {
  return inside() ? 0 : OFFLOAD_LIBC(setrlimit)(resource, limit);
}
ssize_t getrandom(void* data, size_t size, unsigned flags) {
  if (!inside()) return OFFLOAD_LIBC(getrandom)(data, size, flags);
  for (size_t i = 0; i < size; ++i) {
    static_cast<unsigned char*>(data)[i] = static_cast<unsigned char>(kernel->random.next());
  }
  return static_cast<ssize_t>(size);
}

// ---- Time, threads, processes

int clock_gettime(clockid_t clock, timespec* time) {
  if (!inside()) return OFFLOAD_LIBC(clock_gettime)(clock, time);
  kernel->now += 50;
  time->tv_sec = kernel->now / kSecond;
  time->tv_nsec = kernel->now % kSecond;
  kernel->yield();
  return 0;
}
int sched_yield() {
  if (!inside()) return OFFLOAD_LIBC(sched_yield)();
  kernel->now += 2000;
  kernel->yield();
  return 0;
}
pid_t getpid() { return inside() ? self().pid : OFFLOAD_LIBC(getpid)(); }
[[noreturn]] void _exit(int status) {
  if (!inside()) OFFLOAD_LIBC(_exit)(status);
  kernel->kill(self());
  kernel->end_fiber();
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  if (!inside()) return OFFLOAD_LIBC(pthread_create)(thread, attributes, run, argument);
  *thread = kernel->add_fiber(self(), "thread", [run, argument] { run(argument); }).id;
  step("pthread_create");
  return 0;
}
int pthread_join(pthread_t thread, void** result) {
  if (!inside()) return OFFLOAD_LIBC(pthread_join)(thread, result);
  kernel->wait([thread] { return kernel->fibers[thread - 1]->done; });
  return 0;
}
int pthread_detach(pthread_t thread) { return inside() ? 0 : OFFLOAD_LIBC(pthread_detach)(thread); }
pthread_t pthread_self() { return inside() ? kernel->current->id : OFFLOAD_LIBC(pthread_self)(); }
int pthread_setname_np(pthread_t thread, const char* name) {
  if (!inside()) return OFFLOAD_LIBC(pthread_setname_np)(thread, name);
  kernel->current->name = name;
  return 0;
}
int pthread_sigmask(int how, const sigset_t* set, sigset_t* former) {
  return inside() ? 0 : OFFLOAD_LIBC(pthread_sigmask)(how, set, former);
}
__sighandler_t signal(int number, __sighandler_t handler) {
  return inside() ? SIG_DFL : OFFLOAD_LIBC(signal)(number, handler);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (!inside()) return OFFLOAD_LIBC(pthread_mutex_lock)(mutex);
  kernel->yield();
  while (::pthread_mutex_trylock(mutex) == EBUSY) kernel->sleep(1000);
  ++kernel->current->locks;
  return 0;
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  if (inside()) --kernel->current->locks;
  return OFFLOAD_LIBC(pthread_mutex_unlock)(mutex);
}
/// A condition may wake for nothing: every millisecond it does.
int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (!inside()) return OFFLOAD_LIBC(pthread_cond_wait)(condition, mutex);
  pthread_mutex_unlock(mutex);
  kernel->sleep(kMillisecond);
  return pthread_mutex_lock(mutex);
}
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* time) {
  if (!inside()) return OFFLOAD_LIBC(pthread_cond_clockwait)(condition, mutex, clock, time);
  if (time_of(*time) <= kernel->now) return ETIMEDOUT;
  return pthread_cond_wait(condition, mutex);
}
/// libstdc++ waits for promises and latches by futexes.
long syscall(long number, ...) {
  va_list rest;
  va_start(rest, number);
  std::array<long, 6> arguments{};
  for (long& argument : arguments) argument = va_arg(rest, long);
  va_end(rest);
  if (inside() && number == SYS_futex) {
    const auto* const word = reinterpret_cast<const std::uint32_t*>(arguments[0]);
    const bool waits = (arguments[1] & 0xf) == 0 || (arguments[1] & 0xf) == 9;
    if (!waits) return 0;  // who waits looks at the word itself
    const auto seen = static_cast<std::uint32_t>(arguments[2]);
    kernel->wait([word, seen] { return __atomic_load_n(word, __ATOMIC_ACQUIRE) != seen; },
                 arguments[3] != 0 ? kernel->now + kMillisecond : kNever);
    return 0;
  }
  return OFFLOAD_LIBC(syscall)(number, arguments[0], arguments[1], arguments[2], arguments[3],
                               arguments[4], arguments[5]);
}

}  // extern "C"
#pragma GCC visibility pop
