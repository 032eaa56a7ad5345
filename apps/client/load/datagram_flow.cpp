#include "apps/client/load/datagram_flow.hpp"

#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/epoll.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

#include "apps/client/load/checker.hpp"
#include "core/error.hpp"

namespace offload::client {

using core::Clock;
using core::TimePoint;

/// The headers of IP and UDP, without options.
constexpr std::size_t kIpv4Headers = 28;
constexpr std::size_t kIpv6Headers = 48;
/// The memory that the kernel counts for a received datagram, including bookkeeping.
constexpr std::uint64_t kAnswerRoom = 4096;

core::Fd open_datagram_socket(const net::SocketAddress& address, std::size_t longest,
                              std::uint32_t in_flight) {
  const bool is_v6 = address.family() == AF_INET6;
  core::Fd socket(core::check_errno(
      ::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket"));
  // A fragment has no port: none would come to a queue of the worker's.
  const int level = is_v6 ? IPPROTO_IPV6 : IPPROTO_IP;
  constexpr int kNever = IP_PMTUDISC_DO;
  static_assert(kNever == IPV6_PMTUDISC_DO);
  core::check_errno(::setsockopt(socket.get(), level, is_v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER,
                                 &kNever, sizeof kNever),
                    "setsockopt of IP_MTU_DISCOVER");
  // net.core.rmem_max limits it, except with CAP_NET_ADMIN.
  const auto room = static_cast<int>(std::min<std::uint64_t>(in_flight * kAnswerRoom, INT_MAX / 2));
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) != 0) {
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  }
  core::check_errno(::connect(socket.get(), address.get(), address.size),
                    fmt::format("sending to {}", address.to_string()));
  int mtu = 0;
  socklen_t size = sizeof mtu;
  core::check_errno(::getsockopt(socket.get(), level, is_v6 ? IPV6_MTU : IP_MTU, &mtu, &size),
                    "getsockopt of IP_MTU");
  const std::size_t headers = (is_v6 ? kIpv6Headers : kIpv4Headers) + protocol::kDatagramHeaderSize;
  const std::size_t most = std::max(static_cast<std::size_t>(mtu), headers) - headers;
  if (longest > most + protocol::kFrameHeaderSize) {
    throw core::Error(
        core::ErrorCode::invalid_value,
        fmt::format("a request of {} bytes does not fit in a datagram to {}: at most {} are "
                    "allowed with the MTU of {}",
                    longest - protocol::kFrameHeaderSize, address.to_string(), most, mtu));
  }
  return socket;
}

std::size_t DatagramFlow::receive_room(std::size_t longest) noexcept {
  // One byte more shows what is too long.
  return kBatch *
         (protocol::kDatagramHeaderSize + std::max(longest, protocol::kErrorFrameRoom) + 1);
}

DatagramFlow::DatagramFlow(std::string name, std::uint32_t number, core::Fd socket,
                           LoadShare& share)
    : Flow(std::move(name), number, share),
      socket_(std::move(socket)),
      slots_(std::bit_ceil(share.plan.max_in_flight)),
      free_count_(share.plan.max_in_flight),
      slot_size_(share.datagrams.size() / kBatch) {
  for (std::uint32_t i = 0; i < free_count_; ++i) {
    slots_[i].sequence = i;
    free_.push_back(slots_[i]);
  }
  for (std::uint32_t i = 0; i < kBatch; ++i) {
    messages_[i].pieces[0] = {messages_[i].sequence.data(), messages_[i].sequence.size()};
    headers_[i].msg_hdr.msg_iov = messages_[i].pieces.data();
    headers_[i].msg_hdr.msg_iovlen = messages_[i].pieces.size();
  }
  share_.engine.watch(socket_.get(), EPOLLIN, *this);
}

void DatagramFlow::on_events(std::uint32_t epoll_events) {
  if (over()) return;
  if ((epoll_events & ~std::uint32_t{EPOLLOUT}) != 0) {
    while (!over() && receive()) continue;
  }
  if (!over()) go_on();
}

void DatagramFlow::go_on() {
  watch_for_room(!(is_open_loop() ? flush() : fill_window()));
  if (is_open_loop() && !over() && message_count_ == 0 && next_batch() != 0) join_ready();
  if (!over() && waiting_.empty() && sent_ >= request_limit_) end();
}

void DatagramFlow::stop_sending() noexcept {
  request_limit_ = sent_;
  leave_ready();
  if (!over() && waiting_.empty()) end();
}

std::uint32_t DatagramFlow::next_batch() const noexcept {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(
      {free_count_ - thinking_, request_limit_ - sent_, kBatch - message_count_}));
}

