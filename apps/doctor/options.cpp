#include "apps/doctor/options.hpp"

#include "cli/options.hpp"

namespace offload::doctor {
namespace {

constexpr const char* kDescription =
    "Looks at what this machine has for offload-server and offload-worker, says what it found, "
    "what\n"
    "they would like and what to do. It reads /proc, /sys and /dev, changes nothing, and\n"
    "needs no rights; what only root can read is said to be so. With --pair it ends with a plan: "
    "the\n"
    "commands that bring the two up, in their order.";

constexpr const char* kFooter =
    "\nExit status: 0 nothing worse than a note; 3 a warning: they run, but not as well as they "
    "could;\n"
    "4 an error: what the machine is for cannot work; 1 a failure; 2 a wrong command line.";

}  // namespace

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv) {
  Options options;
  cli::CommandLine line("offload-doctor", kDescription, kFooter);
  std::string role = "any";
  std::string format = "text";
  cli::add_choice(line, "--role", role, {"any", "server", "worker"},
                  "What the machine is for. A GPU is missing only on a worker's");
  cli::add_values(
      line, "--pair",
      [&options](const std::string& text) {
        options.pair.push_back(text);
        return true;
      },
      "",
      "Look at one GPU and one card: the GPU's PCI address, or - for none on this machine, as on a "
      "DPU; the card's RDMA device, network interface or PCI address")
      .type_name("GPU NIC");
  cli::add_choice(line, "--format", format, {"text", "json"}, "What is printed");
  cli::add_text(line, "--root", options.root,
                "Look at the proc, sys and dev in this folder instead, such as a copy of another "
                "machine's")
      .type_name("FOLDER");
  if (auto leave = line.parse(argc, argv)) return *leave;
  if (!options.pair.empty() && options.pair.size() != 2) {
    return line.refuse("--pair: takes a GPU and a network card, such as 18:00.0 mlx5_0");
  }
  if (role == "server") options.role = Role::server;
  if (role == "worker") options.role = Role::worker;
  options.as_json = format == "json";
  return options;
}

}  // namespace offload::doctor
