#include "apps/client/run/prepare.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "apps/client/load/connector.hpp"
#include "apps/client/load/datagram_flow.hpp"

namespace offload::client {
namespace {

using core::Clock;

/// More threads than there are: so that no two threads have the same seed.
constexpr std::uint64_t kThreadsOfASeed = 1U << 16;
constexpr double kGoldenRatio = 0.618033988749895;

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
  plan.think = options.think;
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
  const double all = options.rate_steps.empty() ? *setting.rate : 1;
  const auto in_steps = [&](const Arrivals& arrivals) {
    if (options.rate_steps.empty()) return arrivals;
    return Arrivals::in_steps(arrivals, options.rate_steps, *setting.rate / *options.rate,
                              options.warmup);
  };
  if (options.arrivals == ArrivalKind::poisson) {
    return in_steps(
        Arrivals::poisson(all / threads, options.seed * kThreadsOfASeed + first + number));
  }
  // Threads take turns; clients with other seeds are as far from these as they can be.
  const double phase = std::fmod(static_cast<double>(options.seed) * kGoldenRatio, 1.0);
  if (options.burst > 1) {
    return in_steps(Arrivals::bursts(all, phase * static_cast<double>(options.burst) / all,
                                     options.burst, number, threads));
  }
  return in_steps(Arrivals::constant(all / threads, (number + phase) / all));
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

}  // namespace

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

}  // namespace offload::client
