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
    "Offload worker (GPU host): attaches to the server's --comch and processes the requests that\n"
    "come over its channels, on a GPU in a persistent kernel or on CPU threads.";

constexpr const char* kFooter =
    "\nBYTES may end in k, m or g (binary multiples), SECONDS in us, ms, s, m or h.\n"
    "SIGINT or SIGTERM: asks the server to let the worker go, serves until then, leaves; a second\n"
    "one leaves at once. The server and other workers stay. When the server is gone, the worker\n"
    "waits for the next one, for --connect-timeout. SIGHUP: rereads --config and\n"
    "--comch-key-file, which the next attachment takes.\n"
    "Exit status: 0 after a signal, or once the server has let the worker go; 1 an error; 2 a "
    "wrong\n"
    "command line; 3 a back end that hangs, as when a GPU answers no more. Of several GPUs the\n"
    "worst counts, and the others are served until the end.\n\n"
    "Example, a rolling upgrade: start the new worker with --replace; the old one leaves.";

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
  cli::add_choice(
      line, "--backend", options.backend, {"auto", "cuda", "graph", "cpu"},
      "What processes the requests: a persistent kernel (cuda), a GPU with copies and "
      "a launch for each batch, to compare with (graph), threads (cpu), or cuda if there "
      "is a GPU and else cpu (auto)");
  const auto take_address = [&options](const std::string& text) {
    if (!device::is_pci_address(text)) return false;
    options.gpu_pci_addresses.push_back(text);
    return true;
  };
  cli::add_values(line, "-g,--gpu-pci-addr", take_address, "a PCI address, such as 0000:01:00.0",
                  "The GPU. May be repeated: each GPU attaches as a worker of its own. Default: "
                  "the first")
      .type_name("ADDRESS");
  cli::add(line, "--warps-per-channel", options.warps_per_channel, read_warps,
           fmt::format("a multiple of {} up to {}", kernels::kWarpsPerBlock, kMostWarps),
           "cuda: messages of a channel that are worked on at once")
      .type_name("COUNT")
      .default_str(fmt::format("{}, or {} for messages over {} bytes",
                               backend::CudaOptions::kWarpsForShort,
                               backend::CudaOptions::kWarpsForLong, kernels::kMaxPacketPayload));
  cli::add(line, "--idle-sleep", options.idle_sleep, read_idle_sleep,
           "a time from 0 to 1ms, such as 20us",
           "cuda: pause between two looks at a channel that has been quiet for some milliseconds; "
           "adds as much to the first request after. 0: none")
      .type_name("SECONDS")
      .default_str("20us");
  cli::add_choice(line, "--data-path", options.data_path, {"auto", "gpu", "cpu"},
                  "Over rdma, what posts responses: the back end itself, as RDMA writes into the "
                  "server's slots (gpu; cuda and cpu have it, the latter's threads run the "
                  "device's functions), or a thread of this program that sends them (cpu). auto: "
                  "gpu with cuda, else cpu; the log says which, and why");
  cli::add_time(line, "--spin", options.spin, core::Duration{},
                "cpu, graph: how long a thread polls after a request before it sleeps")
      .default_str("20us");
}

void add_services(cli::CommandLine& line, Options& options) {
  const auto take_module = [&options](const std::string& text) {
    options.service_modules.push_back(text);
    return !text.empty();
  };
  cli::add_values(line, "--service-module", take_module, "a shared library with a service",
                  "A service of your own (docs/reference/services.md), beside those that are built "
                  "in. May be repeated")
      .type_name("FILE");
  const auto take_source = [&options](const std::string& text) {
    options.service_sources.push_back(text);
    return text.ends_with(".cu") || text.ends_with(".cpp");
  };
  cli::add_values(line, "--service-source", take_source, "a file whose name ends in .cu or .cpp",
                  "A service to try: its source is compiled now, by the nvcc or C++ compiler of "
                  "this machine, as this user (docs/reference/services.md). May be repeated")
      .type_name("FILE");
  const auto take_option = [&options](const std::string& text) {
    return backend::add_service_option(options.service_options, text);
  };
  cli::add_values(line, "--service-option", take_option, "KEY=VALUE or SERVICE.KEY=VALUE",
                  "What the services of modules are made from; SERVICE. where only one of several "
                  "is to get it. May be repeated")
      .type_name("KEY=VALUE");
}

