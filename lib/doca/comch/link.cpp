#include "doca/comch/link.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include "core/error.hpp"

namespace offload::doca {
namespace {

using core::Error;
using core::ErrorCode;

/// The longest piece that take() returns.
constexpr std::size_t kLongestPiece = std::size_t{16} * 1024;

/// The most bytes that are kept. The frames for all posted buffers of a consumer are 1 MiB; of the
/// other frames there are fewer.
constexpr std::size_t kMostOutput = std::size_t{4} * 1024 * 1024;

/// Keeps SIGPIPE from a program that does not expect it, while it lives, if the stream has TLS:
/// OpenSSL writes with write(2). The other sends have MSG_NOSIGNAL.
class NoPipeSignal {
 public:
  explicit NoPipeSignal(const comch::TcpStream& stream) noexcept : is_needed_(stream.has_tls()) {
    if (!is_needed_) return;
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &former_);
  }
  NoPipeSignal& operator=(NoPipeSignal&&) = delete;
  ~NoPipeSignal() {
    if (!is_needed_) return;
    const int error = errno;
    const timespec now{};
    if (!was_pending_) ::sigtimedwait(&pipe_, nullptr, &now);
    ::pthread_sigmask(SIG_SETMASK, &former_, nullptr);
    errno = error;
  }

 private:
  bool is_needed_;
  bool was_pending_ = false;
  sigset_t pipe_;  // set if is_needed_, as is the next
  sigset_t former_;
};

}  // namespace

Link::~Link() {
  const NoPipeSignal guard(stream_);
  stream_ = comch::TcpStream(core::Fd());  // it tells the peer
}

bool Link::handshake() {
  const NoPipeSignal guard(stream_);
  return stream_.handshake();
}

void Link::keep(FrameHead head, std::span<const std::byte> payload) {
  if (output_.size() - sent_ > kMostOutput) stop_sending();
  if (!can_send_) return;
  head.length = static_cast<std::uint32_t>(payload.size());
  keep_rest(head, payload, 0);
}

void Link::keep_rest(const FrameHead& head, std::span<const std::byte> payload, std::size_t sent) {
  if (sent_ >= output_.size() / 2) {
    output_.erase(output_.begin(), output_.begin() + static_cast<std::ptrdiff_t>(sent_));
    sent_ = 0;
  }
  const std::size_t sent_head = std::min(sent, sizeof head);
  const auto rest_of_head = bytes_of(head).subspan(sent_head);
  const auto rest = payload.subspan(sent - sent_head);
  const std::size_t end = output_.size();
  output_.resize(end + rest_of_head.size() + rest.size());  // at once, as it may throw
  const auto to = std::copy(rest_of_head.begin(), rest_of_head.end(),
                            output_.begin() + static_cast<std::ptrdiff_t>(end));
  std::copy(rest.begin(), rest.end(), to);
}

void Link::send(FrameHead head, std::span<const std::byte> payload) {
  if (has_output()) {
    keep(head, payload);
    flush();
    return;
  }
  if (!can_send_) return;
  head.length = static_cast<std::uint32_t>(payload.size());
  // The const_cast is safe: sendmsg(2) only reads them.
  const std::array<iovec, 2> pieces{
      {{&head, sizeof head}, {const_cast<std::byte*>(payload.data()), payload.size()}}};
  std::size_t sent = 0;
  try {
    sent = send_some(std::span(pieces).first(payload.empty() ? 1 : 2));
  } catch (const Error&) {
    stop_sending();
    return;
  }
  if (sent == sizeof head + payload.size()) return;
  try {
    keep_rest(head, payload, sent);
  } catch (const std::bad_alloc&) {
    if (sent == 0) throw;
    stop_sending();  // the peer has a part of the frame
  }
}

bool Link::flush() {
  try {
    while (has_output()) {
      const iovec rest{output_.data() + sent_, output_.size() - sent_};
      const std::size_t count = send_some({&rest, 1});
      if (count == 0) return false;
      sent_ += count;
    }
  } catch (const Error&) {
    stop_sending();
  }
  return can_send_;
}

/// Receiving goes on to the last byte that has arrived.
void Link::stop_sending() noexcept {
  can_send_ = false;
  output_ = {};
  sent_ = 0;
  static_cast<void>(::shutdown(fd(), SHUT_RDWR));
}

std::size_t Link::send_some(std::span<const iovec> pieces) {
  const NoPipeSignal guard(stream_);
  const ssize_t count = stream_.send(pieces);
  if (count >= 0) return static_cast<std::size_t>(count);
  if (errno == EAGAIN || errno == EINTR) return 0;
  throw Error(ErrorCode::connection_reset, "the peer is gone: " + stream_.failure(errno));
}

void Link::end_output() noexcept {
  const NoPipeSignal guard(stream_);
  stream_.end_output();
}

std::optional<Link::Frame> Link::next_frame(std::size_t longest) {
  while (end_ - begin_ < sizeof(FrameHead)) {
    if (!fill()) return std::nullopt;
  }
  FrameHead head;
  std::memcpy(&head, input_.data() + begin_, sizeof head);
  if (head.length > std::min(longest, kLongestPiece)) {
    throw Error(ErrorCode::bad_message, "the peer sent a frame that is too long");
  }
  const auto bytes = take(sizeof head + head.length);
  if (!bytes) return std::nullopt;
  return Frame{head, bytes->subspan(sizeof head)};
}

std::optional<std::span<const std::byte>> Link::take(std::size_t count) {
  while (end_ - begin_ < count) {
    if (!fill()) return std::nullopt;
  }
  const std::span<const std::byte> taken(input_.data() + begin_, count);
  begin_ += count;
  return taken;
}

std::size_t Link::receive_into(std::span<std::byte> to) {
  if (begin_ == end_) {
    if (to.size() >= kLongestPiece) return receive(to);
    if (!fill()) return 0;
  }
  const std::size_t count = std::min(to.size(), end_ - begin_);
  std::memcpy(to.data(), input_.data() + begin_, count);
  begin_ += count;
  return count;
}

bool Link::fill() {
  std::memmove(input_.data(), input_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const std::size_t count = receive(std::span(input_).subspan(end_));
  end_ += count;
  return count != 0;
}

std::size_t Link::receive(std::span<std::byte> to) {
  const NoPipeSignal guard(stream_);
  const ssize_t count = stream_.receive(to);
  // A record of TLS is shorter than the rest that the socket has.
  is_drained_ = !stream_.has_tls() && count < static_cast<ssize_t>(to.size());
  if (count > 0) ++arrivals_;
  if (count > 0) return static_cast<std::size_t>(count);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  throw Error(ErrorCode::connection_reset,
              count == 0 ? "the peer has closed the connection" : stream_.failure(errno));
}

}  // namespace offload::doca
