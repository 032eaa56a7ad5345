#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "apps/worker/options.hpp"
#include "protocol/frame.hpp"
#include "tests/simulation/kernel/kernel.hpp"

namespace offload::simulation {

/// The workers of a world, and when which of them could serve: so it knows when a request may be
/// refused, and why.
class Fleet {
 public:
  /// From its start, or from when it goes on, a worker has this long to attach.
  static constexpr Time kSettle = 2500 * kMillisecond;
  /// After a pause of the server of this length a worker may have given it up. Then it has this
  /// long to serve again: it tries once a second.
  static constexpr Time kPatience = 3500 * kMillisecond;
  static constexpr Time kReturn = 1500 * kMillisecond;
  /// Connections from the address of a request that was alone with lost workers are refused for
  /// less than this.
  static constexpr Time kAddressWaits = 31 * kSecond;

  struct Worker {
    Process* process;
    bool stands_by;
    bool leaves = false;     ///< it was told to
    bool may_serve = false;  ///< it runs, and does not leave
    Time since = 0;          ///< if it may: from when on
  };

  explicit Fleet(worker::Options options) : options_(std::move(options)) {}

  Worker& start(bool stands_by, bool replaces = false);
  void kill(Worker& worker);
  void kill(const Process& process);
  /// As SIGTERM.
  void tell_to_leave(Worker& worker);
  void freeze(Worker& worker);
  void thaw(Worker& worker);
  /// Its back end's threads hang, or go on; the process does.
  void hang(Worker& worker, bool hangs);
  /// Another one takes its place.
  void note_replaced(Worker& worker) {
    end_service(worker);
    worker.leaves = true;
  }
  /// The server is another one, or was stopped: all have to attach again.
  void note_new_server();
  /// The server is paused, with the workers or alone, and goes on.
  void note_pause() { paused_at_ = kernel->now; }
  void note_return(bool with_workers);
  /// The time without that in which the server was paused: what it may judge by. All times here are
  /// of this clock.
  [[nodiscard]] Time now() const { return (is_paused() ? paused_at_ : kernel->now) - lost_; }
  [[nodiscard]] bool is_paused() const { return paused_at_ != 0; }
  /// Something of a worker may be wrong for requests from now on, until `end`.
  void note_lie(Time end) { lies_.push_back({now(), end}); }

  [[nodiscard]] std::vector<Worker*> running();
  /// Whether one of them may serve, now or once it has attached.
  [[nodiscard]] bool serves() const {
    return std::ranges::any_of(workers_, [](const auto& worker) { return worker->may_serve; });
  }
  std::vector<std::unique_ptr<Worker>>& all() { return workers_; }

  /// Whether a request that was sent at `asked` may be refused so, now.
  [[nodiscard]] bool may_refuse(protocol::Refusal code, Time asked) const;
  /// Whether its connection may be closed: workers were lost while it, or another request from its
  /// address, was alone with them.
  [[nodiscard]] bool may_end(Time asked) const;
  /// Whether its answer may be any bytes: its worker lied.
  [[nodiscard]] bool may_be_wrong(Time asked) const;
  /// Whether one and the same worker could serve all the time since then, and nothing happened to
  /// any.
  [[nodiscard]] bool calm_since(Time time) const;
  /// Workers that stopped serving since then.
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

/// The threads of its back end.
void freeze_threads(Process& process, const char* name, bool frozen);
/// Whether a server accepts clients: it listens before that, but has I/O threads only then.
bool accepts_clients(const Process& server);

}  // namespace offload::simulation
