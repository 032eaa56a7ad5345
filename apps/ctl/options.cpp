#include "apps/ctl/options.hpp"

#include <array>
#include <deque>

#include "cli/options.hpp"

namespace offload::ctl {
namespace {

constexpr const char* kDescription =
    "Gives commands to an offload-server or offload-worker that runs with --admin, and shows what\n"
    "it tells of itself. The same user or root may.";

constexpr const char* kFooter =
    "\nExit status: 0 it is done, or so; 1 it is refused, not so, or nobody answers; 2 a wrong "
    "command\nline.\n\n"
    "Example:\n"
    "  offload-ctl --admin unix:/run/dpu-gpu-offload/server.admin log-level info,comch=debug";

struct Known {
  const char* name;
  const char* path;      ///< what is asked for
  const char* argument;  ///< its name in the help; empty: it takes none
  bool changes;
  const char* description;
};

constexpr std::array<Known, 10> kCommands{{
    {"status", "status", "", false, "What it is doing, as JSON"},
    {"metrics", "metrics", "", false, "Its metrics, in Prometheus' format"},
    {"trace", "trace", "", false, "The last sampled requests, as a Chrome trace"},
    {"health", "healthz", "", false, "Whether its control thread turns"},
    {"ready", "readyz", "", false, "Whether it can do its work now"},
    {"log-level", "log-level", "LEVEL", true, "What the log reports from now on"},
    {"reload", "reload", "", true, "As SIGHUP: reread configuration, keys and certificates"},
    {"drain", "drain", "", true, "Server: be not ready, for balancers, and serve on"},
    {"undrain", "undrain", "", true, "Server: the end of it"},
    {"detach", "detach", "WORKER", true,
     "Server: let this worker go, by the number that status gives; a worker: leave"},
}};

}  // namespace

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv) {
  Options options;
  cli::CommandLine line("offload-ctl", kDescription, kFooter);
  const auto read = [](const std::string& text) -> std::optional<std::string> {
    constexpr std::string_view kScheme = "unix:";
    if (!text.starts_with(kScheme) || text.size() == kScheme.size()) return std::nullopt;
    return text.substr(kScheme.size());
  };
  cli::add(line, "--admin", options.socket, read, "unix:PATH", "Where the program takes commands")
      .type_name("unix:PATH")
      .required();
  std::deque<std::pair<const Known*, cli::CommandLine*>> commands;
  for (const Known& known : kCommands) {
    cli::CommandLine& command = line.add_command(known.name, known.description);
    if (*known.argument != '\0') {
      const auto argument =
          cli::add_text(command, known.argument, options.argument, known.description);
      if (known.path != std::string_view("detach")) argument.required();
    }
    commands.emplace_back(&known, &command);
  }
  if (auto leave = line.parse(argc, argv)) return *leave;
  for (const auto& [known, command] : commands) {
    if (!command->said()) continue;
    options.command = known->path;
    options.changes = known->changes;
  }
  return options;
}

}  // namespace offload::ctl
