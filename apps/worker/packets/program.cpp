#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "apps/worker/datagrams.hpp"
#include "apps/worker/packets/metrics.hpp"
#include "apps/worker/packets/runner.hpp"
#include "apps/worker/service_source.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/service_manager.hpp"
#include "packets/addresses.hpp"
#include "progress/engine.hpp"

namespace offload::worker {
namespace {

/// The interval of checks for signals and for a failed kernel.
constexpr core::Duration kCheckInterval = std::chrono::milliseconds(10);
/// An engine that wakes the driver does not sleep for this time after the last datagram.
constexpr core::Duration kSpin = std::chrono::microseconds(200);

std::unique_ptr<DatagramRunner> make_runner(const Options& options,
                                            const backend::Services& services) {
  if (options.backend != "cpu") {
    try {
      return make_cuda_datagrams(options, services);
    } catch (const core::Error& error) {
      if (options.backend == "cuda" || !options.gpu_pci_addresses.empty()) throw;
      core::log_info("no CUDA back end ({}): processing requests on the CPU", error.what());
    }
  }
  return make_cpu_datagrams(options, services);
}

/// The rules of a place: for its address, or for all addresses of its interface. Datagrams to
/// others stay with the kernel, which may have to forward them.
class PlaceRules {
 public:
  /// Throws Error: not_found for an interface without an address.
  PlaceRules(const Options& options, const std::string& interface)
      : place_(*options.udp),
        queues_(options.udp_queues),
        interface_(interface),
        addresses_(packets::read_addresses(interface)) {
    if (!addresses_.own.empty()) return;
    throw core::Error(
        core::ErrorCode::not_found,
        fmt::format("{} has no address; give it one (ip addr add ADDRESS/BITS dev {})", interface,
                    interface));
  }

  /// Returns the addresses of the host at the start.
  [[nodiscard]] const kernels::packets::HostAddresses& host() const { return addresses_.host; }

  [[nodiscard]] std::vector<packets::Rule> rules() const {
    std::vector<std::string> to = addresses_.own;
    if (!place_.address.empty()) to = {place_.address};
    if (to.size() > OFFLOAD_MOST_RULES) {
      core::log_warning("{} has {} addresses: only datagrams to the first {} are received",
                        interface_, to.size(), +OFFLOAD_MOST_RULES);
      to.resize(OFFLOAD_MOST_RULES);
    }
    const std::string queues = queues_ == 1 ? "0" : fmt::format("0-{}", queues_ - 1);
    std::vector<packets::Rule> rules;
    for (const std::string& address : to) {
      rules.push_back(packets::parse_rule(
          fmt::format("udp vlan 0 dst {} dport {} to {}", address, place_.port, queues), queues_));
    }
    return rules;
  }

  /// Changes the port's rules if the interface has other addresses. Throws Error, not_connected if
  /// its Ethernet address is another one: device functions have that from the start.
  void follow(packets::Port& port) {
    if (!changes_.take()) return;
    auto found = packets::read_addresses(interface_);
    if (!std::ranges::equal(found.host.ethernet, addresses_.host.ethernet)) {
      throw core::Error(core::ErrorCode::not_connected,
                        fmt::format("the Ethernet address of {} has changed", interface_));
    }
    if (!place_.address.empty() || found.own == addresses_.own) return;
    addresses_.own = std::move(found.own);
    port.steering().set_rules(rules());
    core::log_info("{} has other addresses: {}", interface_, fmt::join(addresses_.own, ", "));
  }

