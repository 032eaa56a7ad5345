#include "bench/gpu_hop/hop.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <utility>

#include "core/error.hpp"

namespace offload::bench {
namespace {

/// No response for so long is a fault.
constexpr core::Duration kLimit = std::chrono::seconds(10);

/// Where many are under way, one of so many is timed: to look at the clock takes as long as to
/// write a short one. Not a multiple of kLargeEvery.
constexpr std::uint64_t kTimedEvery = 16;

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
void check(core::Status status) {
  if (!status.ok()) throw core::Error(status.error(), "the channel refused a task");
}

}  // namespace

Patterns::Patterns(std::uint32_t size, std::uint32_t seed) {
  std::minstd_rand random(seed);
  while (requests_.size() < patterns_of(size)) {
    auto& request = requests_.emplace_back(size);
    for (auto& byte : request) byte = static_cast<std::byte>(random());
    responses_.emplace_back(request.rbegin(), request.rend());
  }
}

Hop::Hop(std::uint32_t index, std::uint32_t depth, const Load& load, channel::Wakeup wakeup)
    : memory_(index, depth, load.max_length, -1),
      import_(import_channel(memory_)),
      requester_(memory_.endpoint(), *this),
      usual_(load.size, index + 1),
      large_(load.large, index + 2),
      mixed_(load.large != 0),
      posted_(requester_.capacity()) {
  batch_.reserve(requester_.capacity());
  requester_.set_wakeup(wakeup);
  requester_.open(engine_);
}

void Hop::run(std::uint64_t messages, const Pace& pace) {
  const std::uint64_t warm_up = std::min<std::uint64_t>(messages / 10, 10'000);
  const std::uint64_t total = messages + warm_up;
  const std::uint64_t window = std::min<std::uint64_t>(pace.in_flight, requester_.capacity());
  pace_ = pace;
  auto begin = core::Clock::now();
  auto last = begin;
  std::uint64_t sent = 0;
  received_ = 0;
  while (received_ < total) {
    const std::uint64_t end = std::min(total, received_ + window);
    const bool is_time = pace.gap == core::Duration{} || core::Clock::now() - last >= pace.gap;
    if (is_time && (pace.together ? sent == received_ : sent < end)) sent = send(sent, end);
    engine_.progress();
    if (batch_.empty()) {
      if (core::Clock::now() - last > kLimit) {
        fault_ = "no response to message " + std::to_string(received_);
      }
      if (!fault_.empty()) return;
      // As the server does: a thread that is to answer may need this very processor.
      if (requester_.wakeup() == channel::Wakeup::doorbell) std::this_thread::yield();
      continue;
    }
    last = core::Clock::now();
    for (const channel::PostRecvTask* const task : batch_) {
      if (received_ == warm_up) begin = last;
      if (is_timed(received_)) {
        const auto flushed = std::exchange(posted(received_), core::TimePoint{});
        if (received_ >= warm_up && flushed != core::TimePoint{}) latency_.record(last - flushed);
      }
      check_response(received_++, *task);
    }
    if (pace.together && received_ == sent && received_ > warm_up) latency_.record(last - begun_);
    finish_batch();
    if (!fault_.empty()) return;
  }
  duration_ = core::Clock::now() - begin;
}

bool Hop::is_large(std::uint64_t message) const {
  return mixed_ && message % kLargeEvery == kLargeEvery - 1;
}

bool Hop::is_timed(std::uint64_t message) const {
  return !pace_.together && !is_large(message) &&
         (pace_.in_flight == 1 || message % kTimedEvery == 0);
}

/// Posts and flushes messages from `from` on, before `end`, as far as they fit. Returns the next.
std::uint64_t Hop::send(std::uint64_t from, std::uint64_t end) {
  const bool timed = pace_.together || is_timed(from);
  begun_ = timed ? core::Clock::now() : core::TimePoint{};
  std::uint64_t next = from;
  for (; next != end; ++next) {
    Patterns& own = patterns(next);
    const core::Status status = requester_.post(own.request(), nullptr);
    if (status.error() == core::ErrorCode::again) break;
    check(status);
    own.next_request();
  }
  requester_.flush();
  if (next == from) return next;
  const auto flushed = timed ? core::Clock::now() : core::TimePoint{};
  if (timed) fill_.record(flushed - begun_);
  if (is_timed(from)) posted(from) = flushed;
  return next;
}

void Hop::check_response(std::uint64_t message, const channel::PostRecvTask& task) {
  Patterns& own = patterns(message);
  const auto& expected = own.response();
  const auto payload = task.payload();
  if (task.response_status() != kernels::Status::ok || payload.size() != expected.size() ||
      (!expected.empty() && std::memcmp(payload.data(), expected.data(), expected.size()) != 0)) {
    fault_ = "message " + std::to_string(message) + ": wrong response";
  }
  own.next_response();
}

void Hop::finish_batch() {
  for (channel::PostRecvTask* const task : batch_) check(requester_.release(*task));
  requester_.flush();
  batch_.clear();
}

}  // namespace offload::bench
