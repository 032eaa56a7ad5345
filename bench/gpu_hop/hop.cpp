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
      posted_(depth) {
  batch_.reserve(depth);
  requester_.set_wakeup(wakeup);
  requester_.open(engine_);
}

void Hop::run(std::uint64_t messages, std::uint32_t in_flight, core::Duration gap) {
  const std::uint64_t warm_up = std::min<std::uint64_t>(messages / 10, 10'000);
  const std::uint64_t total = messages + warm_up;
  const std::uint64_t window = std::min<std::uint64_t>(in_flight, requester_.capacity());
  times_all_ = window == 1;
  auto begin = core::Clock::now();
  auto last = begin;
  std::uint64_t sent = 0;
  received_ = 0;
  while (received_ < total) {
    const bool may_send = gap == core::Duration{} || core::Clock::now() - last >= gap;
    if (may_send && sent < total && sent - received_ < window) {
      for (; sent < total && sent - received_ < window; ++sent) send(sent);
      requester_.flush();
    }
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
      const auto posted = std::exchange(posted_[received_ % posted_.size()], core::TimePoint{});
      if (received_ >= warm_up && posted != core::TimePoint{}) latency_.record(last - posted);
      check_response(received_++, *task);
    }
    finish_batch();
    if (!fault_.empty()) return;
  }
  duration_ = core::Clock::now() - begin;
}

bool Hop::is_large(std::uint64_t message) const {
  return mixed_ && message % kLargeEvery == kLargeEvery - 1;
}

void Hop::send(std::uint64_t message) {
  const bool timed = !is_large(message) && (times_all_ || message % kTimedEvery == 0);
  const auto begin = timed ? core::Clock::now() : core::TimePoint{};
  check(requester_.post(patterns(message).request(message), nullptr));
  if (!timed) return;
  const auto posted = core::Clock::now();
  posted_[message % posted_.size()] = posted;
  fill_.record(posted - begin);
}

void Hop::check_response(std::uint64_t message, const channel::PostRecvTask& task) {
  const auto& expected = patterns(message).response(message);
  const auto payload = task.payload();
  if (task.response_status() != kernels::Status::ok || payload.size() != expected.size() ||
      (!expected.empty() && std::memcmp(payload.data(), expected.data(), expected.size()) != 0)) {
    fault_ = "message " + std::to_string(message) + ": wrong response";
  }
}

void Hop::finish_batch() {
  for (channel::PostRecvTask* const task : batch_) check(requester_.release(*task));
  requester_.flush();
  batch_.clear();
}

}  // namespace offload::bench
