#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "kernels/channel_layout.hpp"
#include "kernels/serve.hpp"

namespace offload::worker {

/// Uses the flags of the requests in the slots: if the worker posts its responses itself, its
/// memory does not show how many the server has taken. `near`: a sequence less than 2^30 laps away.
inline std::optional<std::uint64_t> oldest_unanswered(const kernels::ChannelView& channel,
                                                      std::uint64_t near) {
  const kernels::ChannelLayout& layout = channel.layout;
  std::optional<std::uint64_t> oldest;
  for (std::uint32_t slot = 0; slot < layout.depth; ++slot) {
    const std::uint32_t flag = kernels::load_packet(channel.request(slot).packets).flag;
    if (flag % 2 == 0 || !kernels::is_complete(channel.request(slot), flag) ||
        kernels::is_complete(channel.response(slot), flag)) {
      continue;
    }
    // A flag has 31 bits of the lap.
    const auto laps = static_cast<std::int32_t>(flag - layout.flag_of(near)) / 2;
    const std::uint64_t first = near - layout.slot_index(near) + slot;
    const std::uint64_t sequence =
        first + static_cast<std::uint64_t>(static_cast<std::int64_t>(laps)) * layout.depth;
    if (!oldest || sequence < *oldest) oldest = sequence;
  }
  return oldest;
}

/// A monitor that logs stuck channels: those with a request that stays unanswered, and when their
/// back end's heartbeat last advanced. It only reads the channels. One thread.
class Watchdog {
 public:
  /// `now`: on the clock of look(). `prefix`: of its lines in the log.
  Watchdog(std::vector<kernels::ChannelView> channels, core::Duration stuck_after,
           core::RunTime now, std::string prefix = {})
      : stuck_after_(stuck_after), prefix_(std::move(prefix)) {
    for (const auto& channel : channels) {
      Watched& watched = watched_.emplace_back();
      watched.channel = channel;
      // The first message. Relaxed: it was written before the channel was passed here.
      watched.waiting = __atomic_load_n(&channel.request_header().consumed, __ATOMIC_RELAXED);
      watched.since = watched.beat_at = now;
    }
  }

  /// Checks all channels. `heartbeats`: Backend::heartbeats(). Returns the number of stuck
  /// channels.
  std::size_t look(core::RunTime now, const std::vector<std::uint64_t>& heartbeats) {
    std::size_t stuck = 0;
    for (std::size_t i = 0; i < watched_.size() && i < heartbeats.size(); ++i) {
      if (is_stuck(watched_[i], i, now, heartbeats[i])) ++stuck;
    }
    return stuck;
  }

 private:
  struct Watched {
    kernels::ChannelView channel;
    std::uint64_t waiting = 0;  ///< the sequence number of the oldest unanswered request
    core::RunTime since{};      ///< since when it is the oldest
    std::uint64_t heartbeat = 0;
    core::RunTime beat_at{};  ///< when the heartbeat last advanced
    bool reported = false;
  };

  bool is_stuck(Watched& watched, std::size_t index, core::RunTime now, std::uint64_t heartbeat) {
    const auto& layout = watched.channel.layout;
    const auto oldest = oldest_unanswered(watched.channel, watched.waiting);
    const std::uint64_t due = oldest.value_or(watched.waiting);
    if (!oldest || due != watched.waiting) {
      watched.waiting = due;
      watched.since = now;
    }
    if (heartbeat != watched.heartbeat) {
      watched.heartbeat = heartbeat;
      watched.beat_at = now;
    }
    const bool stuck = now - watched.since >= stuck_after_;
    if (stuck && !watched.reported) {
      core::log_error(
          "{}channel {} is stuck: its slot {} (message {}) has been unanswered for {:.1f} s; "
          "last sign of life {:.1f} s ago",
          prefix_, index, layout.slot_index(due), due, core::to_seconds(now - watched.since),
          core::to_seconds(now - watched.beat_at));
    } else if (!stuck && watched.reported) {
      core::log_info("{}channel {} is working again", prefix_, index);
    }
    watched.reported = stuck;
    return stuck;
  }

  std::vector<Watched> watched_;
  core::Duration stuck_after_;
  std::string prefix_;
};

}  // namespace offload::worker
