#include "bench/gpu_hop/hop.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "core/error.hpp"

namespace offload::bench {
namespace {

/// No response for so long is a fault.
constexpr core::Duration kLimit = std::chrono::seconds(10);

comch::ChannelImport import_channel(const comch::Channel& channel) {
  const std::array<int, 3> own = channel.fds();
  std::array<core::Fd, 3> fds;
  std::transform(own.begin(), own.end(), fds.begin(),
                 [](int fd) { return core::Fd(core::check_errno(::dup(fd), "dup")); });
  return {channel.descriptor(), std::move(fds)};
}

}  // namespace

Hop::Hop(std::uint32_t index, std::uint32_t depth, std::uint32_t size, bool silent)
    : channel_(index, depth, size, -1),
      import_(import_channel(channel_)),
      sent_(depth),
      received_(kernels::kMaxPacked + kernels::kSlack) {
  channel_.consumer().set_peer(silent ? comch::Peer::silent : comch::Peer::rings);
  std::minstd_rand random(index + 1);
  for (std::size_t i = 0; i < kPatterns; ++i) {
    auto& request = requests_.emplace_back(size);
    for (auto& byte : request) byte = static_cast<std::byte>(random());
    responses_.emplace_back(request.rbegin(), request.rend());
  }
}

gpu::BackendChannel Hop::worker_end() const {
  return {import_.index(), import_.channel(), import_.waiter(), import_.ringer()};
}

void Hop::run(std::uint64_t messages, std::uint32_t in_flight, core::Duration gap) {
  const std::uint64_t warm_up = std::min<std::uint64_t>(messages / 10, 10'000);
  const std::uint64_t total = messages + warm_up;
  const std::uint64_t window = std::min<std::uint64_t>(in_flight, channel_.producer().capacity());
  auto begin = core::Clock::now();
  auto last = begin;
  std::uint64_t sent = 0;
  for (std::uint64_t received = 0; received < total;) {
    const bool may_send = gap == core::Duration{} || core::Clock::now() - last >= gap;
    if (may_send && sent < total && sent - received < window) {
      for (; sent < total && sent - received < window; ++sent) send(sent);
      channel_.producer().flush();
    }
    auto* task = channel_.consumer().receive(received_.data());
    if (task == nullptr) {
      if (core::Clock::now() - last > kLimit) {
        fault_ = "no response to message " + std::to_string(received);
        return;
      }
      continue;
    }
    last = core::Clock::now();
    for (; task != nullptr; task = channel_.consumer().receive(received_.data())) {
      if (!check(received, *task)) return;
      if (received == warm_up) begin = last;
      if (received >= warm_up) latency_.record(last - sent_[received % sent_.size()]);
      channel_.consumer().repost(*task);
      ++received;
    }
    channel_.consumer().flush();
  }
  duration_ = core::Clock::now() - begin;
}

void Hop::send(std::uint64_t message) {
  comch::SendTask* const task = channel_.producer().allocate();
  sent_[message % sent_.size()] = core::Clock::now();
  channel_.producer().submit(*task, requests_[message % kPatterns]);
}

bool Hop::check(std::uint64_t message, const comch::PostRecvTask& task) {
  const auto& expected = responses_[message % kPatterns];
  if (task.status == kernels::Status::ok && task.payload.size() == expected.size() &&
      std::equal(expected.begin(), expected.end(), task.payload.begin())) {
    return true;
  }
  fault_ = "message " + std::to_string(message) + ": wrong response";
  return false;
}

}  // namespace offload::bench
