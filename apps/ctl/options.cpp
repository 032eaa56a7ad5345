#include "apps/ctl/options.hpp"

#include <array>
#include <deque>

#include "cli/options.hpp"

namespace offload::ctl {
namespace {

constexpr const char* kDescription =
    "Sends a command to an offload-server or offload-worker that runs with --admin, and prints\n"
    "its reply. Only the user of that program and root may do so.";

constexpr const char* kFooter =
    "\nExit status: 0 success, or the condition holds; 1 refused, the condition does not hold, or\n"
    "no reply; 2 an invalid command line.\n\n"
    "Example:\n"
    "  offload-ctl --admin unix:/run/dpu-gpu-offload/server.admin log-level info,comch=debug";

struct KnownCommand {
  const char* name;
  const char* path;      ///< what is asked for
  const char* argument;  ///< its name in the help; empty: it takes none
  bool changes;
  const char* description;
};

constexpr std::array<KnownCommand, 10> kCommands{{
    {"status", "status", "", false, "Print the status as JSON"},
    {"metrics", "metrics", "", false, "Print the metrics in the format of Prometheus"},
    {"trace", "trace", "", false, "Print the last sampled requests as a Chrome trace"},
    {"health", "healthz", "", false, "Check that the control thread is running"},
    {"ready", "readyz", "", false, "Check that the program can process requests now"},
    {"log-level", "log-level", "LEVEL", true, "Set the log level"},
    {"reload", "reload", "", true, "Reread configuration, keys and certificates, like SIGHUP"},
    {"drain", "drain", "", true, "Server: report not-ready to load balancers, but keep serving"},
    {"undrain", "undrain", "", true, "Server: cancel drain"},
    {"detach", "detach", "WORKER", true,
     "Server: detach this worker, by its number in status; worker: detach and exit"},
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
  cli::add(line, "--admin unix:PATH", options.socket, read, "unix:PATH",
           "Send the command to this socket")
      .required();
  std::deque<std::pair<const KnownCommand*, cli::CommandLine*>> commands;
  for (const KnownCommand& known : kCommands) {
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
