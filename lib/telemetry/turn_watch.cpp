#include "telemetry/turn_watch.hpp"

#include <fmt/core.h>

#include <thread>

namespace offload::telemetry {
namespace {

constexpr core::Duration kStep = std::chrono::milliseconds(5);

core::Duration since(std::uint64_t turn) {
  const core::TimePoint turned{core::Duration(static_cast<core::Duration::rep>(turn))};
  return core::Clock::now() - turned;
}

}  // namespace

Condition TurnWatch::health() const {
  std::uint64_t turn = turned_.value();
  // Counted by steps and not by the clock: the next pause may come at once.
  for (auto steps = kGrace / kStep; steps > 0; --steps) {
    if (since(turn) < kLongestTurn || turn == last_turn_.load(std::memory_order_relaxed)) break;
    std::this_thread::sleep_for(kStep);
    turn = turned_.value();
  }
  const core::Duration ago = since(turn);
  const bool turns = ago < kLongestTurn;
  if (!turns) last_turn_.store(turn, std::memory_order_relaxed);
  return {turns, fmt::format("the {} turned {:.1f} s ago", thread_, core::to_seconds(ago))};
}

}  // namespace offload::telemetry
