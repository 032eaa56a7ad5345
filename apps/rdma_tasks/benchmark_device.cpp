#include <fmt/core.h>

#include <algorithm>

#include "apps/rdma_tasks/benchmark.hpp"
#include "apps/rdma_tasks/device/path.hpp"

/// The part of an end whose operations device functions issue: launched as a kernel, or on CPU
/// threads, while this thread turns the engine and so the emulators.
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
    case Operation::copy: return Kind::copy;
    default: return Kind::send;
  }
}

}  // namespace

void Benchmark::run_on_device() {
  const bool timed = options_.in_flight == 1;
  const std::uint64_t step = timed ? kMostTimes : options_.iterations;
  for (std::uint64_t begin = 0; begin < options_.iterations; begin += step) {
    launch(begin, std::min(options_.iterations, begin + step));
  }
}

void Benchmark::launch(std::uint64_t begin, std::uint64_t end) {
  LaneLauncher& launcher = environment_.lanes();
  const bool timed = options_.in_flight == 1;
  const std::size_t most = endpoints_.size() * options_.queue_lanes;
  const LaneArray<std::uint32_t> stop(launcher, 1);
  const LaneArray<LaneRun> runs(launcher, most);
  const LaneArray<std::uint64_t> times(launcher, timed ? most * (end - begin) : 1);
  const auto tickets = launcher.allocate_own(most * options_.in_flight * sizeof(std::uint64_t));
  std::size_t count = 0;
  for (const auto& endpoint : endpoints_) {
    DeviceWork work = device_work(*endpoint, begin, end);
    work.limit.stop = stop.get();
    const std::uint32_t lanes = work.sends ? work.lanes : 1;
    for (std::uint32_t i = 0; i < lanes; ++i, ++count) {
      LaneRun& run = runs.get()[count];
      run.work = work;
      run.lane = i;
      run.queues = &endpoint->device()->queues();
      run.tickets = static_cast<std::uint64_t*>(tickets.get()) + count * options_.in_flight;
      if (timed) run.times = times.get() + count * (end - begin);
    }
  }
  const auto launched = runs.all().first(count);
  {
    const LaunchEnd ends(launcher, *stop.get());
    launcher.start(launched);
    environment_.turn_until([&] { return launcher.finished(); }, kPollInterval);
  }
  for (const LaneRun& run : launched) {
    take(run.outcome, run.work.connection);
    if (!timed) continue;
    for (std::uint64_t i = 0; i < end - begin; ++i) {
      if (run.times[i] != 0) result_.latency.record(std::chrono::nanoseconds(run.times[i]));
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
  using kernels::rdma::WorkResult;
  result_.checked += outcome.checked;
  if (outcome.is_good()) return;
  if (outcome.wrong == Wrong::data) {
    throw_mismatch(outcome.iteration, connection, outcome.mismatch);
  }
  if (outcome.wrong != Wrong::nothing) throw_wrong(outcome.iteration, words_of(outcome.wrong));
  if (outcome.result == WorkResult::timed_out) {
    throw core::Error(core::ErrorCode::timed_out,
                      fmt::format("timed out after {1} s waiting for {0}", words_of(outcome.step),
                                  core::to_seconds(options_.timeout)));
  }
  throw core::Error(
      core::ErrorCode::io_failed,
      fmt::format("connection {}, iteration {}, {}: {}", connection, outcome.iteration,
                  words_of(outcome.step), kernels::rdma::words_of(outcome.syndrome)));
}

}  // namespace offload::rdma_tool
