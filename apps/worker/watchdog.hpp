#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.hpp"
#include "core/clock.hpp"
#include "kernels/channel_layout.hpp"

namespace offload::worker {

/// Looks at the channels from outside, now and then, and says in the log which one is stuck: where
/// a request stays unanswered, and when its back end last gave a sign of life. It changes nothing.
class Watchdog {
 public:
  Watchdog(std::vector<kernels::ChannelView> channels, core::Duration stuck_after);

  /// `heartbeats`: Backend::heartbeats(). Returns how many channels are stuck.
  std::size_t look(core::TimePoint now, const std::vector<std::uint64_t>& heartbeats);

 private:
  struct Watched {
    kernels::ChannelView channel;
    std::uint64_t waiting = 0;  ///< the sequence that is due
    core::TimePoint since{};
    std::uint64_t heartbeat = 0;
    core::TimePoint beat_at{};
    bool reported = false;
  };

  bool is_stuck(Watched& watched, std::size_t index, core::TimePoint now, std::uint64_t heartbeat);

  std::vector<Watched> watched_;
  core::Duration stuck_after_;
};

}  // namespace offload::worker
