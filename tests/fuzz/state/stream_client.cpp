#include "tests/fuzz/state/stream_client.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "protocol/bytes.hpp"
#include "tests/fuzz/input.hpp"

namespace offload::fuzz {
namespace {

using protocol::load_big_endian;
using protocol::Refusal;

constexpr std::uint32_t kHeader = 12;

/// Implements docs/reference/wire-protocol.md separately from the product's parser.
struct Seen {
  std::optional<Refusal> breach{};
  std::size_t size = 0;  ///< of a whole frame; 0: it is not yet whole
};

bool is_id(std::uint32_t id) {
  return id <= 6 || (id >= 16 && id <= 26);
}

Seen look_at(std::span<const std::byte> stream) {
  if (stream.size() < 4) return {};
  const auto wire_size = load_big_endian<std::uint32_t>(stream.data());
  if (wire_size < kHeader) return {Refusal::frame_too_short};
  if (wire_size > kHeader + StreamClient::kLongest) return {Refusal::frame_too_long};
  if (stream.size() < kHeader) return {};
  const auto id = load_big_endian<std::uint32_t>(stream.data() + 4);
  if (load_big_endian<std::uint32_t>(stream.data() + 8) != wire_size - kHeader) {
    return {Refusal::length_mismatch};
  }
  if (!is_id(id)) return {Refusal::unknown_message};
  if (stream.size() < wire_size) return {};
  if (id != 4) return {Refusal::misplaced_message};
  return {{}, wire_size};
}

}  // namespace

/// Form: its high four bits select the error; without one, the low bits select the message.
Bytes make_client_frame(Script& script, unsigned& next_byte) {
  constexpr std::array<std::uint32_t, 16> kIds{4,  5,  6,  0,  1,  2,  3,           7,
                                               15, 16, 19, 23, 26, 27, 0x8000'0004, 0xffff'ffff};
  const std::uint8_t form = script.byte();
  const std::uint32_t length = script.two_bytes() % 1100;
  Bytes frame(kHeader + length);
  for (std::size_t i = kHeader; i < frame.size(); ++i) {
    frame[i] = static_cast<std::byte>(next_byte++ * 151U >> 3U);
  }
  std::uint32_t wire_size = kHeader + length;
  std::uint32_t said = length;
  switch (form >> 4U) {
    case 1: ++said; break;
    case 2: --wire_size; break;
    case 3: wire_size = form & 15U; break;
    case 4: wire_size += 0x8000'0000U; break;
    case 5: said = 0xffff'fff4U; break;
    case 6:
      wire_size = kHeader + StreamClient::kLongest + 1;
      said = StreamClient::kLongest + 1;
      break;
    default: break;
  }
  protocol::store_big_endian(frame.data(), wire_size);
  protocol::store_big_endian(frame.data() + 4, (form >> 4U) == 0 ? kIds.at(form & 15U) : 4U);
  protocol::store_big_endian(frame.data() + 8, said);
  return frame;
}

void StreamClient::send(core::Duration now, std::size_t kept) {
  if (!connected() || sends_no_more_) return;
  while (outbox_.size() > kept) {
    const ssize_t taken =
        ::send(socket_.get(), outbox_.data(), outbox_.size() - kept, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (taken <= 0) return;
    if (sent_.empty()) begun_ = now;
    sent_.insert(sent_.end(), outbox_.begin(), outbox_.begin() + taken);
    outbox_.erase(outbox_.begin(), outbox_.begin() + taken);
    parse_sent(now);
  }
}

void StreamClient::parse_sent(core::Duration now) {
  std::size_t at = 0;
  while (!breach_) {
    const Seen seen = look_at(std::span(sent_).subspan(at));
    breach_ = seen.breach;
    if (seen.size == 0) break;
    requests_.push_back({{sent_.begin() + static_cast<std::ptrdiff_t>(at + kHeader),
                          sent_.begin() + static_cast<std::ptrdiff_t>(at + seen.size)},
                         begun_,
                         now});
    begun_ = now;
    at += seen.size;
  }
  sent_.erase(sent_.begin(), sent_.begin() + static_cast<std::ptrdiff_t>(at));
}

void StreamClient::end_sending() {
  if (!connected()) return;
  ::shutdown(socket_.get(), SHUT_WR);
  sends_no_more_ = true;
}

bool StreamClient::read(std::size_t most, const Allowed& allowed) {
  bool any = false;
  while (connected() && !ended_ && most != 0) {
    std::array<std::byte, 16384> chunk;
    const ssize_t count =
        ::recv(socket_.get(), chunk.data(), std::min(most, chunk.size()), MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) break;
    any = true;
    if (count <= 0) {
      ended_ = true;
      break;
    }
    most -= static_cast<std::size_t>(count);
    received_.insert(received_.end(), chunk.begin(), chunk.begin() + count);
    take_frames(allowed);
  }
  return any;
}

void StreamClient::take_frames(const Allowed& allowed) {
  std::size_t at = 0;
  while (received_.size() - at >= kHeader) {
    const std::byte* const frame = received_.data() + at;
    const auto length = load_big_endian<std::uint32_t>(frame + 8);
    require(load_big_endian<std::uint32_t>(frame) == kHeader + length, "a frame has two lengths");
    require(length <= std::max<std::uint32_t>(kLongest, 128), "an answer is no longer than that");
    if (received_.size() - at < kHeader + length) break;
    require(!last_word_, "nothing follows the last word");
    const std::span<const std::byte> payload(frame + kHeader, length);
    const auto id = load_big_endian<std::uint32_t>(frame + 4);
    require(id == 5 || id == 6, "a client gets responses and errors");
    if (id == 5) {
      take_response(payload);
    } else {
      require(length >= 4, "an error has its reason");
      take_error(static_cast<Refusal>(load_big_endian<std::uint32_t>(payload.data())), allowed);
    }
    at += kHeader + length;
  }
  received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(at));
}

void StreamClient::take_response(std::span<const std::byte> payload) {
  require(answered_ < requests_.size(), "no answer without a request");
  const Bytes& request = requests_[answered_].payload;
  if (answered_ >= trusted_from_) {
    require(std::equal(payload.begin(), payload.end(), request.rbegin(), request.rend()),
            "an answer is the reversal of its request");
  } else {
    require(payload.size() <= request.size(), "no lie is longer than the service's answer");
  }
  ++answered_;
}

/// Returns the time that the frame after the last answer took, or has taken so far: requests that
/// were sent after the server's decision are not answered. A frame that became whole as this one
/// began counts if it took longer: even if it is answered with later ones, its client is late.
core::Duration StreamClient::frame_took(core::Duration now) const {
  const bool has_next = answered_ != requests_.size();
  const core::Duration begun = has_next ? requests_[answered_].begun : begun_;
  core::Duration longest = (has_next ? requests_[answered_].whole : now) - begun;
  for (std::size_t i = answered_; i-- != 0 && requests_[i].whole == begun;) {
    longest = std::max(longest, requests_[i].whole - requests_[i].begun);
  }
  return longest;
}

core::Duration StreamClient::was_idle(core::Duration now) const {
  const core::Duration from = answered_ == 0 ? since_ : requests_[answered_ - 1].whole;
  return (answered_ == requests_.size() ? now : requests_[answered_].whole) - from;
}

void StreamClient::take_error(Refusal reason, const Allowed& allowed) {
  const auto over = [](core::Duration limit, core::Duration time) {
    return limit != core::Duration{} && time >= limit;
  };
  const bool all = answered_ == requests_.size();
  switch (reason) {
    case Refusal::worker_failed:
      require(allowed.worker_failed || answered_ < trusted_from_, "a worker has failed");
      may_be_culprit_ = allowed.worker_failed;
      break;
    case Refusal::worker_unavailable: require(allowed.no_worker, "there is no worker"); break;
    case Refusal::shutting_down:
      require(allowed.draining, "it shuts down");
      if (!all) break;
      last_word_ = reason;  // to one that was paused
      return;
    case Refusal::request_timed_out:
      require(over(allowed.request_timeout, allowed.passed - since_), "a request takes too long");
      break;
    case Refusal::out_of_memory:
      require(allowed.out_of_memory, "there is no memory");
      last_word_ = reason;
      return;
    case Refusal::frame_timed_out:
      require(over(allowed.frame_timeout, frame_took(allowed.passed)), "a frame takes too long");
      last_word_ = reason;
      return;
    case Refusal::idle_timed_out:
      require(over(allowed.idle_timeout, was_idle(allowed.passed)), "it is idle for too long");
      last_word_ = reason;
      return;
    default:
      require(breach_ == reason && all, "who breaks the protocol is told how, behind its answers");
      last_word_ = reason;
      return;
  }
  require(answered_ < requests_.size(), "no refusal without a request");
  ++answered_;
}

void StreamClient::check_quiet(const Allowed& allowed) const {
  if (!connected() || last_word_) {
    if (connected()) require(ended_, "after its last word it sends no more");
    return;
  }
  const bool too_slow = allowed.passed - since_ >= allowed.output_timeout;
  if (ended_ && (may_be_culprit_ || allowed.out_of_memory || allowed.draining || too_slow)) return;
  require(received_.empty(), "frames come whole");
  require(!allowed.draining || ended_, "it ends when the server does");
  if (allowed.draining) return;  // bytes that were not read before the drain are not answered
  require(answered_ == requests_.size(), "each request is answered");
  require(!breach_, "who breaks the protocol is told");
  require(ended_ == sends_no_more_, "it ends when its client does");
}

}  // namespace offload::fuzz
