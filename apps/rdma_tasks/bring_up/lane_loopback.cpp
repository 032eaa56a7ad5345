#include "apps/rdma_tasks/bring_up/lane_loopback.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "apps/rdma_tasks/benchmark.hpp"
#include "kernels/group.hpp"
#include "metrics/latency_histogram.hpp"

namespace offload::rdma_tool {
namespace {

using core::Error;
using core::ErrorCode;

constexpr std::size_t kInFlight = 16;
constexpr std::size_t kStride = 4096;
/// A message that answers another one needs two receives; a ring has more.
constexpr std::uint32_t kReceives = 2;
constexpr rdma::QueueSizes kSizes{64, 16};
constexpr std::uint64_t kChecked = 100;
/// The limit of a launch, in time-outs of a single wait.
constexpr int kLaunchTimeouts = 4;
/// Entries of the first measured launch and the longest; one within a time-out doubles the next.
constexpr std::uint64_t kFirstEntries = 64;
constexpr std::uint64_t kMaximum = std::uint64_t{1} << 16;
constexpr std::uint32_t kRateBytes = 64;
constexpr std::uint64_t kTimes = 200;

/// Slots of the deepest load, words, and receives; a multiple of 64.
DeviceMemory layout(std::size_t in_flight) noexcept {
  DeviceMemory memory;
  memory.stride = kStride;
  memory.in_flight = in_flight;
  memory.slots = 2 * kInFlight + 1;
  memory.words = (kInFlight + memory.slots) * kStride;
  memory.receives = memory.words + DeviceWords::kBytes;
  return memory;
}

rdma::ConnectionOptions options_of(const Environment& environment) {
  rdma::ConnectionOptions result;
  static_cast<rdma::PathOptions&>(result) = environment.path();
  result.queues.max_send_wr = kSizes.send_blocks;
  result.queues.max_recv_wr = kSizes.receives;
  result.queues.max_sge = 1;
  result.access = environment.peer_access();
  return result;
}

std::unique_ptr<LaneRings> make(const LaneRingParts& parts, Rings kind) {
  return kind == Rings::card ? make_card_rings(parts) : make_proxy_rings(parts);
}

/// Throws the Error of a lane that did not do all of its work.
void require_good(const DeviceOutcome& outcome) {
  using kernels::rdma::WorkResult;
  if (outcome.is_good()) return;
  const auto at = outcome.iteration;
  if (outcome.wrong == Wrong::data) {
    throw Error(
        ErrorCode::unexpected,
        fmt::format("iteration {}: byte {} is 0x{:02x} instead of 0x{:02x}", at,
                    outcome.mismatch.offset, outcome.mismatch.got, outcome.mismatch.expected));
  }
  if (outcome.wrong != Wrong::nothing) {
    throw Error(ErrorCode::unexpected,
                fmt::format("iteration {}: {}", at, words_of(outcome.wrong)));
  }
  if (outcome.result == WorkResult::timed_out) {
    throw Error(ErrorCode::timed_out,
                fmt::format("iteration {}: timed out waiting for {}", at, words_of(outcome.step)));
  }
  throw Error(ErrorCode::io_failed, fmt::format("iteration {}, {}: {}", at, words_of(outcome.step),
                                                kernels::rdma::words_of(outcome.syndrome)));
}

}  // namespace

LaneLoopback::End::End(Environment& environment, Rings kind, const char* name)
    : region({name, memory::kLocalAccess | environment.peer_access()},
             {environment.lanes().allocate(layout(kInFlight).receives)}),
      rings(make({environment, kSizes, options_of(environment), name}, kind)),
      queues(environment.lanes(), 1) {
  region.add_registrar(environment.registrar());
  region.start();
  queues.get()->sends.queue = rings->queues().send;
  queues.get()->receives.queue = rings->queues().receive;
  // They have no bytes, because only immediates use them.
  static_cast<void>(
      kernels::rdma::post_receives(kernels::SingleLane{}, queues.get()->receives, kReceives,
                                   [](std::uint32_t) { return kernels::rdma::LocalBuffer{}; }));
}

LaneLoopback::LaneLoopback(Environment& environment, Rings rings)
    : environment_(environment),
      one_(environment, rings, "first end"),
      other_(environment, rings, "second end") {
  // Lanes, and a device in software, get the processor between turns; rate() needs it itself.
  environment_.set_event_driven(true);
  one_.rings->connect_to(other_.rings->descriptor());
  other_.rings->connect_to(one_.rings->descriptor());
}

std::string LaneLoopback::write() {
  copy({kInFlight, kChecked, kStride});
  return fmt::format("{} writes of {} bytes are right", kChecked, kStride);
}

std::string LaneLoopback::flag_by_atomic() {
  exchange(DeviceWork::Kind::put_signal, false);
  return fmt::format("{} times each way: a word that was added to arrived after its data",
                     kChecked);
}

std::string LaneLoopback::flag_by_immediate() {
  exchange(DeviceWork::Kind::write, true);
  return fmt::format("{} times each way: the completion of an immediate arrived after its data",
                     kChecked);
}

std::string LaneLoopback::rate(core::Duration time) {
  environment_.set_event_driven(false);
  const LaneArray<std::uint64_t> times(environment_.lanes(), kTimes);
  copy({1, kTimes, kRateBytes, false}, times.get());
  const auto histogram = std::make_unique<metrics::LatencyHistogram>();
  for (const std::uint64_t one : times.all()) histogram->record(std::chrono::nanoseconds(one));
  const auto begin = core::Clock::now();
  core::Duration taken{};
  std::uint64_t entries = 0;
  for (std::uint64_t next = kFirstEntries; taken < time; taken = core::Clock::now() - begin) {
    copy({kInFlight, next, kRateBytes, false});
    entries += next;
    if (next < kMaximum && core::Clock::now() - begin - taken < environment_.timeout()) next *= 2;
  }
  const auto microseconds = [&](double quantile) {
    return static_cast<double>(histogram->percentile(quantile).count()) / 1e3;
  };
  return fmt::format(
      "{:.0f} entries/s of {} bytes, {} in flight; a single one takes {:.1f} us (p50), {:.1f} us "
      "(p99)",
      static_cast<double>(entries) / core::to_seconds(taken), kRateBytes, kInFlight,
      microseconds(0.5), microseconds(0.99));
}

DeviceMemory LaneLoopback::memory_of(const End& end, const End& other,
                                     std::size_t in_flight) const {
  const rdma::RdmaRegistrar& registrar = environment_.registrar();
  DeviceMemory memory = layout(in_flight);
  memory.here = end.region.ranges()[0].address;
  memory.lkey = end.region.key(registrar, 0)->local;
  memory.there = {reinterpret_cast<std::uint64_t>(other.region.ranges()[0].address),
                  other.region.key(registrar, 0)->remote};
  return memory;
}

DeviceWork LaneLoopback::work_of(DeviceWork::Kind kind, const End& end, const Load& load) const {
  DeviceWork work;
  work.kind = kind;
  work.is_requester = work.sends = &end == &one_;
  work.verify = load.verify;
  work.size = load.size;
  work.seed = 1;
  work.end = load.iterations;
  const bool alone = kind == DeviceWork::Kind::copy;
  const End& peer = (&end == &one_) == alone ? one_ : other_;
  work.memory = memory_of(end, peer, load.in_flight);
  work.limit.nanoseconds = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(environment_.timeout()).count());
  return work;
}

