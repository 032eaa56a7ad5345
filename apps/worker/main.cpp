#include <fmt/core.h>

#include <cstdio>
#include <exception>

#include "apps/worker/compiler.hpp"
#include "apps/worker/device_list.hpp"
#include "apps/worker/options.hpp"
#include "apps/worker/program.hpp"
#include "apps/worker/reach_list.hpp"
#include "apps/worker/udp/program.hpp"
#include "core/fd.hpp"
#include "core/log.hpp"
#include "core/signals.hpp"

int main(int argc, char** argv) {
  using namespace offload;
  try {
    core::Signals signals(core::Hangup::rereads);
    core::raise_descriptor_limit();
    const auto parsed = worker::parse_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    const auto& options = std::get<worker::Options>(parsed);
    if (options.list_devices) {
      const auto devices = device::list_devices();
      std::fputs(worker::device_list(devices).c_str(), stdout);
      std::fputs(worker::reach_list(devices).c_str(), stdout);
      std::fputs(worker::interface_list(device::list_interfaces()).c_str(), stdout);
      std::fputs(worker::representor_list(device::list_representors()).c_str(), stdout);
      return 0;
    }
    if (options.configuration.check) {
      worker::check_files(options, signals);
      fmt::print("offload-worker: nothing is wrong\n");
      return 0;
    }
    cli::start_log("offload-worker", options.log);
    core::log_info("configuration: {}", options.configuration.to_string());
    if (options.udp) return static_cast<int>(worker::run_datagrams(options, signals));
    return static_cast<int>(worker::Program(options, signals).run());
  } catch (const worker::Interrupted&) {
    return 0;
  } catch (const std::exception& error) {
    core::print_error("offload-worker", error.what());
    return 1;
  }
}