void DatagramFlow::start_batch(std::uint32_t count) {
  if (waiting_.empty()) {
    share_.next_check = std::min(share_.next_check, now_ + share_.plan.response_timeout);
  }
  share_.account_in_flight(now_);
  for (std::uint32_t i = 0; i < count; ++i) {
    Slot& slot = *free_.pop_front();
    begin_pending(slot.request, choose());
    slot.last_sent = now_;
    slot.sent_again = 0;
    slot.in_flight = true;
    waiting_.push_back(slot);
    add_message(slot);
  }
  free_count_ -= count;
  sent_ += count;
  share_.in_flight += count;
  share_.interval->sent += count;
}

void DatagramFlow::add_message(const Slot& slot) {
  Message& message = messages_[message_count_++];
  protocol::store_big_endian(message.sequence.data(), slot.sequence);
  const auto frame = share_.pool.frames(slot.request.number, 1);
  message.pieces[1] = {const_cast<std::byte*>(frame.data()), frame.size()};
}

bool DatagramFlow::flush() {
  while (next_message_ != message_count_) {
    const int count = ::sendmmsg(socket_.get(), &headers_[next_message_],
                                 message_count_ - next_message_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
      if (errno != ECONNREFUSED) ++next_message_;
      note_error(errno);
      if (over()) return false;
      continue;
    }
    for (int i = 0; i < count; ++i) share_.interval->tx_bytes += headers_[next_message_++].msg_len;
  }
  message_count_ = next_message_ = 0;
  return true;
}

/// An unsent datagram counts as lost, as if on the way. ECONNREFUSED is the result of an earlier
/// datagram: no program has the port (icmp(7)).
void DatagramFlow::note_error(int errnum) {
  send_error_ = std::generic_category().message(errnum);
  if (!share_.plan.stop_on_error || share_.control.stopping()) return;
  count_error(kind_of_errno(errnum), 1, sent_, [this] { return "sending failed: " + send_error_; });
}

/// Watches EPOLLOUT only while datagrams are unsent, as a socket nearly always has room.
void DatagramFlow::watch_for_room(bool wanted) {
  if (over() || wanted == watches_for_room_) return;
  share_.engine.rewatch(socket_.get(), wanted ? EPOLLIN | EPOLLOUT : EPOLLIN, *this);
  watches_for_room_ = wanted;
}

/// Takes what has come, a batch at most. Returns whether there may be more.
bool DatagramFlow::receive() {
  std::array<mmsghdr, kBatch> headers{};
  std::array<iovec, kBatch> pieces;
  for (std::uint32_t i = 0; i < kBatch; ++i) {
    pieces[i] = {share_.datagrams.data() + i * slot_size_, slot_size_};
    headers[i].msg_hdr.msg_iov = &pieces[i];
    headers[i].msg_hdr.msg_iovlen = 1;
  }
  const int count = ::recvmmsg(socket_.get(), headers.data(), kBatch, MSG_DONTWAIT, nullptr);
  if (count < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    if (errno != EINTR) note_error(errno);
    return true;  // an error of a datagram that was sent is told once
  }
  now_ = Clock::now();
  share_.account_in_flight(now_);
  for (int i = 0; i < count && !over(); ++i) {
    take({share_.datagrams.data() + static_cast<std::size_t>(i) * slot_size_,
          headers[static_cast<std::size_t>(i)].msg_len});
  }
  return count == static_cast<int>(kBatch);
}

