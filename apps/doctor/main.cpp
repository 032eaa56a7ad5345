#include <fmt/core.h>
#include <sys/timex.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "apps/doctor/checks/checks.hpp"
#include "apps/doctor/checks/pair.hpp"
#include "apps/doctor/finding.hpp"
#include "apps/doctor/report.hpp"
#include "cli/options.hpp"
#include "core/exit_status.hpp"

namespace offload::doctor {
namespace {

/// The command line, checked.
struct Options {
  MachineRole role = MachineRole::any;
  bool as_json = false;
  std::vector<std::string> pair;  ///< a GPU and a card; empty: the machine as a whole
  std::string root;               ///< of the files that are read; empty: this machine's
};

constexpr const char* kDescription =
    "Checks whether this machine is ready for offload-server and offload-worker: prints what it\n"
    "found, what they need, and how to fix it. It reads /proc, /sys and /dev and the\n"
    "units of systemd, measures for half a second what else uses the processors, changes nothing,\n"
    "and needs no privileges; it says what only root can read. With --pair it ends with a plan:\n"
    "the commands that set up the two devices, in order.";

constexpr const char* kFooter =
    "\nExit status: 0 at most notes; 3 a warning: the programs run, but slower than they could; 4\n"
    "an error: the role of this machine cannot work; 1 a failure; 2 an invalid command line.\n\n"
    "Example:\n"
    "  offload-doctor --role worker";

/// Returns what systemd says of the units of the suite; nothing if it does not run, or not within
/// the time.
std::string units_of_systemd() {
  if (::access("/run/systemd/system", F_OK) != 0) return {};
  constexpr const char* kCommand =
      "timeout 5 systemctl show --property=Id,MainPID,LimitNOFILE,LimitMEMLOCK,TasksMax,MemoryMax "
      "'offload-server@*.service' 'offload-worker@*.service' 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(kCommand, "re"), &::pclose);
  std::string text;
  std::array<char, 4096> piece;
  while (pipe && std::fgets(piece.data(), static_cast<int>(piece.size()), pipe.get()) != nullptr) {
    text += piece.data();
  }
  return text;
}

/// Returns what no file of this machine has.
Live look_at_this_machine() {
  Live live;
  live.wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(500)); };
  timex clock{};
  if (::adjtimex(&clock) >= 0) live.clock = clock;
  live.units = units_of_systemd();
  return live;
}

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv) {
  Options options;
  cli::CommandLine line("offload-doctor", kDescription, kFooter);
  std::string role = "any";
  std::string format = "text";
  cli::add_choice(line, "--role", role, {"any", "server", "worker"},
                  "Check for this role of the machine. Only a worker needs a GPU");
  cli::add_values(
      line, "--pair GPU NIC",
      [&options](const std::string& text) {
        options.pair.push_back(text);
        return true;
      },
      "",
      "Check one GPU and one card: the PCI address of the GPU, or - for none on this machine, as "
      "on a DPU; and the RDMA device, network interface or PCI address of the card");
  cli::add_choice(line, "--format", format, {"text", "json"}, "Print the findings in this format");
  cli::add_text(
      line, "--root FOLDER", options.root,
      "Read proc, sys and dev in this folder instead, for example a copy from another machine");
  if (auto leave = line.parse(argc, argv)) return *leave;
  if (!options.pair.empty() && options.pair.size() != 2) {
    return line.refuse("--pair needs a GPU and a network card, such as 18:00.0 mlx5_0");
  }
  if (!options.root.empty() && ::access(options.root.c_str(), F_OK) != 0) {
    return line.refuse(
        fmt::format("--root: there is no folder '{}'; copy proc, sys and dev of the machine there",
                    options.root));
  }
  if (role == "server") options.role = MachineRole::server;
  if (role == "worker") options.role = MachineRole::worker;
  options.as_json = format == "json";
  return options;
}

}  // namespace
}  // namespace offload::doctor

int main(int argc, char** argv) {
  using namespace offload;
  return core::exit_status_of("offload-doctor", [&] {
    const auto parsed = doctor::parse_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    const auto& options = std::get<doctor::Options>(parsed);
    const doctor::Tree tree(options.root);
    std::optional<doctor::Pair> pair;
    if (!options.pair.empty()) pair = find_pair(tree, options.pair[0], options.pair[1]);
    const auto live =
        pair || !options.root.empty() ? doctor::Live{} : doctor::look_at_this_machine();
    const auto findings = pair ? check_pair(tree, *pair) : check_machine(tree, options.role, live);
    fmt::print("{}", options.as_json ? doctor::make_json(findings) : doctor::make_text(findings));
    if (pair && !options.as_json) fmt::print("{}", doctor::make_plan(findings, pair->device));
    return doctor::exit_status(doctor::worst_of(findings));
  });
}