 private:
  const DatagramPlace& place_;
  std::uint32_t queues_;
  std::string interface_;
  packets::AddressChanges changes_;  // before the first look: none is missed
  packets::PortAddresses addresses_;
};

void log_summary(const DatagramRunner& runner, const packets::Port& port) {
  // Plain: no thread writes them any more.
  kernels::packets::DatagramCounts sum{};
  std::uint64_t martians = 0;
  std::vector<std::uint64_t> by_queue;
  for (const auto& each : runner.counts()) {
    sum.datagrams += each.datagrams;
    sum.answered += each.answered;
    sum.refused += each.refused;
    sum.malformed += each.malformed;
    sum.bad_frames += each.bad_frames;
    martians = std::accumulate(std::begin(each.martians), std::end(each.martians), martians);
    by_queue.push_back(each.datagrams);
  }
  const auto driver = port.statistics();
  core::log_info(
      "{} datagrams: {} answered, {} refused, {} malformed ({} of these in their headers), {} from "
      "addresses that get no answer; {} dropped before a queue; by queue: {}",
      sum.datagrams, sum.answered, sum.refused, sum.malformed, sum.bad_frames, martians,
      driver.dropped + driver.ring_full, fmt::join(by_queue, ", "));
}

}  // namespace

ExitStatus run_datagrams(const Options& options, core::Signals& signals) {
  const backend::Services services = make_services(options, signals);
  auto made = make_runner(options, services);
  const DatagramPlace& place = *options.udp;
  const device::Interface interface = interface_of(place);
  PlaceRules rules(options, interface.name);
  packets::PortOptions port_options{.interface = interface.name,
                                    .queues = options.udp_queues,
                                    .wakes_driver = made->needs_waking()};
  packets::FrameMemory memory({.homes = packets::homes_of(port_options)});
  std::string gone;
  progress::Engine engine(made->needs_waking() ? kSpin : core::Duration{});
  packets::Port port(memory, port_options,
                     [&gone](packets::Port&, const core::Error& error) { gone = error.what(); });
  port.steering().set_rules(rules.rules());
  port.connect(engine);
  port.start();
  const auto runner = std::move(made);  // ends before the objects that it uses, also after an error
  runner->start(memory, port, interface.mtu, rules.host());
  core::log_info("back end: {}", runner->name());
  DatagramMetrics metrics(runner->name(), options.udp_service);
  metrics.take(*runner, port, core::Clock::now());
  std::optional<telemetry::Routes> routes;
  if (options.metrics) routes.emplace(*options.metrics, "offload-worker", metrics);
  core::log_info("serving datagrams to {} port {} of {} queues, service {}",
                 place.address.empty() ? interface.name : place.address, place.port,
                 port.queues().size(), options.udp_service);
  core::ServiceManager manager;
  manager.ready("runs");

  bool serves = true;
  auto next_look = core::Clock::now();
  auto next_figures = next_look + DatagramMetrics::kAge;
  for (int signal = 0; serves && gone.empty() && (signal == 0 || signal == SIGHUP);) {
    engine.run_once(next_look);
    // A system call, and one of the driver's: not in each turn, which is a datagram's time.
    if (core::Clock::now() < next_look) continue;
    next_look = core::Clock::now() + kCheckInterval;
    manager.tick(core::Clock::now());
    signal = signals.take();
    if (signal == SIGHUP) {
      core::log_info("SIGHUP: with --udp nothing is reread: a change needs a restart");
    }
    serves = runner->is_serving();
    rules.follow(port);
    if (!routes || core::Clock::now() < next_figures) continue;
    metrics.take(*runner, port, core::Clock::now());
    next_figures = core::Clock::now() + DatagramMetrics::kAge;
  }
  manager.stopping("shutting down");
  metrics.leave();
  if (!runner->stop()) {
    core::log_critical("exiting with status {}: the kernel does not end",
                       static_cast<int>(ExitStatus::hung));
    core::flush_log();
    ::_exit(static_cast<int>(ExitStatus::hung));  // to free what it uses would wait forever
  }
  for (std::size_t i = 0; i < port.queues().size(); ++i) port.wake(i);
  log_summary(*runner, port);
  port.stop();
  if (!gone.empty()) throw core::Error(core::ErrorCode::not_connected, gone);
  if (!serves) throw core::Error(core::ErrorCode::unexpected, "a ring of a queue is stuck");
  return ExitStatus::done;
}

}  // namespace offload::worker