void DatagramFlow::take(std::span<const std::byte> datagram) {
  share_.interval->rx_bytes += datagram.size();
  if (share_.sending_ended) [[unlikely]]
    share_.interval->rx_bytes_after_end += datagram.size();
  const std::uint64_t sequence = datagram.size() < protocol::kDatagramHeaderSize
                                     ? UINT64_MAX
                                     : protocol::load_big_endian<std::uint64_t>(datagram.data());
  Slot& slot = slots_[sequence & (slots_.size() - 1)];
  if (slot.in_flight && slot.sequence == sequence) {
    return take_answer(slot, datagram.subspan(protocol::kSequenceSize));
  }
  // A slot in flight has its sequence; a free one has that of its next request.
  if (sequence < slot.sequence) return take_again(sequence);
  count_error(ErrorKind::bad_frame, 1, sent_,
              [] { return "received a datagram that answers no request"; });
}

/// Something came for a request that is not in flight any more.
void DatagramFlow::take_again(std::uint64_t sequence) {
  Slot& slot = slots_[sequence & (slots_.size() - 1)];
  const std::uint64_t age = (slot.sequence - sequence) / slots_.size();
  const std::uint64_t bit = age < 64 ? std::uint64_t{1} << age : 0;
  if ((slot.lost & bit) == 0) {
    ++share_.interval->duplicates;
  } else {
    slot.lost &= ~bit;
    ++share_.interval->late_answers;
  }
}

void DatagramFlow::take_answer(Slot& slot, std::span<const std::byte> frame) {
  const Expected& expected = share_.pool.response(slot.request.number);
  const FrameCheck check = judge(frame, expected);
  const Pending request = slot.request;
  const bool is_whole = check.size == frame.size();
  const std::uint64_t number = slot.sequence;
  free_slot(slot);
  if (check.state == FrameCheck::State::right && is_whole) {
    take_right(request, number);
    return;
  }
  count_answer();
  const bool is_refusal = check.state == FrameCheck::State::refused && is_whole;
  if (is_refusal) share_.interval->rx_error_bytes += check.size - protocol::kFrameHeaderSize;
  const ErrorKind kind =
      is_refusal || check.state == FrameCheck::State::wrong ? check.error : ErrorKind::bad_frame;
  log(request, kind);
  count_error(kind, 1, number, [&] {
    return check.state == FrameCheck::State::incomplete || !is_whole
               ? std::string("received a datagram that is not exactly one frame")
               : describe_fault(frame, expected);
  });
}

/// Its request is not in flight any more. Precondition: the time since the last change was
/// accounted.
void DatagramFlow::free_slot(Slot& slot) {
  Slots::remove(slot);
  free_.push_back(slot);
  ++free_count_;
  --share_.in_flight;
  slot.in_flight = false;
  slot.sequence += slots_.size();
  slot.lost <<= 1;
}

TimePoint DatagramFlow::deadline() const noexcept {
  const Slot* const oldest = waiting_.front();
  return oldest == nullptr ? TimePoint::max() : oldest->last_sent + share_.plan.response_timeout;
}

void DatagramFlow::on_deadline(TimePoint now) {
  if (share_.control.stopping()) return end();  // the worker may have been stopped too
  now_ = now;
  share_.account_in_flight(now_);
  while (!over() && deadline() <= now) {
    Slot& slot = *waiting_.front();
    if (slot.sent_again == share_.plan.retries) {
      lose(slot);
      continue;
    }
    // A datagram for which the socket has no room counts as lost on the way.
    if (message_count_ < kBatch || flush()) add_message(slot);
    ++slot.sent_again;
    ++share_.interval->sent_again;
    slot.last_sent = now;
    Slots::remove(slot);
    waiting_.push_back(slot);
  }
  if (!over()) go_on();
}

void DatagramFlow::lose(Slot& slot) {
  const Pending request = slot.request;
  const std::uint64_t number = slot.sequence;
  free_slot(slot);
  slot.lost |= 2;  // free_slot() went on by one
  ++share_.interval->lost;
  log(request, ErrorKind::time_out);
  count_error(ErrorKind::time_out, 1, number, [&] {
    return fmt::format("no answer for {:.3f} s{}", core::to_seconds(now_ - request.sent),
                       send_error_.empty() ? "" : ", sending failed (" + send_error_ + ")");
  });
}

void DatagramFlow::log_unanswered() {
  now_ = Clock::now();
  for (const Slot& slot : slots_) {
    if (slot.in_flight) log(slot.request, ErrorKind::unanswered);
  }
}

}  // namespace offload::client
