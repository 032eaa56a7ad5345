#include "apps/client/run/load_run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "apps/client/load/connector.hpp"
#include "apps/client/load/datagram_flow.hpp"
#include "apps/client/load/event_flag.hpp"
#include "apps/client/load/load_thread.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/process/thread.hpp"

namespace offload::client {
namespace {

using core::Clock;
using core::Duration;
using core::TimePoint;
using LoadThreads = std::vector<std::unique_ptr<LoadThread>>;

constexpr Duration kTurn = std::chrono::milliseconds(100);
/// More threads than there are: so that no two threads have the same seed.
constexpr std::uint64_t kThreadsOfASeed = 1U << 16;
constexpr double kGoldenRatio = 0.618033988749895;
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
  for (const Kind& kind : options.kinds) weights += kind.weight;
  for (const Kind& kind : options.kinds) {
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
      options.tls_ca, own);
}

std::size_t connection_count(const Options& options) {
  return std::size_t{options.thread_count} * options.connections;
}

/// The first connections of a run.
struct Connected {
  std::vector<net::Stream> streams;
  std::size_t address = 0;    ///< of the target's, that the last one has
  std::uint64_t missing = 0;  ///< that did not come about
  std::string fault;          ///< why
};

/// Makes `wanted` connections; fewer if a signal arrived.
Connected connect_all(const Options& options, const Target& target, std::size_t wanted,
                      const core::Signals& signals, metrics::LatencyHistogram& times) {
  Connector connector(target, Clock::now() + options.connect_timeout, signals);
  Connected connected;
  while (connected.streams.size() < wanted) {
    try {
      net::Stream stream = connector.connect();
      if (!stream.valid()) break;
      connected.streams.push_back(std::move(stream));
    } catch (const core::Error& error) {
      if (!options.count_errors || connected.streams.empty()) throw;
      connected.missing = wanted - connected.streams.size();
      connected.fault = error.what();
      break;
    }
  }
  connected.address = connector.address();
  times.merge(connector.times());
  return connected;
}

/// Makes `wanted` sockets, with --udp; where they send to is not asked.
Connected open_all(const RunSetting& setting, const Load::Part& part, std::size_t wanted) {
  Connected opened;
  while (opened.streams.size() < wanted) {
    opened.streams.emplace_back(open_datagram_socket(
        part.target.addresses.front(), part.pool.longest_frame(), setting.max_concurrent_messages));
  }
  return opened;
}

/// Returns the number of connections of each part: its share of all, and at least one.
std::vector<std::size_t> split_connections(const Options& options, const Load& load) {
  const std::size_t all = connection_count(options);
  std::vector<std::size_t> counts;
  std::size_t given = 0;
  for (const auto& part : load.parts) {
    const auto share = static_cast<std::size_t>(static_cast<double>(all) * part.share);
    counts.push_back(std::max<std::size_t>(share, 1));
    given += counts.back();
  }
  const auto lacks = [&](std::size_t i) {
    return static_cast<double>(all) * load.parts[i].share - static_cast<double>(counts[i]);
  };
  for (; given < all; ++given) {
    std::size_t most = 0;
    for (std::size_t i = 1; i < counts.size(); ++i) most = lacks(i) > lacks(most) ? i : most;
    ++counts[most];
  }
  for (; given > all; --given) --*std::ranges::max_element(counts);
  return counts;
}

LoadPlan make_plan(const Options& options, const RunSetting& setting) {
  LoadPlan plan;
  plan.requests = options.iteration_count;
  if (options.duration) plan.duration = options.warmup + *options.duration;
  plan.warmup = options.warmup;
  plan.max_in_flight = setting.max_concurrent_messages;
  plan.connect_timeout = options.connect_timeout;
  plan.response_timeout = options.response_timeout;
  plan.deadline = options.deadline;
  plan.reconnect_every = options.reconnect_every;
  plan.udp = options.udp;
  plan.retries = options.udp_retries;
  plan.stop_on_error = !options.count_errors;
  plan.seed = options.seed;
  plan.in_order = options.in_order;
  plan.lag_tolerance = options.lag_tolerance;
  return plan;
}

/// Those of thread `number` of the `threads` of a part, whose first one is thread `first` of all.
/// `setting`: the part's.
std::optional<Arrivals> make_arrivals(const Options& options, const RunSetting& setting,
                                      const Load& load, std::uint32_t number, std::uint32_t threads,
                                      std::size_t first) {
  if (load.schedule) return Arrivals::replay(load.schedule->requests, number, threads);
  if (!setting.rate) return std::nullopt;
  const double rate = *setting.rate / threads;
  if (options.arrivals == ArrivalKind::poisson) {
    return Arrivals::poisson(rate, options.seed * kThreadsOfASeed + first + number);
  }
  // Threads take turns; clients with other seeds are as far from these as they can be.
  const double phase = std::fmod(static_cast<double>(options.seed) * kGoldenRatio, 1.0);
  return Arrivals::constant(rate, (number + phase) / *setting.rate);
}

/// The requests of a thread in an open loop without a duration.
std::uint64_t requests_of(const Options& options, const Load& load, std::uint32_t connections) {
  if (load.schedule || options.iteration_count > UINT64_MAX / connections) return UINT64_MAX;
  return options.iteration_count * connections;
}

/// Adds the threads of a part. `streams`: spread evenly; the first threads have one more if they
/// are no multiple. `first`: the number of the first connection. `setting`: the part's.
void add_threads(LoadThreads& threads, const Options& options, const RunSetting& setting,
                 const Load& load, std::vector<net::Stream> streams, std::uint32_t first,
                 const LoadRunContext& context) {
  LoadPlan plan = make_plan(options, setting);
  const auto count =
      static_cast<std::uint32_t>(std::min<std::size_t>(options.thread_count, streams.size()));
  const std::size_t first_thread = threads.size();
  auto next = std::make_move_iterator(streams.begin());
  for (std::uint32_t number = 0; number < count; ++number) {
    const auto left = static_cast<std::uint32_t>(std::make_move_iterator(streams.end()) - next);
    const std::uint32_t share = (left + count - number - 1) / (count - number);
    plan.arrivals = make_arrivals(options, setting, load, number, count, first_thread);
    if (plan.arrivals) plan.requests = requests_of(options, load, share);
    threads.push_back(
        std::make_unique<LoadThread>(static_cast<std::uint32_t>(first_thread) + number, first,
                                     std::vector<net::Stream>(next, next + share), plan, context));
    first += share;
    next += share;
  }
}

/// The threads of a run, and the part that each belongs to.
struct Prepared {
  LoadThreads threads;
  std::vector<std::size_t> parts;
  std::size_t connections = 0;  ///< made or given up
};

/// Connects and makes the threads of all parts; fewer if a signal arrived. Adds to `result` which
/// connections failed, and the kinds.
Prepared prepare(RunResult& result, const Options& options, const RunSetting& setting,
                 const Load& load, const core::Signals& signals, RunControl& control,
                 RequestLog* log) {
  const auto counts = split_connections(options, load);
  Prepared prepared;
  for (std::size_t i = 0; i < load.parts.size(); ++i) {
    const Load::Part& part = load.parts[i];
    if (part.target.addresses.empty()) return prepared;
    RunSetting own = setting;
    if (own.rate) *own.rate *= part.share;
    Connected connected =
        options.udp ? open_all(setting, part, counts[i])
                    : connect_all(options, part.target, counts[i], signals, result.total->connect);
    if (connected.missing != 0) {
      result.total->errors.add(ErrorKind::never_connected, connected.missing);
      result.faults.push_back(connected.fault);
    }
    if (!part.name.empty()) {
      result.kinds.push_back({part.name, part.port, part.share, own.rate, counts[i]});
    }
    const std::size_t made = connected.streams.size() + connected.missing;
    add_threads(prepared.threads, options, own, load, std::move(connected.streams),
                static_cast<std::uint32_t>(prepared.connections),
                {.pool = part.pool,
                 .target = part.target,
                 .control = control,
                 .log = log,
                 .address = connected.address,
                 .name = part.name});
    prepared.parts.resize(prepared.threads.size(), i);
    prepared.connections += made;
    if (made < counts[i]) return prepared;
  }
  return prepared;
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
  return judge_load(result.load_seen(offered_rate(result.setting, load), options.lag_tolerance));
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
