#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "channel/channel_memory.hpp"
#include "channel/packets.hpp"
#include "comch/session/worker_channel.hpp"
#include "core/error.hpp"
#include "tests/channel/channel_fixture.hpp"

namespace offload::server::test {

/// A channel of worker `id`: 4 slots, messages of up to 1000 bytes.
inline std::shared_ptr<comch::WorkerChannel> make_channel(comch::WorkerId id,
                                                          channel::Wakeup wakeup) {
  return std::shared_ptr<comch::WorkerChannel>(
      new comch::WorkerChannel{id, wakeup, {0, 4, 1000, -1}});
}

/// A line to a worker that cannot be reached any more.
class BrokenLine final : public comch::DataEndpoint {
 public:
  std::unique_ptr<comch::DataConnection> start(progress::Engine&, const kernels::ChannelView&,
                                               comch::DataHandler&, std::uint32_t) override {
    throw core::Error(core::ErrorCode::connection_reset, "the line is cut");
  }
};

/// The worker of one channel, played slot by slot: it reverses requests when the test says so.
class Worker {
 public:
  explicit Worker(const channel::ChannelMemory& memory)
      : channel_(memory.descriptor(), channel::test::passed_fds(memory)) {}

  /// Answers the next request; false if there is none.
  bool serve() {
    const auto outcome = kernels::serve(kernels::SingleLane{}, channel_.view(), sequence_,
                                        kernels::Reverse{}, staging_);
    if (outcome == kernels::Outcome::nothing) return false;
    ++sequence_;
    return true;
  }
  /// Answers all that are there; how many.
  int serve_all() {
    int count = 0;
    while (serve()) ++count;
    return count;
  }
  /// Answers the next request with an error, there or not.
  void fail() {
    kernels::refuse(kernels::SingleLane{}, channel_.view().response(sequence_),
                    channel_.view().layout.flag_of(sequence_));
    ++sequence_;
  }

  /// Answers the next request, there or not, with `payload`, which fits in packets.
  void answer(std::span<const std::byte> payload) {
    const kernels::Slot slot = channel_.view().response(sequence_);
    channel::write_packets(slot.packets, channel_.view().layout.flag_of(sequence_), payload.data(),
                           static_cast<std::uint32_t>(payload.size()));
    ++sequence_;
  }

  /// Leaves the next request unanswered.
  void skip() { ++sequence_; }

  /// Whether the next request is there.
  [[nodiscard]] bool has_request() const {
    return kernels::load_packet(channel_.view().request(sequence_).packets).flag ==
           channel_.view().layout.flag_of(sequence_);
  }

  [[nodiscard]] channel::Ringer ringer() const noexcept { return channel_.ringer(); }
  [[nodiscard]] channel::Waiter waiter() const noexcept { return channel_.waiter(); }

 private:
  channel::ImportedChannel channel_;
  std::uint64_t sequence_ = 0;
  kernels::Staging staging_{};
};

}  // namespace offload::server::test
