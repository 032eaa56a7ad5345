#include "apps/client/load/load_thread.hpp"

#include <fmt/core.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <utility>

#include "apps/client/load/checker.hpp"
#include "apps/client/load/datagram_flow.hpp"
#include "apps/client/load/load_connection.hpp"
#include "core/process/out_of_memory.hpp"

namespace offload::client {
namespace {

using core::Clock;
using core::TimePoint;

/// The room for a load thread's fault, so that it can be reported without memory.
constexpr std::size_t kLongestFailure = 256;

/// The time for which outstanding responses are awaited after a stop.
constexpr core::Duration kDrainTime = std::chrono::seconds(1);

/// The size of a receive: large enough that the cost of the system call does not matter.
constexpr std::size_t kReadSize = std::size_t{256} << 10;

/// The most requests of a batch of several sizes: each is a piece of its own of the send.
constexpr std::size_t kMostPieces = 256;

/// A sleep ends late by some microseconds, so the last of them before a request is due are polled
/// away.
constexpr core::Duration kSpin = std::chrono::microseconds(50);

/// UDP has 16 bits for the length.
constexpr std::size_t kLongestDatagram = 65'535;

constexpr core::Duration kOfferAgain = std::chrono::milliseconds(1);

std::uint32_t longest_batch(const RequestPool& pool) {
  const std::size_t fitting = kBatchBytes / pool.shortest_frame();
  const std::size_t most = pool.class_count() == 1 ? pool.count_of(0) : kMostPieces;
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(fitting, 1, most));
}

/// Free buffers that a thread keeps: a connection uses one while a response is incomplete.
constexpr std::size_t kKeptBuffers = 16;

std::size_t buffer_size(const RequestPool& pool) {
  return kReadSize + protocol::kFrameHeaderSize +
         std::max(pool.longest_response(), kMaxErrorLength);
}

/// Longer ones were not polls: this thread had no processor meanwhile.
constexpr core::Duration kLongestPoll = std::chrono::microseconds(20);

/// Responses that come this soon after the last second still count in its interval.
constexpr core::Duration kShortestInterval = std::chrono::milliseconds(100);

/// How long this thread has had a processor, or waited for one: schedstat in proc(5), the first two
/// fields. Where the kernel has none, the former.
core::Duration work_time() noexcept {
  unsigned long long ran = 0;
  unsigned long long waited = 0;
  if (std::FILE* const file = std::fopen("/proc/thread-self/schedstat", "re")) {
    const int fields = std::fscanf(file, "%llu %llu", &ran, &waited);
    std::fclose(file);
    if (fields == 2) return std::chrono::nanoseconds(ran + waited);
  }
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

LoadShare::LoadShare(const LoadPlan& its_plan, const LoadRunContext& run)
    : plan(its_plan),
      pool(run.pool),
      target(run.target),
      address(run.address),
      control(run.control),
      longest_batch(client::longest_batch(pool)),
      receive_size(buffer_size(pool)),
      cache(kKeptBuffers * receive_size),
      log(run.log) {}

LoadThread::LoadThread(std::uint32_t number, std::uint32_t first_connection,
                       std::vector<net::Stream> streams, const LoadPlan& plan,
                       const LoadRunContext& run)
    : share_(plan, run) {
  share_.interval = &recorder_.active();
  share_.fault.reserve(kLongestFailure);
  // Edge-triggered, as it stays readable after a stop, for the other threads.
  share_.engine.watch(share_.control.stop_fd(), EPOLLIN | EPOLLET, stop_event_);
  if (plan.udp) {
    share_.datagrams.resize(
        DatagramFlow::receive_room(std::min(run.pool.longest_response(), kLongestDatagram)));
  }
  const std::size_t count = streams.size();
  if (plan.think > core::Duration{} && !plan.arrivals) {
    share_.thinking.emplace(plan.think, count * plan.max_in_flight);
  }
  flows_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::string name = fmt::format("{}{}thread {}", run.name, run.name.empty() ? "" : ", ", number);
    if (count != 1) name += fmt::format(", connection {}", i);
    const auto of_all = static_cast<std::uint32_t>(first_connection + i);
    if (plan.udp) {
      flows_.push_back(std::make_unique<DatagramFlow>(name, of_all, streams[i].release(), share_));
    } else {
      flows_.push_back(
          std::make_unique<LoadConnection>(name, of_all, std::move(streams[i]), share_));
    }
  }
}

void LoadThread::run(TimePoint start) noexcept {
  try {
    serve(start);
  } catch (const std::exception& error) {
    share_.fault = "a load thread failed: ";  // there is room for it
    share_.fault.append(core::what_of(error));
    share_.is_stopped_by_fault = true;
    share_.control.stop();
  }
}

void LoadThread::serve(TimePoint start) {
  begin(start);
  while (!finished()) turn();
  const TimePoint now = Clock::now();
  measure_busy(now);
  if (share_.pacer) share_.pacer->close(now, *share_.interval);
  for (const auto& flow : flows_) flow->log_unanswered();
  share_.account_in_flight(now);
  share_.interval->end = now;
  share_.log.flush();
}

void LoadThread::begin(TimePoint start) {
  const LoadPlan& plan = share_.plan;
  start_ = start;
  worked_before_ = work_time();
  share_.interval->begin = start;
  share_.in_flight_since = start;
  interval_grid_ = start + plan.warmup;
  next_interval_ = plan.warmup > core::Duration{} ? interval_grid_ : start + kInterval;
  if (plan.duration) share_.end = start + *plan.duration;
  share_.next_check = start + plan.response_timeout;
  if (plan.arrivals) {
    ::prctl(PR_SET_TIMERSLACK, 1UL);  // for the sleeps; 50 us otherwise
    const PacerTimes times{start, start + plan.warmup, share_.end, plan.lag_tolerance};
    share_.pacer.emplace(*plan.arrivals, times, plan.duration ? UINT64_MAX : plan.requests);
  }
  if (share_.control.stopping()) return;  // before it began: nothing is sent
  for (const auto& flow : flows_) flow->start();
}

/// One turn of the loop: waits, receives what came, and does what is due by the clock.
void LoadThread::turn() {
  const TimePoint before = Clock::now();
  const TimePoint wake = wake_time(before);
  const bool polls = wake <= before;
  const bool worked = share_.engine.run_once(wake);
  const TimePoint now = Clock::now();
  if (polls && !worked) spun_ += std::min(now - before, kLongestPoll);
  act_on_time(now);
}

bool LoadThread::finished() const noexcept {
  if (share_.running == 0 || share_.is_stopped_by_fault || gave_up_) return true;
  return share_.pacer && share_.pacer->ended() && share_.pacer->due() == 0 && share_.in_flight == 0;
}

/// When there is something to do even if nothing comes.
TimePoint LoadThread::wake_time(TimePoint now) const noexcept {
  TimePoint wake = std::min(share_.next_check, next_interval_);
  if (drain_end_) wake = std::min(wake, *drain_end_);
  if (share_.end > now) wake = std::min(wake, share_.end);
  if (share_.thinking && !share_.thinking->is_empty()) {
    wake = std::min(wake, share_.thinking->next_end());
  }
  if (share_.pacer && !share_.pacer->ended()) wake = std::min(wake, share_.pacer->next() - kSpin);
  return wake;
}

void LoadThread::act_on_time(TimePoint now) {
  if (!drain_end_ && share_.control.stopping()) begin_drain(now);
  if (drain_end_ && now >= *drain_end_) gave_up_ = true;
  if (now >= share_.end) end_sending(now);
  if (share_.pacer && !finished()) send_due(now);
  if (share_.thinking) end_thinking(now);
  if (now >= share_.next_check && !finished()) check_flows(now);
  if (now >= next_interval_) end_interval(now);
}

void LoadThread::begin_drain(TimePoint now) {
  drain_end_ = now + kDrainTime;
  end_sending(now);
}

/// Sends no more, and awaits the requests in flight.
void LoadThread::end_sending(TimePoint now) {
  measure_busy(now);
  if (share_.pacer) {
    const TimePoint last = std::min(share_.end, now);
    while (!share_.pacer->ended() && share_.pacer->next() <= last) {
      share_.pacer->notice(last, *share_.interval);
    }
    share_.pacer->note_unfinished(share_.in_flight, *share_.interval);
    share_.pacer->close(last, *share_.interval);
  }
  share_.end = TimePoint::max();
  share_.sending_ended = true;
  next_interval_ = std::max(next_interval_, now + kShortestInterval);
  for (const auto& flow : flows_) flow->stop_sending();
}

void LoadThread::measure_busy(TimePoint now) {
  if (std::exchange(is_busy_measured_, true)) return;
  const core::Duration worked = work_time() - worked_before_ - spun_;
  busy_ = std::clamp(core::to_seconds(worked) / core::to_seconds(now - start_), 0.0, 1.0);
}

/// Does what is due on each connection, and sets the next check to their earliest deadline.
void LoadThread::check_flows(TimePoint now) {
  share_.next_check = TimePoint::max();
  for (const auto& flow : flows_) {
    if (flow->over()) continue;
    if (flow->deadline() <= now) flow->on_deadline(now);
    if (share_.is_stopped_by_fault) return;
    if (flow->over()) continue;
    share_.next_check = std::min(share_.next_check, flow->deadline());
  }
}

/// Spreads the requests that are due over the connections with room, in turn.
void LoadThread::send_due(TimePoint now) {
  Pacer& pacer = *share_.pacer;
  pacer.notice(now, *share_.interval);
  if (pacer.ended()) pacer.note_unfinished(share_.in_flight, *share_.interval);
  while (pacer.due() > 0) {
    Flow* const flow = share_.with_room.front();
    if (flow == nullptr) return;
    flow->send_due(std::max<std::uint64_t>(1, pacer.due() / share_.with_room_count));
  }
}

/// Sends the next requests of the slots that have waited, those of one flow together.
void LoadThread::end_thinking(TimePoint now) {
  ThinkQueue& queue = *share_.thinking;
  while (!queue.is_empty() && queue.next_end() <= now && !finished()) {
    Flow& flow = queue.end_next();
    flow.end_thinking();
    if (!queue.ends_again(flow, now)) flow.resume();
  }
}

/// Offers the interval to the main thread. If that has not taken the last one yet, the interval
/// goes on for a while.
void LoadThread::end_interval(TimePoint now) {
  share_.account_in_flight(now);
  share_.interval->end = now;
  if (!recorder_.offer()) {
    next_interval_ = now + kOfferAgain;
    return;
  }
  share_.interval = &recorder_.active();
  share_.interval->begin = now;
  next_interval_ = interval_grid_ + ((now - interval_grid_) / kInterval + 1) * kInterval;
}

}  // namespace offload::client
