#include "comch/transport/tcp/data.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "kernels/channel_layout.hpp"

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

TcpDataConnection::TcpDataConnection(progress::Engine& engine, core::Fd connection,
                                     const kernels::ChannelLayout& layout, DataHandler& end)
    : engine_(&engine),
      end_(&end),
      connection_(std::move(connection)),
      max_length_(layout.max_length),
      outgoing_(layout.depth),
      input_(std::make_unique_for_overwrite<std::byte[]>(kInputSize)) {
  pieces_.reserve(2 * kSentAtOnce);
  engine_->watch(connection_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *this);
  engine_->activate(*this);
}

TcpDataConnection::~TcpDataConnection() {
  engine_->deactivate(*this);
  engine_->unwatch(connection_.get(), *this);
}

void TcpDataConnection::on_events(std::uint32_t epoll_events) {
  if ((epoll_events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) readable_ = true;
  if ((epoll_events & EPOLLOUT) != 0) writable_ = true;
}

bool TcpDataConnection::poll() {
  if (failed()) return false;
  bool worked = end_->collect();
  worked = send() || worked;
  worked = receive() || worked;
  return worked;
}

core::Duration TcpDataConnection::arm() {
  const bool has_more = readable_ || (writable_ && sent_ != pushed_);
  return has_more && !failed() ? core::Duration{} : core::Duration::max();
}

// ---- Sending

void TcpDataConnection::push(const DataHeader& header, const std::byte* payload) noexcept {
  Outgoing& message = outgoing(pushed_++);
  header.store(message.header.data());
  message.payload = payload;
  message.length = header.length;
}

bool TcpDataConnection::send() {
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

void TcpDataConnection::advance(std::size_t bytes) {
  std::size_t count = 0;
  sent_of_next_ += bytes;
  while (sent_ != pushed_ && sent_of_next_ >= outgoing(sent_).size()) {
    sent_of_next_ -= outgoing(sent_++).size();
    ++count;
  }
  if (count != 0) end_->on_sent(count);
}

// ---- Receiving

bool TcpDataConnection::receive() {
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
  if (worked) end_->on_taken();
  return worked;
}

/// Takes the rest of a long payload from the connection to where it goes.
bool TcpDataConnection::receive_long() {
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
    take({std::exchange(long_at_, nullptr), long_.length}, long_);
  }
  return true;
}

/// Takes what is in the input. False if the connection has failed.
bool TcpDataConnection::take_messages() {
  std::size_t at = 0;
  while (!failed() && long_at_ == nullptr && input_size_ - at >= kDataHeaderSize) {
    const DataHeader header = DataHeader::load(input_.get() + at);
    if (header.length > max_length_) {
      fail("the peer sent a message of " + std::to_string(header.length) + " bytes, over the " +
           std::to_string(max_length_) + " of the channel");
      break;
    }
    const std::size_t there = input_size_ - at - kDataHeaderSize;
    const bool is_long = header.length > kernels::kMaxPacketPayload;
    if (!is_long && there < header.length) break;
    if (!end_->is_due(header)) {
      fail("the peer sent a message that is not due");
      break;
    }
    at += kDataHeaderSize;
    const std::byte* const payload = input_.get() + at;
    const std::size_t slot = std::min<std::size_t>(there, header.length);
    at += slot;
    if (!is_long) {
      take({payload, slot}, header);
      continue;
    }
    std::byte* const to = end_->room(header.sequence);
    std::memcpy(to, payload, slot);
    if (slot == header.length) {
      take({to, slot}, header);
    } else {
      long_ = header;
      long_at_ = to;
      long_received_ = slot;
    }
  }
  input_size_ -= at;
  std::memmove(input_.get(), input_.get() + at, input_size_);
  return !failed();
}

void TcpDataConnection::take(std::span<const std::byte> payload, const DataHeader& header) {
  if (!end_->take(header, payload)) fail("a message of the peer cannot be taken");
}

std::unique_ptr<DataConnection> TcpDataEndpoint::carry(progress::Engine& engine,
                                                       const kernels::ChannelView& channel,
                                                       DataHandler& end, std::uint32_t) {
  return std::make_unique<TcpDataConnection>(engine, std::move(connection_), channel.layout, end);
}

}  // namespace offload::comch
