#include "apps/client/run/load_run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "apps/client/load/connector.hpp"
#include "apps/client/load/event_flag.hpp"
#include "apps/client/load/load_thread.hpp"
#include "apps/client/run/prepare.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/process/thread.hpp"

namespace offload::client {
namespace {

using core::Clock;
using core::Duration;
using core::TimePoint;

constexpr Duration kTurn = std::chrono::milliseconds(100);
/// A --start-at that was missed by more is worth a warning.
constexpr double kLateStart = 1e-3;

/// The sizes of the requests; none if each says options.message.
std::optional<SizeMix> sizes_of(const Options& options, const std::optional<Schedule>& schedule,
                                const Payload& payload) {
  if (schedule) return schedule->sizes;
  if (options.sizes) return options.sizes;
  if (!options.sizes_file.empty()) return read_sizes_file(options.sizes_file);
  if (payload.content.empty()) return std::nullopt;
  return SizeMix{{static_cast<std::uint32_t>(payload.content.size()), 1}};
}

RequestPool make_pool(const Options& options, const std::optional<Schedule>& schedule,
                      const core::Signals& signals) {
  Payload payload = options.payload;
  payload.load();
  Answers answers(options.verification, options.service, signals);
  if (!options.requests_file.empty()) {
    const Recording recording = Recording::read(options.requests_file);
    if (answers.are_recorded() && !recording.has_responses) {
      throw InvalidInput(
          fmt::format("'{}' has no responses: say by --verify how to check those of "
                      "the server",
                      options.requests_file));
    }
    return RequestPool::recorded(recording, std::move(answers));
  }
  if (const auto sizes = sizes_of(options, schedule, payload)) {
    return RequestPool::of_sizes(*sizes, payload, std::move(answers));
  }
  const auto message = std::as_bytes(std::span(options.message));
  if (options.expected_response) {
    return RequestPool::same(message, std::as_bytes(std::span(*options.expected_response)));
  }
  return RequestPool::same(message, answers.to(message));
}

/// The parts of a load, without their targets.
std::vector<Load::Part> make_parts(const Options& options, const std::optional<Schedule>& schedule,
                                   const core::Signals& signals) {
  std::vector<Load::Part> parts;
  if (options.kinds.empty()) {
    parts.push_back({"", options.server_port, 1, make_pool(options, schedule, signals)});
  }
  double weights = 0;
  for (const RequestKind& kind : options.kinds) weights += kind.weight;
  for (const RequestKind& kind : options.kinds) {
    const Options own = options.of_kind(kind);
    parts.push_back(
        {kind.name, own.server_port, kind.weight / weights, make_pool(own, schedule, signals)});
  }
  return parts;
}

std::optional<net::TlsContext> make_tls(const Options& options) {
  if (!options.tls) return std::nullopt;
  std::optional<net::TlsCertificate> own;
  if (!options.tls_certificate.empty()) own = {options.tls_certificate, options.tls_key};
  return net::TlsContext::client(
      options.tls_server_name.empty() ? options.server_address : options.tls_server_name,
      options.tls_ca, own, options.tls_crl);
}

void run_thread(LoadThread& thread, RunControl& control, bool stop_on_fault) {
  thread.run(control.wait_for_start());
  if (stop_on_fault && !thread.fault().empty()) control.stop();
  control.thread_done();
}

/// The running threads. At the end of the scope they are stopped, which matters only if the main
/// thread fails before they end, and joined. If it fails before start(), they exit at once.
class Running {
 public:
  explicit Running(RunControl& control) : control_(control) {}
  Running& operator=(Running&&) = delete;
  ~Running() {
    control_.stop();
    if (!started_) control_.start(Clock::now());
  }

  /// Creates the threads, which wait for start().
  void create(const LoadThreads& loads, bool stop_on_fault) {
    threads_.reserve(loads.size());
    for (const auto& load : loads) {
      threads_.push_back(core::start_thread<std::jthread>(
          "load", [&load = *load, &control = control_, stop_on_fault] {
            run_thread(load, control, stop_on_fault);
          }));
    }
  }
  void start(TimePoint now) {
    started_ = true;
    control_.start(now);
  }

 private:
  RunControl& control_;
  bool started_ = false;
  std::vector<std::jthread> threads_;  ///< joined first
};

/// The main thread's part of a run.
class Watch {
 public:
  Watch(const LoadThreads& threads, RunControl& control, core::Signals& signals,
        const RunObserver& observer)
      : threads_(threads), control_(control), signals_(signals), observer_(observer) {
    engine_.watch(signals.fd(), EPOLLIN, signal_);
    engine_.watch(control.done_fd(), EPOLLIN, done_);
  }

  /// Until that time of the wall clock, or a signal.
  void wait_until(double unix_s) {
    while (!interrupted_) {
      const double left = unix_s - unix_now();
      if (left <= 0) return;
      turn(Clock::now() + core::seconds(std::min(left, 0.1)));
    }
  }

  /// Until all threads have ended. Takes their intervals.
  void run(TimeLine& time_line) {
    for (std::size_t running = threads_.size(); running > 0;) {
      turn(Clock::now() + kTurn);
      running -= control_.threads_done();
      for (std::size_t i = 0; i < threads_.size(); ++i) {
        threads_[i]->recorder().take([&](const Interval& interval) {
          time_line.add(i, interval);
          observer_.on_interval(interval);
        });
      }
      observer_.on_turn();
    }
  }

