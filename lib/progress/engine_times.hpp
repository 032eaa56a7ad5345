#pragma once

#include "core/clock.hpp"
#include "core/counter.hpp"

namespace offload::progress {

/// The use of the time of an engine's thread, by turns of run_once(), in nanoseconds. The engine's
/// thread writes it and any may read it. A turn's own reading of the clock ends the turn before, so
/// that it costs no other but after a sleep; what the caller does between two turns belongs to the
/// first.
struct EngineTimes {
  core::Counter busy;          ///< turns with work
  core::Counter polling;       ///< turns that looked and found none
  core::Counter asleep;        ///< the sleeps; what comes after one in its turn is work
  core::Counter longest_turn;  ///< of the turns with work
  core::Counter stalls;        ///< turns with work that took stall_limit or longer
  core::Counter last_stall;    ///< how long the last of them took

  /// Before the engine's first turn. 0: no turn is a stall.
  std::uint64_t stall_limit = 0;
};

}  // namespace offload::progress
