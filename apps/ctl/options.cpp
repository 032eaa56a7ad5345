#include "apps/ctl/options.hpp"

#include <fmt/core.h>

#include <array>
#include <deque>
#include <vector>

#include "apps/ctl/service_socket.hpp"
#include "cli/options.hpp"

namespace offload::ctl {
namespace {

constexpr const char* kDescription =
    "Sends a command to an offload-server or offload-worker that runs with --admin, and prints\n"
    "its reply. Only the user of that program and root may do so. Without --admin, --instance and\n"
    "--all it goes to the only server, or with --worker the only worker, that systemd runs here.\n"
    "With several programs, a line with the socket precedes each reply.";

constexpr const char* kFooter =
    "\nExit status: 0 success, or the condition holds; 1 refused, the condition does not hold, or\n"
    "no reply, for at least one program; 2 an invalid command line.\n\n"
    "Examples:\n"
    "  offload-ctl status\n"
    "  offload-ctl drain --instance one\n"
    "  offload-ctl ready --all\n"
    "  offload-ctl --admin unix:/tmp/server.admin log-level info,comch=debug";

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

/// Appends the sockets of these instances, of all or, without either, of the only one; returns what
/// is wrong, empty if nothing.
std::string find_sockets(const std::string& run, ServiceKind kind, std::vector<std::string> names,
                         bool all, std::vector<std::string>& sockets) {
  const bool found = names.empty();
  if (found) names = instances_in(run, kind);
  if (!found || names.size() == 1 || (all && !names.empty())) {
    for (const std::string& name : names) sockets.push_back(service_socket(run, kind, name));
    return {};
  }
  const std::string_view what = kind == ServiceKind::server ? "server" : "worker";
  if (names.size() > 1) {
    return fmt::format("several {}s run here: {}; choose with --instance, or --all", what,
                       cli::listed(names));
  }
  return fmt::format(
      "systemd runs no {} here (there is no {}): name the program's --admin, as in --admin "
      "unix:PATH",
      what, service_socket(run, kind, "*"));
}

}  // namespace

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv,
                                                const std::string& run) {
  Options options;
  cli::CommandLine line("offload-ctl", kDescription, kFooter);
  const auto read = [](const std::string& text) -> std::optional<std::string> {
    constexpr std::string_view kScheme = "unix:";
    if (!text.starts_with(kScheme) || text.size() == kScheme.size()) return std::nullopt;
    return text.substr(kScheme.size());
  };
  const auto admin =
      cli::add_each(line, "--admin unix:PATH", options.sockets, read,
                    "unix:PATH, the socket of a program's --admin on this machine",
                    "Send the command to this socket: --admin of the program. May be repeated")
          .one_each();
  std::vector<std::string> instances;
  const auto read_instance = [](const std::string& text) -> std::optional<std::string> {
    if (text.empty() || text.find('/') != std::string::npos) return std::nullopt;
    return text;
  };
  const auto instance =
      cli::add_each(line, "-i,--instance INSTANCE", instances, read_instance,
                    "the name of an instance, such as one of offload-server@one",
                    "Send the command to this instance of offload-server@.service. May be repeated")
          .one_each()
          .excludes(admin);
  bool all = false;
  cli::add_flag(line, "-a,--all", all, "Send the command to all instances that run here")
      .excludes(admin)
      .excludes(instance);
  bool to_worker = false;
  cli::add_flag(line, "-w,--worker", to_worker,
                "Send the command to instances of offload-worker@.service instead")
      .excludes(admin);
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
  if (options.sockets.empty()) {
    const ServiceKind kind = to_worker ? ServiceKind::worker : ServiceKind::server;
    const std::string wrong = find_sockets(run, kind, instances, all, options.sockets);
    if (!wrong.empty()) return line.refuse(wrong);
  }
  return options;
}

}  // namespace offload::ctl
