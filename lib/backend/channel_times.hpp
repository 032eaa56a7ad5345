#pragma once

#include <cstdint>
#include <memory>

#include "core/clock.hpp"
#include "progress/engine_times.hpp"
#include "telemetry/histograms.hpp"
#include "telemetry/sample_ring.hpp"

namespace offload::backend {

/// The time in which the requests of a slot were answered, in ticks of core::Clock (ns).
struct ServiceSample {
  std::uint64_t began;   ///< the worker had found the slot's requests
  std::uint64_t ended;   ///< their answers were visible to the server
  std::uint64_t length;  ///< of the slot's content, bytes
};

/// The times of a channel's worker. One thread writes: the channel's, or for a persistent kernel
/// the one that calls Backend::check(). Any thread may read.
struct ChannelTimes {
  /// The time of one in this number of slots is measured.
  static constexpr std::uint64_t kSampled = 64;

  /// Those of a kernel are the sums over its groups, without the length of single turns.
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
