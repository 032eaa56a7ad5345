#include "apps/worker/options.hpp"

#include <optional>
#include <set>

#include "backend/backend.hpp"
#include "cli/options.hpp"
#include "comch/address.hpp"
#include "core/units.hpp"
#include "device/device.hpp"
#include "kernels/channel_layout.hpp"
#include "kernels/group.hpp"
#include "kernels/services.hpp"

namespace offload::worker {
namespace {

constexpr std::uint32_t kMostWarps = 64;

constexpr const char* kDescription =
    "Offload worker (GPU host): attaches to the server's --comch and processes the requests of\n"
    "its channels, on a GPU in a persistent kernel or on CPU threads.";

constexpr const char* kFooter =
    "\nBYTES may end in k, m or g (binary multiples), SECONDS in us, ms, s, m or h. SIGINT or\n"
    "SIGTERM: asks the server to detach the worker, processes requests until then, and exits; a\n"
    "second one exits immediately. The server and other workers continue. If the server ends, the\n"
    "worker waits for the next one, for --connect-timeout. SIGHUP: rereads --config and\n"
    "--comch-key-file; the next attachment uses them.\n"
    "Exit status: 0 after a signal, or once the server has detached the worker; 1 an error; 2 an\n"
    "invalid command line; 3 the back end hangs, for example because a GPU no longer answers.\n"
    "With several GPUs the worst status counts, and the other GPUs continue until the end.\n\n"
    "Example, a rolling upgrade: start the new worker with --replace; the old one exits.";

std::optional<std::uint64_t> read_memory(const std::string& text) {
  const auto bytes = core::parse_size(text);
  return bytes && *bytes != 0 ? bytes : std::nullopt;
}

std::optional<std::uint32_t> read_warps(const std::string& text) {
  for (std::uint32_t warps = kernels::kWarpsPerBlock; warps <= kMostWarps;
       warps += kernels::kWarpsPerBlock) {
    if (text == std::to_string(warps)) return warps;
  }
  return std::nullopt;
}

std::optional<core::Duration> read_idle_sleep(const std::string& text) {
  const auto time = cli::read_time(text, core::Duration{});
  return time && *time <= std::chrono::milliseconds(1) ? time : std::nullopt;
}

void add_backend(cli::CommandLine& line, Options& options) {
  cli::add_choice(line, "--backend", options.backend, {"auto", "cuda", "graph", "cpu"},
                  "Process the requests with a persistent kernel (cuda), with copies and a kernel "
                  "launch for each batch, for comparison (graph), with threads (cpu), or with cuda "
                  "if there is a GPU and else with cpu (auto)");
  const auto read_address = [](const std::string& text) {
    return device::is_pci_address(text) ? std::optional(text) : std::nullopt;
  };
  cli::add_each(line, "-g,--gpu-pci-addr ADDRESS", options.gpu_pci_addresses, read_address,
                "a PCI address, such as 0000:01:00.0",
                "Use this GPU. May be repeated: each GPU attaches as a separate worker. Default: "
                "the first GPU");
  cli::add(line, "--warps-per-channel COUNT", options.warps_per_channel, read_warps,
           fmt::format("a multiple of {} up to {}", kernels::kWarpsPerBlock, kMostWarps),
           "cuda: process this number of messages of a channel at a time")
      .default_str(fmt::format("{}, or {} for messages over {} bytes",
                               backend::CudaOptions::kWarpsForShort,
                               backend::CudaOptions::kWarpsForLong, kernels::kMaxPacketPayload));
  cli::add(line, "--idle-sleep SECONDS", options.idle_sleep, read_idle_sleep,
           "a time from 0 to 1ms, such as 20us",
           "cuda: pause for this time between two polls of a channel that has been idle for some "
           "milliseconds; adds up to this time to the next request. 0: no pause");
  cli::add_choice(line, "--data-path", options.data_path, {"auto", "gpu", "cpu"},
                  "Over rdma, post responses from the back end itself, as RDMA writes into the "
                  "server's slots (gpu; with --backend cuda or cpu, whose threads run the device "
                  "functions), or from a thread of this program that sends them (cpu). auto: gpu "
                  "with cuda and devices that have atomic operations, else cpu; the log names the "
                  "choice and its reason");
  cli::add_time(line, "--spin", options.spin, core::Duration{},
                "cpu, graph: poll for this time after a request before a thread sleeps");
}

void add_services(cli::CommandLine& line, Options& options) {
  cli::add_each(
      line, "--service-module FILE", options.service_modules, cli::read_name,
      "a shared library with a service",
      "Load a service from this module (docs/reference/services.md), in addition to those built "
      "in. May be repeated");
  const auto read_source = [](const std::string& text) {
    const bool is_source = text.ends_with(".cu") || text.ends_with(".cpp");
    return is_source ? std::optional(text) : std::nullopt;
  };
  cli::add_each(line, "--service-source FILE", options.service_sources, read_source,
                "a file whose name ends in .cu or .cpp",
                "Compile this source of a service now, with the nvcc or C++ compiler of this "
                "machine, as this user, and load it (docs/reference/services.md). May be repeated");
  const auto take_option = [&options](const std::string& text) {
    return backend::add_service_option(options.service_options, text);
  };
  cli::add_values(line, "--service-option KEY=VALUE", take_option, "KEY=VALUE or SERVICE.KEY=VALUE",
                  "Pass this option to the services of modules; with SERVICE. only to that one. "
                  "May be repeated");
}

void add_server(cli::CommandLine& line, Options& options) {
  comch::add_address_options(line, options.comch, options.comch_security, "Attach to this server");
  comch::add_path_options(line, options.comch_path);
  cli::add_time(line, "--connect-timeout", options.connect_timeout, core::Duration{},
                "Try for this time to reach the server");
  cli::add_time(line, "--shutdown-timeout", options.shutdown_timeout, core::Duration{},
                "Wait for this time, after a signal, until the server has detached this worker");
  const auto stands_by =
      cli::add_flag(line, "--stand-by", options.stands_by,
                    "Attach as a hot stand-by: process requests only while no other worker can");
  cli::add_flag(line, "--replace", options.replaces,
                "Replace the worker that has been attached for the longest time, which the server "
                "then detaches")
      .excludes(stands_by);
  cli::add_flag(line, "--shutdown-together", options.shutdown_together,
                "End the server, too, on a signal, and end when the server ends");
  cli::add(line, "--max-memory BYTES", options.max_memory, read_memory,
           "a size of at least 1 byte, such as 512m or 64g",
           "Limit the memory of this machine that channels use, for all GPUs together")
      .default_str("8g");
  cli::add_time(line, "--stuck-after", options.stuck_after, std::chrono::milliseconds(1),
                "Report a request unanswered for this time, with its channel and slot");
}

/// The most queues that a rule chooses from (OFFLOAD_MOST_QUEUES of packet/program/steering.h).
constexpr std::uint32_t kMostUdpQueues = 16;

void add_udp(cli::CommandLine& line, Options& options) {
  options.udp_service = kernels::service_names().front();
  const auto udp =
      cli::add(line, "--udp PLACE:PORT", options.udp, &DatagramPlace::parse,
               "ADDRESS:PORT or INTERFACE:PORT, such as 10.0.0.1:4000, [fd00::1]:4000 or eth1:4000",
               "Receive requests as UDP datagrams there, by AF_XDP, and answer them without a "
               "server (docs/reference/packets.md). Needs CAP_NET_RAW, CAP_BPF and CAP_NET_ADMIN");
  cli::add_text(line, "--udp-service NAME", options.udp_service,
                "Process the datagrams with this service, as --service of the server")
      .needs(udp);
  cli::add_integer<std::uint32_t>(
      line, "--udp-queues", options.udp_queues, 1, kMostUdpQueues,
      "For each queue of the interface, use this number of queues, with a warp or a thread each; "
      "clients are distributed by their addresses and ports")
      .needs(udp);
}

/// The complaint about an option that is for a server, where there is none.
std::optional<std::string> misplaced_by_udp(const cli::CommandLine& line, const Options& options) {
  if (!options.udp) return std::nullopt;
  for (const char* name : {"--comch",
                           "--comch-channel-name",
                           "--comch-key-file",
                           "--insecure",
                           "--rdma-device",
                           "--gid-index",
                           "--traffic-class",
                           "--service-level",
                           "--pkey",
                           "--connect-timeout",
                           "--shutdown-timeout",
                           "--stand-by",
                           "--replace",
                           "--shutdown-together",
                           "--max-memory",
                           "--stuck-after",
                           "--warps-per-channel",
                           "--idle-sleep",
                           "--data-path",
                           "--admin"}) {
    if (line.has(name)) return fmt::format("--udp excludes {}", name);
  }
  if (options.backend == "graph") return "--udp excludes --backend graph";
  if (options.gpu_pci_addresses.size() > 1) return "--udp allows only one --gpu-pci-addr";
  return std::nullopt;
}

/// The complaint about an option that does not apply to the chosen back end, if there is one.
std::optional<std::string> misplaced_option(const cli::CommandLine& line, const Options& options) {
  if (options.backend == "cpu" && line.has("--gpu-pci-addr")) {
    return "--gpu-pci-addr is for a GPU: allowed with --backend cuda, graph or auto";
  }
  for (const char* name : {"--warps-per-channel", "--idle-sleep"}) {
    if ((options.backend == "cpu" || options.backend == "graph") && line.has(name)) {
      return fmt::format("{} is for a GPU's persistent kernel: allowed with --backend cuda or auto",
                         name);
    }
  }
  return std::nullopt;
}

}  // namespace

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv) {
  Options options;
  cli::CommandLine line("offload-worker", kDescription, kFooter);
  line.begin_group("Server");
  add_server(line, options);
  line.begin_group("Back end");
  add_backend(line, options);
  line.begin_group("Services");
  add_services(line, options);
  line.begin_group("Requests by UDP");
  add_udp(line, options);
  line.begin_group("Operation");
  telemetry::add_metrics_option(line, options.metrics);
  telemetry::add_admin_option(line, options.admin);
  cli::add_log_options(line, options.log);
  cli::add_configuration(line, options.configuration);
  cli::add_foreign(line, "-d,--device-id",
                   "use --comch rdma:ADDRESS:PORT; routing chooses the device");
  cli::add_foreign(line, "-t,--num-gpu-threads",
                   "use --threads of the server for the number of channels, and "
                   "--warps-per-channel for the share of the GPU that each has");
  cli::add_flag(line, "--list-devices", options.list_devices,
                "Print the devices of this machine and their capabilities, and exit");
  if (auto leave = line.parse(argc, argv)) return *leave;
  const auto& gpus = options.gpu_pci_addresses;
  if (std::set(gpus.begin(), gpus.end()).size() != gpus.size()) {
    return line.refuse(
        "--gpu-pci-addr: a GPU is given twice; at most one worker is allowed on each");
  }
  if (const auto wrong = misplaced_option(line, options)) {
    return line.refuse(fmt::format("{}, not {}", *wrong, options.backend));
  }
  if (const auto wrong = misplaced_by_udp(line, options)) return line.refuse(*wrong);
  if (options.data_path == "gpu" && !options.comch.starts_with("rdma:")) {
    return line.refuse(fmt::format(
        "--data-path gpu needs RDMA: allowed with --comch rdma:HOST:PORT, not {}", options.comch));
  }
  if (options.configuration.print) return cli::Leave{0, cli::configuration_text(line)};
  options.configuration.take(line);
  options.configuration.argument_count = argc;
  options.configuration.arguments = argv;
  return options;
}

}  // namespace offload::worker
