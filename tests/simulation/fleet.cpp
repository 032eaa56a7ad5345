#include "tests/simulation/fleet.hpp"

#include <algorithm>
#include <csignal>
#include <exception>

#include "apps/worker/program.hpp"
#include "core/signals.hpp"

namespace offload::simulation {
namespace {

/// The server's clock and its checks of time limits differ this much from the director's.
constexpr Time kSlack = 200 * kMillisecond;
/// A request that was alone with the third worker that was lost with it is refused. Then no client
/// can connect from its address for a while.
constexpr std::uint64_t kMostLosses = 3;

void run_worker(const worker::Options& options) {
  try {
    core::Signals signals(core::Hangup::rereads);
    worker::Program(options, signals).run();
  } catch (const std::exception& error) {
    kernel->fail(std::string("a worker ends: ") + error.what());
  }
}

}  // namespace

void freeze_threads(Process& process, const char* name, bool frozen) {
  for (const auto& fiber : kernel->fibers) {
    if (fiber->process == &process && fiber->name.starts_with(name)) fiber->frozen = frozen;
  }
}

bool accepts_clients(const Process& server) {
  return std::ranges::any_of(kernel->fibers, [&server](const auto& fiber) {
    return fiber->process == &server && fiber->name.starts_with("io-");
  });
}

Fleet::Worker& Fleet::start(bool stands_by, bool replaces) {
  worker::Options options = options_;
  options.stands_by = stands_by;
  options.replaces = replaces;
  Process& process = kernel->start("worker", [options] { run_worker(options); });
  workers_.push_back(std::make_unique<Worker>(Worker{&process, stands_by}));
  begin_service(*workers_.back());
  return *workers_.back();
}

void Fleet::begin_service(Worker& worker) {
  if (worker.leaves || worker.may_serve || kernel->ended(*worker.process)) return;
  changes_.push_back(now());
  worker.may_serve = true;
  worker.since = now();
}

void Fleet::end_service(Worker& worker) {
  changes_.push_back(now());
  if (!std::exchange(worker.may_serve, false)) return;
  losses_.push_back(now());
  served_.push_back({worker.since + kSettle, now()});
}

void Fleet::kill(const Process& process) {
  for (const auto& worker : workers_) {
    if (worker->process == &process) return kill(*worker);
  }
}

void Fleet::kill(Worker& worker) {
  end_service(worker);
  kernel->kill(*worker.process);
}

void Fleet::tell_to_leave(Worker& worker) {
  note_replaced(worker);
  kernel->signal(*worker.process, SIGTERM);
}

void Fleet::freeze(Worker& worker) {
  end_service(worker);
  kernel->freeze(*worker.process);
}

void Fleet::thaw(Worker& worker) {
  if (!worker.process->frozen) return;
  kernel->thaw(*worker.process);
  begin_service(worker);
}

void Fleet::hang(Worker& worker, bool hangs) {
  kernel->note(hangs ? "hang" : "go on", static_cast<std::uint64_t>(worker.process->pid));
  hangs ? end_service(worker) : begin_service(worker);
  freeze_threads(*worker.process, "worker-", hangs);
}

void Fleet::note_new_server() {
  for (const auto& worker : workers_) {
    if (!worker->may_serve) continue;
    end_service(*worker);
    begin_service(*worker);
  }
}

void Fleet::note_return(bool with_workers) {
  const Time paused = kernel->now - paused_at_;
  lost_ += paused;
  paused_at_ = 0;
  if (with_workers || paused < kPatience) return;
  for (const auto& worker : workers_) {
    if (!worker->may_serve) continue;
    end_service(*worker);
    begin_service(*worker);
    worker->since += kReturn - kSettle;
  }
}

std::vector<Fleet::Worker*> Fleet::running() {
  std::vector<Worker*> found;
  for (const auto& worker : workers_) {
    if (!kernel->ended(*worker->process)) found.push_back(worker.get());
  }
  return found;
}

/// Returns the times from `time` to now in which no worker could serve for certain.
std::vector<Fleet::Interval> Fleet::gaps_since(Time time) const {
  std::vector<Interval> served = served_;
  for (const auto& worker : workers_) {
    if (worker->may_serve) served.push_back({worker->since + kSettle, now()});
  }
  std::erase_if(served, [](const Interval& one) { return one.begin >= one.end; });
  std::ranges::sort(served, {}, &Interval::begin);
  std::vector<Interval> gaps;
  Time covered = 0;
  for (const Interval& one : served) {
    if (one.begin > covered) gaps.push_back({covered, one.begin});
    covered = std::max(covered, one.end);
  }
  if (covered < now()) gaps.push_back({covered, now()});
  std::erase_if(gaps, [time](const Interval& gap) { return gap.end < time; });
  return gaps;
}

bool Fleet::may_refuse(protocol::Refusal code, Time asked) const {
  using protocol::Refusal;
  switch (code) {
    case Refusal::worker_unavailable: {
      // It is allowed after a gap of the whole time; or after a gap at the end of a worker that was
      // kept this long although it answered nothing: then the requests have waited by that time.
      const auto gaps = gaps_since(asked - kSlack);
      return std::ranges::any_of(gaps, [&](const Interval& gap) {
        const auto waited = [&](Time lost) {
          return lost <= gap.end && gap.end - lost >= worker_timeout - kSlack;
        };
        return gap.end - gap.begin >= worker_timeout - kSlack ||
               std::ranges::any_of(losses_, [&](Time lost) {
                 return lost >= gap.begin - worker_timeout - 2 * kSecond && waited(lost);
               });
      });
    }
    case Refusal::worker_failed: return may_be_wrong(asked) || may_end(asked);
    case Refusal::request_timed_out:
      return now() - asked >= request_timeout - kSlack && losses_since(asked - kSlack) != 0;
    case Refusal::shutting_down: return !gaps_since(asked - kSlack).empty() || may_end(asked);
    default: return false;
  }
}

bool Fleet::may_end(Time asked) const {
  return losses_since(std::min(asked, now() - kAddressWaits) - kSlack) >= kMostLosses;
}

bool Fleet::may_be_wrong(Time asked) const {
  return std::ranges::any_of(lies_, [&](const Interval& lie) { return lie.end >= asked; });
}

bool Fleet::calm_since(Time time) const {
  if (!changes_.empty() && changes_.back() >= time) return false;
  return std::ranges::any_of(workers_, [time](const auto& worker) {
    return worker->may_serve && worker->since + kSettle <= time;
  });
}

std::uint64_t Fleet::losses_since(Time time) const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(losses_, [time](Time lost) { return lost >= time; }));
}

}  // namespace offload::simulation
