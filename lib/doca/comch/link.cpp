#include "doca/comch/link.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace offload::doca {
namespace {

using core::Error;
using core::ErrorCode;

/// The longest piece that take() returns.
constexpr std::size_t kLongestPiece = std::size_t{16} * 1024;

}  // namespace

void Link::keep(FrameHead head, std::span<const std::byte> payload) {
  if (sent_ == output_.size()) {
    output_.clear();
    sent_ = 0;
  }
  head.length = static_cast<std::uint32_t>(payload.size());
  const auto bytes = bytes_of(head);
  output_.insert(output_.end(), bytes.begin(), bytes.end());
  output_.insert(output_.end(), payload.begin(), payload.end());
}

void Link::send(FrameHead head, std::span<const std::byte> payload) {
  keep(head, payload);
  flush();
}

bool Link::flush() {
  while (has_output()) {
    const iovec rest{output_.data() + sent_, output_.size() - sent_};
    const std::size_t count = send_some({&rest, 1});
    if (count == 0) return false;
    sent_ += count;
  }
  return true;
}

std::size_t Link::send_some(std::span<const iovec> pieces) {
  const ssize_t count = stream_.send(pieces);
  if (count >= 0) return static_cast<std::size_t>(count);
  if (errno == EAGAIN || errno == EINTR) return 0;
  throw Error(ErrorCode::connection_reset, "the peer is gone: " + stream_.failure(errno));
}

void Link::end_output() noexcept {
  static_cast<void>(::shutdown(fd(), SHUT_WR));
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
  const ssize_t count = stream_.receive(to);
  if (count > 0) return static_cast<std::size_t>(count);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  throw Error(ErrorCode::connection_reset,
              count == 0 ? "the peer has closed the connection" : stream_.failure(errno));
}

}  // namespace offload::doca
