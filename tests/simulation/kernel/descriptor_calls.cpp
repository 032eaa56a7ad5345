#include "tests/simulation/kernel/calls.hpp"

using namespace offload::simulation;  // NOLINT

#pragma GCC visibility push(default)
#pragma GCC diagnostic ignored "-Wmissing-declarations"
constexpr std::initializer_list<int> kNoErrors{};
constexpr std::initializer_list<int> kWatchErrors{ENOMEM, ENOSPC};

extern "C" {

// ---- Descriptors

int close(int fd) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(close)(fd);
  const Call call("close");
  step("close", fd);
  auto found = self().fds.extract(fd);
  return found.empty() ? fails(EBADF) : 0;
}
ssize_t write(int fd, const void* data, size_t size) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(write)(fd, data, size);
  const Call call("write", self().get<Socket>(fd) ? send_errors(fd) : kNoErrors);
  if (call.refused()) return refuse_on(fd, call);
  if (self().get<EventFd>(fd)) {
    step("notify", fd);
    const auto event = self().get<EventFd>(fd);
    ++event->count;
    ++event->in_wakes;
    return static_cast<ssize_t>(size);
  }
  if (self().get<PipeWriter>(fd)) {
    step("ring", fd);
    const auto pipe = self().get<PipeWriter>(fd);
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
  const Call call("read", self().get<Socket>(fd) ? kReceiveErrors : kNoErrors);
  if (call.refused()) return refuse_on(fd, call);
  if (self().get<PipeReader>(fd)) {
    step("drain", fd);
    const auto pipe = self().get<PipeReader>(fd);
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
ssize_t __read_chk(int fd, void* data, size_t size, size_t) {
  return read(fd, data, size);
}
int eventfd(unsigned value, int flags) {
  if (!inside()) return OFFLOAD_LIBC(eventfd)(value, flags);
  const Call call("eventfd", {EMFILE, ENFILE, ENOMEM});
  if (call.refused()) return call.refusal();
  return self().add(std::make_shared<EventFd>());
}
int signalfd(int fd, const sigset_t* mask, int flags) {
  if (!inside()) return OFFLOAD_LIBC(signalfd)(fd, mask, flags);
  const Call call("signalfd", {EMFILE, ENFILE, ENOMEM});
  if (call.refused()) return call.refusal();
  return self().add(std::make_shared<SignalFd>(self()));
}
int pipe2(int* ends, int flags) {
  if (!inside()) return OFFLOAD_LIBC(pipe2)(ends, flags);
  const Call call("pipe2", {EMFILE, ENFILE});
  if (call.refused()) return call.refusal();
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
  const Call call("epoll_create1", {EMFILE, ENFILE, ENOMEM});
  if (call.refused()) return call.refusal();
  return self().add(std::make_shared<Epoll>());
}
int epoll_ctl(int epoll_fd, int operation, int fd, epoll_event* event) {
  if (!is_ours(epoll_fd)) return OFFLOAD_LIBC(epoll_ctl)(epoll_fd, operation, fd, event);
  const Call call("epoll_ctl", operation == EPOLL_CTL_ADD ? kWatchErrors : kNoErrors);
  if (call.refused()) return call.refusal();
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
    epoll->items[fd] = {object, *event, object->arrivals() - 1, object->out_wakes - 1};
  }
  return 0;
}
int epoll_pwait2(int fd, epoll_event* events, int most, const timespec* limit,
                 const sigset_t* mask) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(epoll_pwait2)(fd, events, most, limit, mask);
  const Call call("epoll_wait", {EINTR});
  if (call.refused()) return call.refusal();
  return wait_events(fd, events, most,
                     limit == nullptr || limit->tv_sec > 1'000'000'000 ? kNever : time_of(*limit));
}
int epoll_wait(int fd, epoll_event* events, int most, int milliseconds) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(epoll_wait)(fd, events, most, milliseconds);
  const Call call("epoll_wait", {EINTR});
  if (call.refused()) return call.refusal();
  return wait_events(fd, events, most, milliseconds < 0 ? kNever : milliseconds * kMillisecond);
}
int poll(pollfd* fds, nfds_t count, int milliseconds) {
  if (!inside()) return OFFLOAD_LIBC(poll)(fds, count, milliseconds);
  const Call call("poll", {EINTR, ENOMEM});
  if (call.refused()) return call.refusal();
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

}  // extern "C"
#pragma GCC visibility pop
