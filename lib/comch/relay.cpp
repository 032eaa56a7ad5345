#include "comch/relay.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "kernels/slot.hpp"

namespace offload::comch {
namespace {

using protocol::DataHeader;
using protocol::kDataHeaderSize;

/// Messages of one system call.
constexpr std::size_t kSentAtOnce = 128;
/// Bytes of one system call; a long payload does not pass through here.
constexpr std::size_t kInputSize = 64 * 1024;
/// Looks at the connection of one turn, so that one that never ends its say does not hold the rest.
constexpr int kReceivesAtOnce = 8;

}  // namespace

Relay::Relay(progress::Engine& engine, core::Fd connection, std::uint32_t depth,
             std::uint32_t max_length)
    : engine_(&engine),
      connection_(std::move(connection)),
      max_length_(max_length),
      outgoing_(depth),
      input_(std::make_unique_for_overwrite<std::byte[]>(kInputSize)) {
  pieces_.reserve(2 * kSentAtOnce);
  engine_->watch(connection_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *this);
  engine_->activate(*this);
}

Relay::~Relay() {
  engine_->deactivate(*this);
  engine_->unwatch(connection_.get(), *this);
}

void Relay::on_events(std::uint32_t epoll_events) {
  if ((epoll_events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) readable_ = true;
  if ((epoll_events & EPOLLOUT) != 0) writable_ = true;
}

bool Relay::poll() {
  if (failed()) return false;
  bool worked = collect();
  worked = send() || worked;
  worked = receive() || worked;
  return worked;
}

core::Duration Relay::arm() {
  const bool has_more = readable_ || (writable_ && sent_ != pushed_);
  return has_more && !failed() ? core::Duration{} : core::Duration::max();
}

void Relay::fail(const std::string& reason) {
  if (failed()) return;
  reason_ = reason;
  failed_.store(true, std::memory_order_release);  // pairs with failed()
}

// ---- Sending

void Relay::push(const DataHeader& header, const std::byte* payload) noexcept {
  Outgoing& message = outgoing(pushed_++);
  header.store(message.header.data());
  message.payload = payload;
  message.length = header.length;
}

bool Relay::send() {
  bool worked = false;
  while (writable_ && sent_ != pushed_) {
    pieces_.clear();
    std::size_t skip = sent_of_next_;
    std::size_t total = 0;
    const auto add = [&](std::byte* data, std::size_t size) {
      const std::size_t skipped = std::min(skip, size);
      skip -= skipped;
      if (size == skipped) return;
      pieces_.push_back({data + skipped, size - skipped});
      total += size - skipped;
    };
    const std::uint64_t end = std::min(pushed_, sent_ + kSentAtOnce);
    for (std::uint64_t number = sent_; number != end; ++number) {
      Outgoing& message = outgoing(number);
      add(message.header.data(), message.header.size());
      add(const_cast<std::byte*>(message.payload), message.length);  // sendmsg only reads
    }
    msghdr header{};
    header.msg_iov = pieces_.data();
    header.msg_iovlen = pieces_.size();
    const auto sent = ::sendmsg(connection_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      fail("the connection broke: " + core::describe_errno(errno));
      return true;
    }
    // Less than all: an event tells when there is room again.
    if (sent < static_cast<ssize_t>(total) && !(sent < 0 && errno == EINTR)) writable_ = false;
    if (sent > 0) advance(static_cast<std::size_t>(sent));
    worked = true;
  }
  return worked;
}

void Relay::advance(std::size_t bytes) {
  std::size_t count = 0;
  sent_of_next_ += bytes;
  while (sent_ != pushed_ && sent_of_next_ >= outgoing(sent_).size()) {
    sent_of_next_ -= outgoing(sent_++).size();
    ++count;
  }
  if (count != 0) on_sent(count);
}

// ---- Receiving

bool Relay::receive() {
  bool worked = false;
  for (int i = 0; readable_ && !failed() && i < kReceivesAtOnce; ++i) {
    if (long_at_ != nullptr) {
      worked = receive_long() || worked;
      continue;
    }
    const std::size_t room = kInputSize - input_size_;
    const auto received = ::recv(connection_.get(), input_.get() + input_size_, room, MSG_DONTWAIT);
    if (received <= 0) {
      if (received == 0) fail("the peer closed the connection");
      if (received < 0 && errno == EAGAIN) readable_ = false;
      if (received < 0 && errno != EAGAIN && errno != EINTR) {
        fail("the connection broke: " + core::describe_errno(errno));
      }
      break;
    }
    worked = true;
    input_size_ += static_cast<std::size_t>(received);
    if (!take_messages()) break;
  }
  if (worked) on_taken();
  return worked;
}

/// Takes the rest of a long payload from the connection to where it goes.
bool Relay::receive_long() {
  const std::size_t left = long_.length - long_received_;
  const auto received = ::recv(connection_.get(), long_at_ + long_received_, left, MSG_DONTWAIT);
  if (received <= 0) {
    if (received == 0) fail("the peer closed the connection");
    if (received < 0 && errno == EAGAIN) readable_ = false;
    if (received < 0 && errno != EAGAIN && errno != EINTR) {
      fail("the connection broke: " + core::describe_errno(errno));
    }
    return false;
  }
  long_received_ += static_cast<std::size_t>(received);
  if (long_received_ == long_.length) {
    if (!take(long_, {std::exchange(long_at_, nullptr), long_.length})) {
      fail("the peer sent a message that is not due");
    }
  }
  return true;
}

/// Takes what is in the input. False if the connection has failed.
bool Relay::take_messages() {
  std::size_t at = 0;
  while (long_at_ == nullptr && input_size_ - at >= kDataHeaderSize) {
    const DataHeader header = DataHeader::load(input_.get() + at);
    if (header.length > max_length_) {
      fail("the peer sent a message of " + std::to_string(header.length) + " bytes, over the " +
           std::to_string(max_length_) + " of the channel");
      return false;
    }
    const std::byte* const payload = input_.get() + at + kDataHeaderSize;
    const std::size_t there = input_size_ - at - kDataHeaderSize;
    bool due = true;
    if (header.length <= kernels::kMaxPacked) {
      if (there < header.length) break;
      due = take(header, {payload, header.length});
      at += kDataHeaderSize + header.length;
    } else {
      std::byte* const to = room(header);
      due = to != nullptr;
      const std::size_t part = std::min<std::size_t>(there, header.length);
      if (due) std::memcpy(to, payload, part);
      at += kDataHeaderSize + part;
      if (due && part == header.length) {
        due = take(header, {to, header.length});
      } else {
        long_ = header;
        long_at_ = to;
        long_received_ = part;
      }
    }
    if (!due) {
      fail("the peer sent a message that is not due");
      return false;
    }
  }
  input_size_ -= at;
  std::memmove(input_.get(), input_.get() + at, input_size_);
  return true;
}

}  // namespace offload::comch
