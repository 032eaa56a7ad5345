#include "apps/report/commands.hpp"
#include "apps/report/options.hpp"
#include "core/exit_status.hpp"

int main(int argc, char** argv) {
  using namespace offload;
  return core::exit_status_of("offload-report", [&] {
    const auto parsed = report::parse_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    return std::visit([](const auto& options) { return report::run(options); },
                      std::get<report::Options>(parsed));
  });
}
