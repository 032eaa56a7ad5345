#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/clock.hpp"
#include "progress/engine_times.hpp"
#include "telemetry/duration_histogram.hpp"
#include "telemetry/sample_ring.hpp"

namespace offload::backend {

/// When a slot's requests were answered, in the ticks of core::Clock (ns).
struct ServiceSample {
  std::uint64_t began;   ///< the worker had found the slot's requests
  std::uint64_t ended;   ///< their answers were there for the server
  std::uint64_t length;  ///< of the slot's content, bytes
};

/// Where the time of a channel's worker goes. One thread writes: the channel's, or for a kernel
/// that serves by itself the one that calls Backend::check(). Any may read.
struct ChannelTimes {
  /// Of so many slots the time of one is taken.
  static constexpr std::uint64_t kSampled = 64;

  /// A kernel's are those of its groups all together, and it says of no turn how long it took.
  progress::EngineTimes turns;
  telemetry::DurationHistogram service;  ///< from begin to end of the samples
  telemetry::SampleRing<ServiceSample> samples;

  void add_sample(core::TimePoint began, core::TimePoint ended, std::uint64_t length) noexcept {
    const auto ticks = [](core::TimePoint time) {
      return static_cast<std::uint64_t>(time.time_since_epoch().count());
    };
    service.record(ended - began);
    samples.add({ticks(began), ticks(ended), length});
  }
};

using SharedChannelTimes = std::shared_ptr<ChannelTimes>;

}  // namespace offload::backend
