#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "comch/channel.hpp"
#include "comch/consumer.hpp"
#include "comch/producer.hpp"
#include "core/clock.hpp"
#include "gpu/backend.hpp"
#include "metrics/latency_histogram.hpp"
#include "progress/engine.hpp"
#include "progress/task_pool.hpp"

namespace offload::bench {

/// Both ends of one channel in one process: the server's, driven by run(), and the worker's, for a
/// back end.
class Hop {
 public:
  /// Requests of `size` bytes. `silent`: the back end does not ring.
  Hop(std::uint32_t index, std::uint32_t depth, std::uint32_t size, bool silent);
  ~Hop();
  Hop(const Hop&) = delete;
  Hop& operator=(const Hop&) = delete;

  /// Valid while this lives.
  [[nodiscard]] gpu::BackendChannel worker_end() const;

  /// Sends `messages` and checks each response, `in_flight` at a time, with a pause of `gap` before
  /// it sends again. Ends early with a fault.
  void run(std::uint64_t messages, std::uint32_t in_flight, core::Duration gap);

  [[nodiscard]] const metrics::LatencyHistogram& latency() const { return latency_; }
  [[nodiscard]] core::Duration duration() const { return duration_; }
  /// Empty if every response was right.
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  /// Requests that differ, so that a stale response is found out.
  static constexpr std::size_t kPatterns = 61;

  void send(std::uint64_t message);
  void check_response(std::uint64_t message, const comch::PostRecvTask& task);
  void finish_batch();

  bool silent_;
  comch::Channel channel_;
  comch::ChannelImport import_;
  progress::Engine engine_;
  comch::Producer producer_;
  comch::Consumer consumer_;
  progress::TaskPool<comch::SendTask> sends_;
  progress::TaskPool<comch::PostRecvTask> receives_;
  std::vector<comch::PostRecvTask*> batch_;  ///< responses of one turn
  std::vector<std::vector<std::byte>> requests_;
  std::vector<std::vector<std::byte>> responses_;
  std::vector<core::TimePoint> sent_;
  std::uint64_t received_ = 0;
  metrics::LatencyHistogram latency_;
  core::Duration duration_{};
  std::string fault_;
};

}  // namespace offload::bench
