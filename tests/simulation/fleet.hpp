#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "apps/worker/options.hpp"
#include "protocol/frame.hpp"
#include "tests/simulation/kernel/kernel.hpp"

namespace offload::simulation {

/// The workers of a world, and the times at which they could serve: so it knows when a request may
/// be refused, and why.
class Fleet {
 public:
  /// A worker has this long to attach, from its start or from the time it continues.
  static constexpr Time kSettle = 2500 * kMillisecond;
  /// After a pause of the server of this length a worker may have disconnected from it. Then it has
  /// this long to serve again: it tries once a second.
  static constexpr Time kPatience = 3500 * kMillisecond;
  static constexpr Time kReturn = 1500 * kMillisecond;
  /// Connections from the address of a request that was alone with lost workers are refused for
  /// less than this.
  static constexpr Time kAddressWaits = 31 * kSecond;

  struct Worker {
    Process* process;
    bool stands_by;
    bool leaves = false;     ///< it was told to exit
    bool may_serve = false;  ///< it runs, and was not told to exit
    Time since = 0;          ///< the time from which it may serve
  };

  explicit Fleet(worker::Options options) : options_(std::move(options)) {}

  Worker& start(bool stands_by, bool replaces = false);
  void kill(Worker& worker);
  void kill(const Process& process);
  /// Tells a worker to exit, as SIGTERM does.
  void tell_to_leave(Worker& worker);
  void freeze(Worker& worker);
  void thaw(Worker& worker);
  /// Lets its back end's threads hang, or continue; the process runs.
  void hang(Worker& worker, bool hangs);
  /// Notes that another one replaces it.
  void note_replaced(Worker& worker) {
    end_service(worker);
    worker.leaves = true;
  }
  /// Notes that the server is another one, or was stopped: all workers must attach again.
  void note_new_server();
  /// Notes that the server is paused, with the workers or alone, and continues.
  void note_pause() { paused_at_ = kernel->now; }
  void note_return(bool with_workers);
  /// Returns the time without the server's pauses, on which its decisions are based. All times here
  /// are of this clock.
  [[nodiscard]] Time now() const { return (is_paused() ? paused_at_ : kernel->now) - lost_; }
  [[nodiscard]] bool is_paused() const { return paused_at_ != 0; }
  /// Notes that a worker's answers may be wrong for requests from now on, until `end`.
  void note_lie(Time end) { lies_.push_back({now(), end}); }

  [[nodiscard]] std::vector<Worker*> running();
  /// Returns whether one of them may serve, now or once it has attached.
  [[nodiscard]] bool serves() const {
    return std::ranges::any_of(workers_, [](const auto& worker) { return worker->may_serve; });
  }
  std::vector<std::unique_ptr<Worker>>& all() { return workers_; }

  /// Returns whether a request that was sent at `asked` may now be refused with this code.
  [[nodiscard]] bool may_refuse(protocol::Refusal code, Time asked) const;
  /// Returns whether the connection of that request may be closed: workers were lost while it, or
  /// another request from its address, was alone with them.
  [[nodiscard]] bool may_end(Time asked) const;
  /// Returns whether its answer may be any bytes: its worker lied.
  [[nodiscard]] bool may_be_wrong(Time asked) const;
  /// Returns whether one and the same worker could serve all the time since then, and nothing
  /// happened to any worker.
  [[nodiscard]] bool calm_since(Time time) const;
  /// Returns the number of workers that stopped serving since then.
  [[nodiscard]] std::uint64_t losses_since(Time time) const;

  Time worker_timeout = 2 * kSecond;
  Time request_timeout = 30 * kSecond;

 private:
  struct Interval {
    Time begin;
    Time end;
  };
  void begin_service(Worker& worker);
  void end_service(Worker& worker);
  [[nodiscard]] std::vector<Interval> gaps_since(Time time) const;

  worker::Options options_;
  std::vector<std::unique_ptr<Worker>> workers_{};
  std::vector<Interval> served_{};  ///< that are over, of any worker
  std::vector<Interval> lies_{};
  std::vector<Time> losses_{};
  Time paused_at_ = 0;  ///< 0: it is not paused
  Time lost_ = 0;       ///< in its pauses that are over
  std::vector<Time> changes_{};
};

/// Freezes the threads of its back end, or lets them continue.
void freeze_threads(Process& process, const char* name, bool frozen);
/// Returns whether a server accepts clients: it listens before that, but has I/O threads only then.
bool accepts_clients(const Process& server);

}  // namespace offload::simulation
