#include "apps/doctor/options.hpp"

#include "cli/options.hpp"

namespace offload::doctor {
namespace {

constexpr const char* kDescription =
    "Checks whether this machine is ready for offload-server and offload-worker: prints what it\n"
    "found, what they need, and how to fix it. It reads /proc, /sys and /dev, changes nothing,\n"
    "and needs no privileges; it says what only root can read. With --pair it ends with a plan:\n"
    "the commands that set up the two devices, in order.";

constexpr const char* kFooter =
    "\nExit status: 0 at most notes; 3 a warning: the programs run, but slower than they could; 4\n"
    "an error: the role of this machine cannot work; 1 a failure; 2 an invalid command line.";

}  // namespace

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv) {
  Options options;
  cli::CommandLine line("offload-doctor", kDescription, kFooter);
  std::string role = "any";
  std::string format = "text";
  cli::add_choice(line, "--role", role, {"any", "server", "worker"},
                  "Check for this role of the machine. Only a worker needs a GPU");
  cli::add_values(
      line, "--pair",
      [&options](const std::string& text) {
        options.pair.push_back(text);
        return true;
      },
      "",
      "Check one GPU and one card: the PCI address of the GPU, or - for none on this machine, as "
      "on a DPU; and the RDMA device, network interface or PCI address of the card")
      .type_name("GPU NIC");
  cli::add_choice(line, "--format", format, {"text", "json"}, "Print the findings in this format");
  cli::add_text(
      line, "--root", options.root,
      "Read proc, sys and dev in this folder instead, for example a copy from another machine")
      .type_name("FOLDER");
  if (auto leave = line.parse(argc, argv)) return *leave;
  if (!options.pair.empty() && options.pair.size() != 2) {
    return line.refuse("--pair needs a GPU and a network card, such as 18:00.0 mlx5_0");
  }
  if (role == "server") options.role = MachineRole::server;
  if (role == "worker") options.role = MachineRole::worker;
  options.as_json = format == "json";
  return options;
}

}  // namespace offload::doctor
