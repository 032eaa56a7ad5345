#include <fmt/core.h>

#include <algorithm>
#include <thread>

#include "apps/rdma/benchmark.hpp"
#include "apps/rdma/device_path.hpp"

/// The part of an end whose operations device functions issue: launched on CPU threads, as a kernel
/// would be, while this thread turns the engine and so the proxies.
namespace offload::rdma_tool {
namespace {

/// Iterations of a launch that takes times, so that these have a bound.
constexpr std::uint64_t kMostTimes = std::uint64_t{1} << 16;

DeviceWork::Kind kind_of(Operation operation, Variant::Work work) noexcept {
  using Kind = DeviceWork::Kind;
  switch (operation) {
    case Operation::write:
    case Operation::write_imm: return Kind::write;
    case Operation::put_signal: return Kind::put_signal;
    case Operation::read: return Kind::read;
    case Operation::atomic: return work == Variant::Work::swap ? Kind::swap : Kind::add;
    default: return Kind::send;
  }
}

/// One lane, its queues, and what comes out of it.
struct LaneRun {
  const DeviceWork* work;
  std::uint32_t number;
  DeviceQueues* queues;
  std::vector<std::uint64_t> times;
  DeviceOutcome outcome;
};

/// The threads of a launch. Its end stops them: no wait of a lane is longer than its look at the
/// stop word.
class Launch {
 public:
  Launch(std::vector<LaneRun>& lanes, std::uint32_t& stop) : stop_(stop), count_(lanes.size()) {
    try {
      for (LaneRun& lane : lanes) {
        threads_.emplace_back([this, &lane] {
          lane.outcome = run_lane(*lane.work, lane.number, *lane.queues, lane.times);
          // Release: pairs with finished().
          __atomic_fetch_add(&finished_, 1, __ATOMIC_RELEASE);
        });
      }
    } catch (...) {
      end();
      throw;
    }
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  ~Launch() { end(); }

  [[nodiscard]] bool finished() const noexcept {
    return __atomic_load_n(&finished_, __ATOMIC_ACQUIRE) == count_;
  }

 private:
  void end() noexcept {
    __atomic_store_n(&stop_, 1, __ATOMIC_RELAXED);  // it says nothing but that
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::uint32_t& stop_;
  std::size_t count_;
  std::size_t finished_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace

void Benchmark::run_on_device() {
  const bool timed = options_.in_flight == 1;
  const std::uint64_t step = timed ? kMostTimes : options_.iterations;
  for (std::uint64_t begin = 0; begin < options_.iterations; begin += step) {
    launch(begin, std::min(options_.iterations, begin + step));
  }
}

void Benchmark::launch(std::uint64_t begin, std::uint64_t end) {
  std::uint32_t stop = 0;
  std::vector<DeviceWork> works;
  for (const auto& endpoint : endpoints_) {
    works.push_back(device_work(*endpoint, begin, end));
    works.back().limit.stop = &stop;
  }
  std::vector<LaneRun> lanes;
  for (const auto& endpoint : endpoints_) {
    const DeviceWork& work = works[endpoint->number()];
    const std::uint32_t count = work.sends ? work.lanes : 1;
    for (std::uint32_t i = 0; i < count; ++i) {
      lanes.push_back({&work,
                       i,
                       &endpoint->device()->queues(),
                       std::vector<std::uint64_t>(options_.in_flight == 1 ? end - begin : 0),
                       {}});
    }
  }
  {
    const Launch threads(lanes, stop);
    environment_.turn_until([&] { return threads.finished(); }, kPollInterval);
  }
  for (const LaneRun& lane : lanes) {
    take(lane.outcome, lane.work->connection);
    for (const std::uint64_t time : lane.times) {
      if (time != 0) result_.latency.record(std::chrono::nanoseconds(time));
    }
  }
}

DeviceWork Benchmark::device_work(Endpoint& endpoint, std::uint64_t begin,
                                  std::uint64_t end) const {
  DeviceWork work;
  work.kind = kind_of(options_.operation, variant_.work);
  work.has_immediate =
      options_.operation == Operation::send_imm || options_.operation == Operation::write_imm;
  work.is_requester = is_requester();
  work.sends = is_sender();
  work.verify = options_.verify;
  work.size = size_;
  work.lanes = options_.queue_lanes;
  work.connection = endpoint.number();
  work.seed = options_.seed;
  work.begin = begin;
  work.end = end;
  work.memory = endpoint.device()->memory();
  work.limit.nanoseconds = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(options_.timeout).count());
  return work;
}

void Benchmark::take(const DeviceOutcome& outcome, std::uint32_t connection) {
  using kernels::rdma::Result;
  result_.checked += outcome.checked;
  if (outcome.is_good()) return;
  if (outcome.mismatch) throw_mismatch(outcome.iteration, connection, *outcome.mismatch);
  if (outcome.wrong != nullptr) throw_wrong(outcome.iteration, outcome.wrong);
  if (outcome.result == Result::timed_out) {
    throw core::Error(core::ErrorCode::timed_out,
                      fmt::format("{} did not come within {} s", outcome.what,
                                  core::to_seconds(options_.timeout)));
  }
  throw core::Error(
      core::ErrorCode::io_failed,
      fmt::format("connection {}, iteration {}, {}: {}", connection, outcome.iteration,
                  outcome.what, kernels::rdma::words_of(outcome.syndrome)));
}

}  // namespace offload::rdma_tool
