#include "apps/rdma_tasks/bring_up/bring_up_options.hpp"

#include "apps/rdma_tasks/device/launcher.hpp"
#include "cli/options.hpp"
#include "core/error.hpp"
#include "rdma/verbs/gid.hpp"

namespace offload::rdma_tool {
namespace {

constexpr const char* kBringUpDescription =
    "Checks an RDMA device on its first day, in loopback: a queue pair of the\n"
    "device is connected to another one of the same process. Each step prints what\n"
    "it found and, if it failed, what to do: device, port, path, memory, queue\n"
    "pairs, operations that the CPU posts, their order, and operations that a GPU\n"
    "or a thread posts to rings of the card and of an emulator, with rates.";

constexpr const char* kBringUpFooter =
    "\n"
    "Exit status: 0 everything that the default data path of offload-worker needs\n"
    "works; 1 it does not; 2 an invalid command line; 130 stopped by SIGINT or\n"
    "SIGTERM.\n\n"
    "Examples:\n"
    "  offload-rdma bring-up\n"
    "  offload-rdma bring-up --device mlx5_0 --gpu gpu:1";

constexpr core::Duration kShortestTime = std::chrono::milliseconds(1);

}  // namespace

std::variant<BringUpOptions, cli::Leave> parse_bring_up_options(int argc, const char* const* argv) {
  BringUpOptions options;
  options.run.initiator = Initiator::gpu;
  options.run.timeout = core::seconds(5);
  options.run.log.level = "error";
  cli::CommandLine line("offload-rdma bring-up", kBringUpDescription, kBringUpFooter);
  cli::add_text(line, "--rdma-device,--device DEVICE", options.run.path.device,
                "Check this RDMA device: a name, rdma:INDEX or a PCI address. Default: first")
      .default_str("");
  cli::add_text(line, "--gpu GPU", options.run.gpu,
                "Use this GPU: gpu:INDEX or a PCI address; none: CPU threads. Default: the first "
                "GPU, or CPU threads if there is none");
  cli::add_text(line, "--gid ADDRESS", options.run.gid,
                "Use this address of the device. Default: an IPv4 one of RoCE v2, else IPv6");
  rdma::add_path_options(line, options.run.path);
  cli::add_time(line, "--rate-time", options.rate_time, kShortestTime,
                "Measure each rate for this time");
  cli::add_time(line, "--timeout", options.run.timeout, kShortestTime,
                "Report an error if a step waits for longer than this");
  cli::add_log_options(line, options.run.log);
  if (auto leave = line.parse(argc, argv)) return *leave;
  try {
    if (!options.run.gid.empty()) static_cast<void>(rdma::parse_gid(options.run.gid));
  } catch (const core::Error& error) {
    return line.refuse(std::string("--gid: ") + error.what());
  }
  return options;
}

}  // namespace offload::rdma_tool
