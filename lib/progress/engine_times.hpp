#pragma once

#include "core/clock.hpp"
#include "core/counter.hpp"

namespace offload::progress {

/// Where the time of an engine's thread went, by turns of run_once(), in nanoseconds. The engine's
/// thread writes it and any may read it. A turn's own reading of the clock ends the turn before, so
/// that it costs no other; what the caller does between two turns belongs to the first.
struct EngineTimes {
  core::Counter busy;          ///< turns with work
  core::Counter polling;       ///< turns that looked and found none
  core::Counter asleep;        ///< turns that slept, with the handling of the events that ended it
  core::Counter longest_turn;  ///< of the turns with work
};

}  // namespace offload::progress
