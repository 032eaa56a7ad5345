#include <fmt/core.h>

#include "apps/server/options.hpp"
#include "apps/server/server.hpp"
#include "core/exit_status.hpp"
#include "core/log.hpp"
#include "core/signals.hpp"

int main(int argc, char** argv) {
  using namespace offload;
  return core::exit_status_of("offload-server", [&] {
    core::Signals signals(core::Hangup::rereads);
    const auto parsed = server::parse_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    const auto& options = std::get<server::Options>(parsed);
    if (options.configuration.check) {
      server::check_files(options);
      fmt::print("offload-server: the configuration is valid\n");
      return 0;
    }
    cli::start_log("offload-server", options.log);
    core::log_info("configuration: {}", options.configuration.to_string());
    server::Server(options, signals).run();
    return 0;
  });
}
