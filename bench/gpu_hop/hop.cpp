#include "bench/gpu_hop/hop.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "protocol/frame.hpp"

namespace offload::bench {
namespace {

/// No response for this time is a fault.
constexpr core::Duration kLimit = std::chrono::seconds(10);

/// With many messages in flight, one in this number is timed: to read the clock takes as long as to
/// write a short one. Not a multiple of kLargeEvery.
constexpr std::uint32_t kTimedEvery = 16;

/// How many differ: not a power of two, as slots are one; few enough of long ones that they stay in
/// a processor's cache.
std::size_t patterns_of(std::uint32_t size) {
  return size < 4096 ? 61 : 5;
}

channel::SharedChannel import_channel(const channel::ChannelMemory& memory) {
  const channel::ChannelFds own = memory.fds();
  channel::OwnedChannelFds fds;
  std::transform(own.begin(), own.end(), fds.begin(),
                 [](int fd) { return core::Fd(core::check_errno(::dup(fd), "dup")); });
  return std::make_shared<channel::ImportedChannel>(memory.descriptor(), std::move(fds));
}

/// Everything here is in its limits: what is refused is a fault of this program.
[[noreturn, gnu::cold]] void throw_refused(core::Status status) {
  throw core::Error(status.error(), "the channel rejected a task");
}

}  // namespace

Answers Answers::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<std::uint32_t, 3> numbers{};
  file.read(reinterpret_cast<char*>(numbers.data()), sizeof numbers);
  Answers answers{numbers[0], numbers[1], numbers[2], {}};
  const std::string rest{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(rest));
  answers.pairs.assign(bytes.begin(), bytes.end());
  const std::size_t pair = std::size_t{numbers[0]} + numbers[1];
  if (!file || numbers[0] == 0 || rest.empty() || rest.size() % pair != 0) {
    throw core::Error(core::ErrorCode::bad_message,
                      path + ": does not have requests with their responses");
  }
  return answers;
}

Patterns::Patterns(const Answers& answers)
    : size_(answers.request_bytes),
      stride_(size_),
      response_size_(answers.response_bytes),
      compared_(answers.compared != 0) {
  for (std::span<const std::byte> rest = answers.pairs; !rest.empty();
       rest = rest.subspan(size_ + response_size_)) {
    requests_.insert(requests_.end(), rest.begin(), rest.begin() + answers.request_bytes);
    const auto frame = protocol::make_frame(protocol::MessageId::client_response,
                                            rest.subspan(size_, response_size_));
    responses_.insert(responses_.end(), frame.begin(), frame.end());
  }
  request_ = requests_.data();
  response_ = responses_.data();
}

Patterns::Patterns(std::uint32_t size, std::uint32_t seed)
    : size_(size), stride_(std::max<std::size_t>(size, 1)), response_size_(size) {
  std::minstd_rand random(seed);
  requests_.resize(patterns_of(size) * stride_);
  for (auto& byte : requests_) byte = static_cast<std::byte>(random());
  for (std::size_t at = 0; at != requests_.size(); at += stride_) {
    std::vector<std::byte> payload(size);
    std::reverse_copy(&requests_[at], &requests_[at] + size, payload.begin());
    const auto frame = protocol::make_frame(protocol::MessageId::client_response, payload);
    responses_.insert(responses_.end(), frame.begin(), frame.end());
  }
  request_ = requests_.data();
  response_ = responses_.data();
}

bool Patterns::answered_by(std::span<const std::byte> frames, std::uint32_t count) {
  if (frames.size() != count * (response_size_ + protocol::kFrameHeaderSize)) return false;
  if (!compared_) return true;
  bool right = true;
  while (!frames.empty()) {
    const auto left = static_cast<std::size_t>(responses_.data() + responses_.size() - response_);
    const std::size_t part = std::min(frames.size(), left);
    right = std::memcmp(frames.data(), response_, part) == 0 && right;
    advance(response_, part, responses_);
    frames = frames.subspan(part);
  }
  return right;
}

bool Patterns::answered_by(std::span<const std::byte> payload) {
  const std::byte* const expected = response_ + protocol::kFrameHeaderSize;
  advance(response_, protocol::kFrameHeaderSize + response_size_, responses_);
  return payload.size() == response_size_ &&
         (!compared_ || std::memcmp(payload.data(), expected, response_size_) == 0);
}

