#include "bench/tcp_echo/echo_loop.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "protocol/frame.hpp"

namespace offload::bench {

/// A connection: its socket, and one buffer for receiving, checking and sending.
class Connection {
 public:
  Connection(core::Fd socket, std::uint32_t max_message_length, core::Duration work)
      : socket_(std::move(socket)),
        max_message_length_(max_message_length),
        work_(work),
        capacity_(protocol::kFrameHeaderSize + max_message_length + kBatchBytes),
        buffer_(std::make_unique_for_overwrite<std::byte[]>(capacity_)) {}

  /// Returns whether the socket took only a part of the output. Nothing is received until it took
  /// the rest, which bounds the buffer.
  [[nodiscard]] bool blocked() const noexcept { return sent_ < checked_; }

  /// One recv and one send; only the send if blocked(). Does not block. Returns false to close the
  /// connection: the peer has closed it, it failed, or a frame is bad.
  bool serve() noexcept { return blocked() ? send() : receive() && check() && send(); }

 private:
  /// The room for a recv beside the longest partial frame.
  static constexpr std::size_t kBatchBytes = std::size_t{64} << 10;

  bool receive() noexcept {
    const auto count = ::recv(socket_.get(), buffer_.get() + filled_, capacity_ - filled_, 0);
    if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EINTR);
    filled_ += static_cast<std::size_t>(count);
    return true;
  }

  bool check() noexcept {
    for (;;) {
      const std::span<const std::byte> rest(buffer_.get() + checked_, filled_ - checked_);
      const auto frame = protocol::parse_frame(rest, max_message_length_);
      if (frame.state == protocol::FrameView::State::incomplete) return true;
      if (frame.state == protocol::FrameView::State::bad) return false;
      if (frame.id != protocol::MessageId::client_request) return false;
      if (work_ > core::Duration{}) work();
      checked_ += frame.size();
    }
  }

  void work() const noexcept {
    const auto end = core::Clock::now() + work_;
    while (core::Clock::now() < end) core::cpu_relax();
  }

  bool send() noexcept {
    if (!blocked()) return true;  // no complete frame has arrived
    const auto count = ::send(socket_.get(), buffer_.get() + sent_, checked_ - sent_, MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    sent_ += static_cast<std::size_t>(count);
    if (!blocked()) keep_partial_frame();
    return true;
  }

  void keep_partial_frame() noexcept {
    std::memmove(buffer_.get(), buffer_.get() + checked_, filled_ - checked_);
    filled_ -= checked_;
    sent_ = checked_ = 0;
  }

  core::Fd socket_;
  std::uint32_t max_message_length_;
  core::Duration work_;
  std::size_t capacity_;
  std::unique_ptr<std::byte[]> buffer_;
  // [0, sent_) is sent, [sent_, checked_) are complete frames, [checked_, filled_) a part of one.
  std::size_t sent_ = 0;
  std::size_t checked_ = 0;
  std::size_t filled_ = 0;
};

EchoLoop::EchoLoop(std::uint32_t max_message_length, core::Duration work, int stop)
    : max_message_length_(max_message_length),
      work_(work),
      stop_(stop),
      epoll_(core::check_errno(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")) {
  int ends[2];
  core::check_errno(::pipe2(ends, O_CLOEXEC), "pipe2");
  given_sockets_ = core::Fd(ends[0]);
  give_ = core::Fd(ends[1]);
  watch(EPOLL_CTL_ADD, stop_, EPOLLIN);
  watch(EPOLL_CTL_ADD, given_sockets_.get(), EPOLLIN);
}

EchoLoop::~EchoLoop() = default;

void EchoLoop::run() {
  std::array<epoll_event, 256> events{};
  for (;;) {
    // No timeout: stop_ ends the wait. It can only fail with EINTR, and then there are no events.
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == stop_) return;
      if (fd == given_sockets_.get()) {
        take_given();
      } else {
        serve(fd);
      }
    }
  }
}

void EchoLoop::watch(int operation, int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  core::check_errno(::epoll_ctl(epoll_.get(), operation, fd, &event), "epoll_ctl");
}

void EchoLoop::give(core::Fd socket) {
  const int fd = socket.get();
  // Blocks only while the pipe is full, of thousands of sockets, which the loop's thread empties.
  // Writes of up to PIPE_BUF bytes are atomic (pipe(7)).
  core::check_errno(::write(give_.get(), &fd, sizeof fd), "cannot hand a connection over");
  static_cast<void>(socket.release());
  ++given_;
}

/// Takes over sockets. Called when the pipe is readable, so the read does not block.
void EchoLoop::take_given() {
  std::array<int, 64> fds{};
  const auto bytes = ::read(given_sockets_.get(), fds.data(), sizeof fds);
  for (std::size_t i = 0; bytes > 0 && i < static_cast<std::size_t>(bytes) / sizeof(int); ++i) {
    const auto index = static_cast<std::size_t>(fds[i]);
    if (index >= connections_.size()) connections_.resize(index + 1);
    connections_[index] =
        std::make_unique<Connection>(core::Fd(fds[i]), max_message_length_, work_);
    watch(EPOLL_CTL_ADD, fds[i], EPOLLIN);
  }
}

void EchoLoop::serve(int fd) {
  auto& connection = connections_[static_cast<std::size_t>(fd)];
  const bool was_blocked = connection->blocked();
  if (!connection->serve()) {
    connection.reset();
    gone_.store(gone_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  } else if (connection->blocked() != was_blocked) {
    watch(EPOLL_CTL_MOD, fd, was_blocked ? EPOLLIN : EPOLLOUT);
  }
}

}  // namespace offload::bench