  /// Returns whether a signal arrived.
  [[nodiscard]] bool interrupted() const noexcept { return interrupted_; }

  static double unix_now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }

 private:
  void turn(TimePoint until) {
    engine_.run_once(until);
    if (interrupted_ || !signal_.raised() || signals_.take() == 0) return;
    interrupted_ = true;
    engine_.unwatch(signals_.fd(), signal_);  // a second signal ends the process
    control_.stop();
  }

  const LoadThreads& threads_;
  RunControl& control_;
  core::Signals& signals_;
  const RunObserver& observer_;
  EventFlag signal_;
  EventFlag done_;
  progress::Engine engine_;
  bool interrupted_ = false;
};

std::optional<double> offered_rate(const RunSetting& setting, const Load& load) {
  if (setting.rate) return setting.rate;
  if (!load.schedule) return std::nullopt;
  const double length = core::to_seconds(load.schedule->requests.back().offset);
  const auto count = static_cast<double>(load.schedule->requests.size());
  return length > 0 ? count / length : count;
}

/// Returns whether a fault or a signal ended it early.
bool is_cut_short(const RunResult& result, const Options& options) {
  return result.interrupted || (!options.count_errors && result.has_errors());
}

LoadVerdict verdict_of(const RunResult& result, const Options& options, const Load& load) {
  if (is_cut_short(result, options)) {
    const std::string why = result.interrupted ? "a signal" : "an error";
    return {LoadVerdict::Code::cut_short, "there is no verdict: " + why + " ended the run"};
  }
  return judge_run(result.load_seen(offered_rate(result.setting, load), options.lag_tolerance));
}

/// "12345", or "12345, 12346" of several kinds.
std::string ports_of(const Load& load) {
  std::string text;
  for (const auto& part : load.parts) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", part.port);
  }
  return text;
}

/// After the threads have ended.
void collect(RunResult& result, const LoadThreads& threads, const RunObserver& observer,
             TimeLine& time_line) {
  for (std::size_t i = 0; i < threads.size(); ++i) {
    threads[i]->recorder().take_rest([&](const Interval& interval) {
      time_line.add(i, interval);
      observer.on_interval(interval);
    });
    for (const auto& fault : {threads[i]->fault(), threads[i]->wrong_answer()}) {
      if (!fault.empty()) result.faults.push_back(fault);
    }
    result.busy = std::max(result.busy, threads[i]->busy());
  }
  time_line.finish();
  result.seconds = time_line.seconds();
  const Interval& measured = time_line.total();
  const Interval& warmup = time_line.warmup();
  result.total->merge(measured);
  result.total->errors.merge(warmup.errors);  // no error is passed over
  result.unanswered = measured.sent + warmup.sent - measured.answered - warmup.answered;
}

/// The time that rates are of.
Duration duration_of(const RunResult& result, const Options& options, TimePoint start) {
  if (options.duration && !is_cut_short(result, options)) return *options.duration;
  return std::max(result.total->last_answer - (start + options.warmup), Duration{});
}

}  // namespace

Load::Load(const Options& options, const core::Signals& signals)
    : schedule(options.schedule.empty() ? std::nullopt
                                        : std::optional(Schedule::read(options.schedule))),
      parts(make_parts(options, schedule, signals)) {
  const auto deadline = Clock::now() + options.connect_timeout;
  for (Part& part : parts) {
    part.target = {resolve_by(deadline, options.server_address, part.port, signals),
                   make_tls(options)};
  }
}

RunResult run_load(const Options& options, const RunSetting& setting, const Load& load,
                   core::Signals& signals, const RunObserver& observer) {
  RunResult result;
  result.setting = setting;
  result.udp = options.udp;
  result.verification = verification_of(options);
  RunControl control;
  const Prepared prepared = prepare(result, options, setting, load, signals, control, observer.log);
  const LoadThreads& threads = prepared.threads;
  if (prepared.connections < connection_count(options)) {
    result.interrupted = signals.take() != 0;
    result.verdict = verdict_of(result, options, load);
    return result;
  }
  observer.on_interval(*result.total);
  core::log_info("{} connected to {} port {}{}",
                 prepared.connections - result.total->errors.of(ErrorKind::never_connected),
                 options.server_address, ports_of(load),
                 options.tls   ? " with TLS"
                 : options.udp ? " by UDP"
                               : "");
  TimePoint start;
  std::unique_ptr<TimeLine> time_line;
  {
    Running running(control);
    running.create(threads, !options.count_errors);
    Watch watch(threads, control, signals, observer);
    if (options.start_at) watch.wait_until(*options.start_at);
    observer.on_start();
    result.started_at_unix_s = Watch::unix_now();
    start = Clock::now();
    if (options.start_at && result.started_at_unix_s - *options.start_at > kLateStart) {
      core::log_warning("begun {:.3f} s after --start-at",
                        result.started_at_unix_s - *options.start_at);
    }
    time_line =
        std::make_unique<TimeLine>(start, options.warmup, threads.size(), observer.on_second,
                                   [&](std::size_t thread, const Interval& interval) {
                                     if (result.kinds.empty()) return;
                                     result.kinds[prepared.parts[thread]].total->merge(interval);
                                   });
    running.start(start);
    watch.run(*time_line);
    result.interrupted = watch.interrupted();
  }
  collect(result, threads, observer, *time_line);
  result.duration = duration_of(result, options, start);
  observer.on_turn();
  result.verdict = verdict_of(result, options, load);
  return result;
}

}  // namespace offload::client