Hop::Hop(std::uint32_t index, std::uint32_t depth, const Load& load, channel::Wakeup wakeup,
         const Answers* answers)
    : memory_(index, depth, load.max_length, -1),
      import_(import_channel(memory_)),
      requester_(memory_.endpoint(), *this),
      usual_(answers == nullptr ? Patterns(load.size, index + 1) : Patterns(*answers)),
      large_(load.large, index + 2),
      mixed_(load.large != 0),
      max_length_(std::max(load.max_length, answers == nullptr ? 0 : answers->response_bytes)),
      posted_(requester_.capacity()) {
  requester_.set_wakeup(wakeup);
  requester_.open(engine_);
}

void Hop::run(std::uint64_t messages, const Pace& pace) {
  warm_up_ = std::min<std::uint64_t>(messages / 10, 10'000);
  const std::uint64_t total = messages + warm_up_;
  const std::uint64_t window = std::min<std::uint64_t>(pace.in_flight, requester_.capacity());
  pace_ = pace;
  timed_every_ = pace.in_flight == 1 ? 1 : kTimedEvery;
  seen_ = core::Clock::now();
  std::uint64_t sent = 0;
  received_ = 0;
  while (received_ < total) {
    const std::uint64_t end = std::min(total, received_ + window);
    const bool is_time = pace.gap == core::Duration{} || core::Clock::now() - seen_ >= pace.gap;
    if (is_time && (pace.together ? sent == received_ : sent < end)) sent = send(sent, end);
    engine_.progress();
    if (newest_ == nullptr) {
      if (core::Clock::now() - seen_ > kLimit) {
        fault_ = "no response to message " + std::to_string(received_);
      }
      if (!fault_.empty()) return;
      // The server yields too: the answering thread may need this very processor.
      if (requester_.wakeup() == channel::Wakeup::doorbell) std::this_thread::yield();
      continue;
    }
    const core::Status released = requester_.release(*std::exchange(newest_, nullptr));
    if (!released.ok()) throw_refused(released);
    requester_.flush();
    if (!fault_.empty()) return;
  }
  duration_ = core::Clock::now() - begin_;
}

/// Posts and flushes messages from `from` on, before `end`, as far as they fit. Returns the next.
std::uint64_t Hop::send(std::uint64_t from, std::uint64_t end) {
  const bool timed = pace_.together || is_timed(from);
  begun_ = timed ? core::Clock::now() : core::TimePoint{};
  std::uint64_t next = from;
  for (; next != end; ++next) {
    Patterns& own = patterns(next);
    const core::Status status = requester_.post(own.request(), &own);
    if (!status.ok()) {
      if (status.error() == core::ErrorCode::again) break;
      throw_refused(status);
    }
    own.next_request();
  }
  requester_.flush();
  if (next == from) return next;
  if (pace_.together) last_together_ = next;
  const auto flushed = timed ? core::Clock::now() : core::TimePoint{};
  if (timed) fill_.record(flushed - begun_);
  if (is_timed(from)) posted(from) = pace_.in_flight == 1 ? flushed : begun_;
  return next;
}

void Hop::on_response(channel::PostRecvTask& task) {
  if (newest_ == nullptr) seen_ = core::Clock::now();
  newest_ = &task;
  if (warm_up_ - received_ < task.count()) begin_ = seen_;
  const std::uint64_t first = received_;
  received_ += task.count();
  for (std::uint64_t i = (first + timed_every_ - 1) / timed_every_ * timed_every_; i < received_;
       i += timed_every_) {
    record_latency(i);
  }
  if (received_ == last_together_ && received_ > warm_up_) {
    latency_.record(core::Clock::now() - begun_);
  }
  auto& own = *static_cast<Patterns*>(task.user_data);
  const bool right = task.response_status() == kernels::ResponseStatus::ok &&
                     (task.frame().empty() ? own.answered_by(task.payload())
                                           : own.answered_by(task.frame(), task.count()));
  if (!right && fault_.empty()) {
    fault_ = "message " + std::to_string(first) + " or one after it: wrong response";
  }
}

/// Records the latency of a timed message, the first one posted in its turn.
void Hop::record_latency(std::uint64_t message) {
  const auto since = std::exchange(posted(message), core::TimePoint{});
  if (message >= warm_up_ && since != core::TimePoint{}) latency_.record(seen_ - since);
}

}  // namespace offload::bench
