#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "core/clock.hpp"
#include "kernels/channel_layout.hpp"

namespace offload::worker {

/// A monitor that logs stuck channels: those with a request that stays unanswered, and when their
/// back end's heartbeat last advanced. It only reads the channels. One thread.
class Watchdog {
 public:
  /// `now`: on the clock of look(). `prefix`: of its lines in the log.
  Watchdog(std::vector<kernels::ChannelView> channels, core::Duration stuck_after,
           core::RunTime now, std::string prefix = {});

  /// Checks all channels. `heartbeats`: Backend::heartbeats(). Returns the number of stuck
  /// channels.
  std::size_t look(core::RunTime now, const std::vector<std::uint64_t>& heartbeats);

 private:
  struct Watched {
    kernels::ChannelView channel;
    std::uint64_t waiting = 0;  ///< the sequence number of the oldest unanswered request
    core::RunTime since{};      ///< since when it is the oldest
    std::uint64_t heartbeat = 0;
    core::RunTime beat_at{};  ///< when the heartbeat last advanced
    bool reported = false;
  };

  bool is_stuck(Watched& watched, std::size_t index, core::RunTime now, std::uint64_t heartbeat);

  std::vector<Watched> watched_;
  core::Duration stuck_after_;
  std::string prefix_;
};

}  // namespace offload::worker
