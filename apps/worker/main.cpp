#include <fmt/core.h>

#include <cstdio>

#include "apps/worker/compiler.hpp"
#include "apps/worker/datagrams.hpp"
#include "apps/worker/device_list.hpp"
#include "apps/worker/options.hpp"
#include "apps/worker/program.hpp"
#include "apps/worker/reach_list.hpp"
#include "core/exit_status.hpp"
#include "core/fd.hpp"
#include "core/log.hpp"
#include "core/signals.hpp"

namespace offload::worker {
namespace {

int run(const Options& options, core::Signals& signals) {
  if (options.list_devices) {
    const auto devices = device::list_devices();
    std::fputs(device_list(devices).c_str(), stdout);
    std::fputs(reach_list(devices).c_str(), stdout);
    std::fputs(interface_list(device::list_interfaces()).c_str(), stdout);
    std::fputs(representor_list(device::list_representors()).c_str(), stdout);
    return 0;
  }
  try {
    if (options.configuration.check) {
      check_files(options, signals);
      fmt::print("offload-worker: the configuration is valid\n");
      return 0;
    }
    cli::start_log("offload-worker", options.log);
    core::log_info("configuration: {}", options.configuration.to_string());
    if (options.udp) return static_cast<int>(run_datagrams(options, signals));
    return static_cast<int>(Program(options, signals).run());
  } catch (const core::Interrupted&) {
    return 0;
  }
}

}  // namespace
}  // namespace offload::worker

int main(int argc, char** argv) {
  using namespace offload;
  return core::exit_status_of("offload-worker", [&] {
    core::Signals signals(core::Hangup::rereads);
    core::raise_descriptor_limit();
    const auto parsed = worker::parse_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    return worker::run(std::get<worker::Options>(parsed), signals);
  });
}