void LaneLoopback::copy(const Load& load, std::uint64_t* times) {
  launch(std::array{work_of(DeviceWork::Kind::copy, one_, load)}, times);
}

void LaneLoopback::exchange(DeviceWork::Kind kind, bool has_immediate) {
  for (const End* const end : {&one_, &other_}) {
    std::byte* const words = end->region.ranges()[0].address + layout(1).words;
    std::fill_n(words, DeviceWords::kBytes, std::byte{0});
  }
  const Load load{1, kChecked, kStride};
  std::array works{work_of(kind, one_, load), work_of(kind, other_, load)};
  for (DeviceWork& work : works) work.has_immediate = has_immediate;
  launch(works, nullptr);
}

void LaneLoopback::launch(std::span<const DeviceWork> works, std::uint64_t* times) {
  LaneLauncher& launcher = environment_.lanes();
  const LaneArray<std::uint32_t> stop(launcher, 1);
  const LaneArray<LaneRun> runs(launcher, works.size());
  const auto tickets = launcher.allocate_own(works.size() * kInFlight * sizeof(std::uint64_t));
  for (std::size_t i = 0; i < works.size(); ++i) {
    LaneRun& run = runs.get()[i];
    run.work = works[i];
    run.work.limit.stop = stop.get();
    run.queues = (i == 0 ? one_ : other_).queues.get();
    run.tickets = static_cast<std::uint64_t*>(tickets.get()) + i * kInFlight;
    run.times = times;
  }
  {
    const LaunchEnd ends(launcher, *stop.get());
    launcher.start(runs.all());
    const auto limit = core::Clock::now() + kLaunchTimeouts * environment_.timeout();
    const auto has_finished = [&] {
      if (core::Clock::now() < limit) return launcher.finished();
      throw Error(ErrorCode::timed_out,
                  fmt::format("{} operations took longer than {} s", runs.get()->work.end,
                              kLaunchTimeouts * core::to_seconds(environment_.timeout())));
    };
    environment_.turn_until(has_finished, kPollInterval);
  }
  // Wrong data first: the other lane has only waited for an answer.
  for (const LaneRun& run : runs.all()) {
    if (run.outcome.wrong != Wrong::nothing) require_good(run.outcome);
  }
  for (const LaneRun& run : runs.all()) require_good(run.outcome);
}

}  // namespace offload::rdma_tool
