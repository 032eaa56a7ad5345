#include "apps/worker/watchdog.hpp"

#include <utility>

#include "core/log.hpp"
#include "kernels/serve.hpp"

namespace offload::worker {

Watchdog::Watchdog(std::vector<kernels::ChannelView> channels, core::Duration stuck_after,
                   std::string prefix)
    : stuck_after_(stuck_after), prefix_(std::move(prefix)) {
  const auto now = core::Clock::now();
  for (const auto& channel : channels) {
    Watched& watched = watched_.emplace_back();
    watched.channel = channel;
    watched.since = watched.beat_at = now;
  }
}

std::size_t Watchdog::look(core::TimePoint now, const std::vector<std::uint64_t>& heartbeats) {
  std::size_t stuck = 0;
  for (std::size_t i = 0; i < watched_.size() && i < heartbeats.size(); ++i) {
    if (is_stuck(watched_[i], i, now, heartbeats[i])) ++stuck;
  }
  return stuck;
}

bool Watchdog::is_stuck(Watched& watched, std::size_t index, core::TimePoint now,
                        std::uint64_t heartbeat) {
  const auto& layout = watched.channel.layout;
  // Relaxed: the server's counter, compared with its last value only; it orders nothing.
  const auto due = __atomic_load_n(&watched.channel.request_header().consumed, __ATOMIC_RELAXED);
  const std::uint32_t flag = layout.flag_of(due);
  const bool pending = kernels::is_complete(watched.channel.request(due), flag) &&
                       !kernels::is_complete(watched.channel.response(due), flag);
  if (!pending || due != watched.waiting) {
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
    core::log_info("{}channel {} goes on", prefix_, index);
  }
  watched.reported = stuck;
  return stuck;
}

}  // namespace offload::worker
