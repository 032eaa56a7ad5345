#pragma once

#include <cstdint>
#include <utility>

#include "channel/channel_memory.hpp"
#include "tests/channel/channel_fixture.hpp"

namespace offload::server::test {

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