void add_server(cli::CommandLine& line, Options& options) {
  comch::add_address_options(line, options.comch, options.comch_security, "Where the server is");
  comch::add_path_options(line, options.comch_path);
  cli::add_time(line, "--connect-timeout", options.connect_timeout, core::Duration{},
                "How long to keep trying to reach the server")
      .default_str("60");
  cli::add_time(line, "--shutdown-timeout", options.shutdown_timeout, core::Duration{},
                "How long the server may take to let this worker go after a signal")
      .default_str("10");
  const auto stands_by =
      cli::add_flag(line, "--stand-by", options.stands_by,
                    "Attach as a hot stand-by: serve only while no other worker can");
  cli::add_flag(line, "--replace", options.replaces,
                "Take the place of the worker that has been attached for the longest, which the "
                "server then lets go")
      .excludes(stands_by);
  cli::add_flag(line, "--shutdown-together", options.shutdown_together,
                "A signal to the worker ends the server too, and the server's end the worker");
  cli::add(line, "--max-memory", options.max_memory, read_memory,
           "a size of at least 1 byte, such as 512m or 64g",
           "What the server's channels may take of this machine, of all GPUs together")
      .type_name("BYTES")
      .default_str("8g");
  cli::add_time(line, "--stuck-after", options.stuck_after, std::chrono::milliseconds(1),
                "A request unanswered for so long is reported with its channel and slot")
      .default_str("2");
}

/// The most queues that a rule chooses from (OFFLOAD_MOST_QUEUES of packet/program/steering.h).
constexpr std::uint32_t kMostUdpQueues = 16;

void add_udp(cli::CommandLine& line, Options& options) {
  options.udp_service = kernels::service_names().front();
  const auto udp =
      cli::add(line, "--udp", options.udp, &DatagramPlace::parse,
               "ADDRESS:PORT or INTERFACE:PORT, such as 10.0.0.1:4000, [fd00::1]:4000 or eth1:4000",
               "Take requests as UDP datagrams there, by AF_XDP, and answer them without a server "
               "(docs/reference/packets.md). Needs CAP_NET_RAW, CAP_BPF and CAP_NET_ADMIN")
          .type_name("PLACE:PORT");
  cli::add_text(line, "--udp-service", options.udp_service,
                "What is done with them, as --service of the server")
      .type_name("NAME")
      .default_str(options.udp_service)
      .needs(udp);
  cli::add_integer<std::uint32_t>(
      line, "--udp-queues", options.udp_queues, 1, kMostUdpQueues,
      "Queues of each of the interface's, a warp or a thread each, that "
      "clients are spread over by their addresses and ports")
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
  if (options.gpu_pci_addresses.size() > 1) return "--udp takes one --gpu-pci-addr";
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
  add_server(line, options);
  add_backend(line, options);
  add_services(line, options);
  add_udp(line, options);
  telemetry::add_metrics_option(line, options.metrics);
  telemetry::add_admin_option(line, options.admin);
  cli::add_log_options(line, options.log);
  cli::add_configuration(line, options.configuration);
  cli::add_foreign(line, "-d,--device-id",
                   "here --comch rdma:ADDRESS:PORT names the server, and routing the device");
  cli::add_foreign(line, "-t,--num-gpu-threads",
                   "here the server's --threads says how many channels there are, and "
                   "--warps-per-channel how much of the GPU each has");
  cli::add_flag(line, "--list-devices", options.list_devices,
                "Print the devices of this machine with what each can do, and leave");
  if (auto leave = line.parse(argc, argv)) return *leave;
  const auto& gpus = options.gpu_pci_addresses;
  if (std::set(gpus.begin(), gpus.end()).size() != gpus.size()) {
    return cli::Leave{cli::kUsageError,
                      "offload-worker: --gpu-pci-addr: a GPU is named twice; allowed is one worker "
                      "on each (--help lists what is allowed)"};
  }
  if (const auto wrong = misplaced_option(line, options)) {
    return cli::Leave{cli::kUsageError, fmt::format("offload-worker: {}, not {} (--help lists what "
                                                    "is allowed)",
                                                    *wrong, options.backend)};
  }
  if (const auto wrong = misplaced_by_udp(line, options)) return line.refuse(*wrong);
  if (options.data_path == "gpu" && !options.comch.starts_with("rdma:")) {
    return cli::Leave{cli::kUsageError,
                      fmt::format("offload-worker: --data-path gpu goes over RDMA: "
                                  "allowed with --comch rdma:HOST:PORT, not {} "
                                  "(--help lists what is allowed)",
                                  options.comch)};
  }
  if (options.configuration.print) return cli::Leave{0, cli::configuration_text(line)};
  options.configuration.take(line);
  options.configuration.argument_count = argc;
  options.configuration.arguments = argv;
  return options;
}

}  // namespace offload::worker
