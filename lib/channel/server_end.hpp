#pragma once

#include <atomic>
#include <cstdint>

#include "channel/doorbell.hpp"
#include "kernels/channel_layout.hpp"

namespace offload::channel {

/// How far a channel's messages got, for producer and consumer: posted >= received >= reposted.
/// Their thread's, but for `published`.
struct Cursors {
  std::uint64_t posted = 0;
  std::uint64_t received = 0;
  std::uint64_t reposted = 0;
  /// `reposted` as of the last flush, out of the worker's reach. Any thread.
  std::atomic<std::uint64_t> published{0};
};

/// How the worker at the other end tells that it answered.
enum class Peer : std::uint8_t {
  absent,   ///< there is none
  rings,    ///< it rings the doorbell
  silent,   ///< it cannot: look at times
  relayed,  ///< its answers come by a connection, in turns of the consumer's own engine
};

/// What Producer and Consumer of one channel work on. It outlives both.
struct ServerEnd {
  std::uint32_t index;
  kernels::ChannelView channel;
  Cursors* cursors;
  Ringer ringer;  ///< wakes the worker
  Waiter waiter;  ///< waits for it
};

}  // namespace offload::channel
