#include <fmt/core.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/packets/item_taker.hpp"
#include "apps/packets/options.hpp"
#include "apps/packets/runner.hpp"
#include "apps/packets/templates.hpp"
#include "cli/json_file.hpp"
#include "core/exit_status.hpp"
#include "core/log.hpp"
#include "core/signals.hpp"
#include "packets/addresses.hpp"
#include "packets/port.hpp"

namespace offload::packets {
namespace {

/// The maximum wait of a turn, because lanes ring no doorbell for items that they hand over.
constexpr core::Duration kTurn = std::chrono::milliseconds(1);
/// The engine does not sleep for this time after the last packet.
constexpr core::Duration kSpin = std::chrono::microseconds(200);

/// Indexed by FrameError.
constexpr std::array kErrorNames = {
    "none",       "short-ethernet", "too-many-tags",     "short-ip",        "ip-version",
    "ip-header",  "ip-length",      "ip-checksum",       "ipv6-extensions", "short-transport",
    "udp-length", "tcp-header",     "transport-checksum"};
static_assert(kErrorNames.size() == kernels::packets::kFrameErrors);

/// Indexed by Martian.
constexpr std::array kMartianNames = {"none",   "ethernet",    "vlan", "destination",
                                      "source", "source-port", "loop"};
static_assert(kMartianNames.size() == kernels::packets::kMartians);

nlohmann::ordered_json results_of(const Options& options, packets::Port& port, const Runner& runner,
                                  const ItemTaker& taker) {
  const LaneCounts counts = runner.counts();
  const auto driver = port.statistics();
  nlohmann::ordered_json errors = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < kErrorNames.size(); ++i) {
    if (counts.errors[i] != 0) errors[kErrorNames.at(i)] = counts.errors[i];
  }
  for (std::size_t i = 0; i < kMartianNames.size(); ++i) {
    if (counts.martians[i] != 0) errors[kMartianNames.at(i)] = counts.martians[i];
  }
  nlohmann::ordered_json rules = nlohmann::ordered_json::array();
  for (const auto& rule : port.steering().counts()) {
    rules.push_back({{"rule", rule.rule}, {"packets", rule.packets}, {"bytes", rule.bytes}});
  }
  nlohmann::ordered_json results = {{"program", "offload-packets"},
                                    {"command", name_of(options.command)},
                                    {"backend", options.backend},
                                    {"zero_copy", port.is_zero_copy()},
                                    {"packets", counts.packets},
                                    {"bytes", counts.bytes},
                                    {"answered", counts.answered},
                                    {"sent", counts.sent},
                                    {"captured", taker.captured()},
                                    {"http_gets", taker.requests()},
                                    {"statistics", taker.statistics()},
                                    {"missed", counts.missed},
                                    {"dropped", driver.dropped + driver.ring_full},
                                    {"errors", errors},
                                    {"rules", rules}};
  if (options.command == Command::send && counts.sent != 0) {
    results["late_mean_us"] = double(counts.late_ns) / double(counts.sent) / 1e3;
    results["late_most_us"] = double(counts.latest_ns) / 1e3;
  }
  return results;
}

void print(const nlohmann::ordered_json& results) {
  for (const auto& [name, value] : results.items()) {
    if (name == "program" || value.empty() || value == 0) continue;
    if (name != "rules") {
      fmt::print("{:<14} {}\n", name, value.is_string() ? value.get<std::string>() : value.dump());
      continue;
    }
    for (const auto& rule : value) {
      fmt::print("{:>12} packets {:>14} bytes  {}\n", rule["packets"].get<std::uint64_t>(),
                 rule["bytes"].get<std::uint64_t>(), rule["rule"].get<std::string>());
    }
  }
  std::fflush(stdout);
}

Plan plan_of(const Options& options, const FrameTemplates& templates,
             const kernels::packets::HostAddresses& host) {
  Plan plan;
  plan.command = options.command;
  plan.frames = templates.frames;
  plan.lengths = templates.lengths;
  plan.statistics_every = options.statistics_every;
  plan.interval_ns = options.rate == 0 ? 0 : 1'000'000'000 / options.rate;
  plan.most_packets = options.most;
  plan.port = options.port;
  plan.batch = options.batch;
  plan.host = host;
  return plan;
}

int run(const Options& options, core::Signals& signals) {
  cli::start_log("offload-packets", options.log);
  cli::JsonFile json(options.output, "offload-packets");
  FrameTemplates templates;
  if (options.command == Command::send) {
    templates = make_templates(options, mac_of(options.interface));
  }
  const packets::PortAddresses addresses = packets::read_addresses(options.interface);
  const bool is_cuda = options.backend == "cuda";
  packets::PortOptions port_options{.interface = options.interface,
                                    .queues = options.queues,
                                    .only_copy = options.only_copy,
                                    .wakes_driver = is_cuda};
  packets::FrameMemory memory(
      {.homes = packets::homes_of(port_options), .frames_per_home = options.frames});
  std::string gone;
  progress::Engine engine(is_cuda ? kSpin : core::Duration{});
  packets::Port port(memory, port_options,
                     [&gone](packets::Port&, const core::Error& error) { gone = error.what(); });
  std::vector<packets::Rule> rules;
  for (const auto& text : rules_of(options, addresses.own)) {
    rules.push_back(packets::parse_rule(text, options.queues));
  }
  const bool answers = options.command == Command::echo || options.command == Command::ping;
  if (answers && rules.empty()) {
    throw core::Error(
        core::ErrorCode::not_found,
        fmt::format("{} has no address: add one, or select frames with --rule", options.interface));
  }
  port.steering().set_rules(std::move(rules));
  port.connect(engine);
  const Plan plan = plan_of(options, templates, addresses.host);
  const auto runner =
      is_cuda ? make_cuda_runner(memory, port, plan) : make_cpu_runner(memory, port, plan);
  ItemTaker taker(runner->items(), options.command == Command::capture ? options.file : "",
                  options.most);
  port.start();
  runner->start();
  core::log_info("{}: ready", name_of(options.command));

  const auto begin = core::Clock::now();
  auto next_look = begin;
  const auto is_over = [&] {
    if (!gone.empty() || taker.is_full()) return true;
    // A system call and one of the driver's: not in each turn, which is a packet's time.
    const auto now = core::Clock::now();
    if (now < next_look) return false;
    next_look = now + kTurn;
    return signals.take() != 0 || runner->is_done() ||
           (options.duration != core::Duration{} && now - begin >= options.duration);
  };
  while (!is_over()) {
    engine.run_once(core::Clock::now() + kTurn);
    taker.take();
  }
  runner->stop();
  for (std::size_t i = 0; i < port.queues().size(); ++i) port.wake(i);
  taker.take();
  taker.close();
  const auto results = results_of(options, port, *runner, taker);
  port.stop();
  print(results);
  json.write(results);
  if (!gone.empty()) throw core::Error(core::ErrorCode::not_connected, gone);
  return 0;
}

}  // namespace
}  // namespace offload::packets

int main(int argc, char** argv) {
  using namespace offload;
  return core::exit_status_of("offload-packets", [&] {
    core::Signals signals;
    const auto parsed = packets::parse_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    return packets::run(std::get<packets::Options>(parsed), signals);
  });
}
