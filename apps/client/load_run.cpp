#include "apps/client/load_run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>

#include "apps/client/connector.hpp"
#include "apps/client/event_flag.hpp"
#include "apps/client/progress_line.hpp"
#include "apps/client/request_pool.hpp"
#include "apps/client/run_control.hpp"
#include "core/log.hpp"

namespace offload::client {
namespace {

using core::Clock;
using core::TimePoint;
using LoadThreads = std::vector<std::unique_ptr<LoadThread>>;

double per_second(std::uint64_t amount, core::Duration duration) noexcept {
  const double seconds = core::to_seconds(duration);
  return seconds > 0 ? static_cast<double>(amount) / seconds : 0;
}

constexpr double kGiB = 1024.0 * 1024 * 1024;

RequestPool make_pool(const Options& options) {
  if (options.size) return RequestPool::random(*options.size, options.service);
  const auto message = std::as_bytes(std::span(options.message));
  if (options.expected_response) {
    return RequestPool::same(message, std::as_bytes(std::span(*options.expected_response)));
  }
  return RequestPool::same(message, expected_response(options.service, message));
}

std::size_t connection_count(const Options& options) {
  return std::size_t{options.thread_count} * options.connections;
}

std::optional<net::TlsContext> make_tls(const Options& options) {
  if (!options.tls) return std::nullopt;
  std::optional<net::TlsCertificate> own;
  if (!options.tls_certificate.empty()) own = {options.tls_certificate, options.tls_key};
  return net::TlsContext::client(
      options.tls_server_name.empty() ? options.server_address : options.tls_server_name,
      options.tls_ca, own);
}

/// The connections of all threads; fewer if a signal arrived.
std::vector<net::Stream> connect_all(const Options& options, const core::Signals& signals) {
  Connector connector(options.server_address, options.server_port,
                      Clock::now() + options.connect_timeout, signals, make_tls(options));
  std::vector<net::Stream> streams;
  while (streams.size() < connection_count(options)) {
    net::Stream stream = connector.connect();
    if (!stream.valid()) break;
    streams.push_back(std::move(stream));
  }
  return streams;
}

LoadThreads make_threads(const Options& options, std::vector<net::Stream> streams,
                         const RequestPool& pool, const RunControl& control) {
  const LoadPlan plan{options.iteration_count, options.duration, options.max_concurrent_messages,
                      options.response_timeout};
  LoadThreads threads;
  auto next = std::make_move_iterator(streams.begin());
  for (std::uint32_t number = 0; number < options.thread_count; ++number) {
    std::vector<net::Stream> own(next, next + options.connections);
    next += options.connections;
    threads.push_back(std::make_unique<LoadThread>(number, std::move(own), plan, pool, control));
  }
  return threads;
}

void run_thread(LoadThread& thread, RunControl& control) {
  core::name_this_thread("load");
  control.wait_for_start();
  thread.run();
  if (!thread.result().fault.empty()) control.stop();
  control.thread_done();
}

/// The main thread's loop until all threads have ended. Returns whether a signal arrived.
bool watch(const LoadThreads& threads, RunControl& control, core::Signals& signals) {
  ProgressLine progress;
  EventFlag signal;
  EventFlag done;
  progress::Engine engine;
  engine.watch(signals.fd(), EPOLLIN, signal);
  engine.watch(control.done_fd(), EPOLLIN, done);
  bool interrupted = false;
  for (std::size_t running = threads.size(); running > 0;) {
    engine.run_once(Clock::now() + ProgressLine::kInterval);
    running -= control.threads_done();
    if (!interrupted && signal.raised() && signals.take() != 0) {
      interrupted = true;
      engine.unwatch(signals.fd(), signal);  // a second signal ends the process
      control.stop();
    }
    std::uint64_t operations = 0;
    for (const auto& thread : threads) operations += thread->progress();
    progress.update(operations);
  }
  return interrupted;
}

/// The running threads. At the end of the scope they are stopped, which matters only if the main
/// thread fails before they end, and joined.
class Running {
 public:
  explicit Running(RunControl& control) : control_(control) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    control_.stop();
    for (auto& thread : threads_) thread.join();
  }

  /// Starts the threads and returns their common start time. If one cannot be created, the others
  /// are stopped.
  TimePoint start(const LoadThreads& loads) try {
    for (const auto& load : loads) {
      threads_.emplace_back([&load = *load, &control = control_] { run_thread(load, control); });
    }
    const TimePoint now = Clock::now();
    control_.start();
    return now;
  } catch (...) {
    control_.start();  // those that were created leave, as the destructor stops them
    throw;
  }

 private:
  RunControl& control_;
  std::vector<std::thread> threads_;
};

}  // namespace

void Statistics::add(const LoadResult& result, core::TimePoint start) {
  duration = std::max(duration, result.last_response - start);
  operations += result.answered;
  valid += result.valid;
  unanswered += result.sent - result.answered;
  tx_bytes += result.tx_bytes;
  rx_bytes += result.rx_bytes;
  latency.merge(result.latency);
}

double Statistics::tx_gib_per_second() const noexcept {
  return per_second(tx_bytes, duration) / kGiB;
}

double Statistics::rx_gib_per_second() const noexcept {
  return per_second(rx_bytes, duration) / kGiB;
}

double Statistics::million_operations_per_second() const noexcept {
  return per_second(operations, duration) / 1e6;
}

RunOutcome run_load(const Options& options, core::Signals& signals) {
  const RequestPool pool = make_pool(options);
  auto streams = connect_all(options, signals);
  RunOutcome outcome;
  if (streams.size() < connection_count(options)) {
    outcome.interrupted = signals.take() != 0;
    return outcome;
  }
  core::log_info("{} connected to {} port {}{}", streams.size(), options.server_address,
                 options.server_port, options.tls ? " with TLS" : "");
  RunControl control;
  const auto threads = make_threads(options, std::move(streams), pool, control);
  TimePoint start;
  {
    Running running(control);
    start = running.start(threads);
    outcome.interrupted = watch(threads, control, signals);
  }
  for (const auto& thread : threads) {
    outcome.statistics.add(thread->result(), start);
    if (!thread->result().fault.empty()) outcome.faults.push_back(thread->result().fault);
  }
  return outcome;
}

}  // namespace offload::client
