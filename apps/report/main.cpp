#include <fmt/core.h>

#include <cstdio>
#include <exception>

#include "apps/report/commands.hpp"
#include "apps/report/options.hpp"
#include "core/log.hpp"

int main(int argc, char** argv) {
  using namespace offload;
  try {
    const auto parsed = report::parse_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    return std::visit([](const auto& options) { return report::run(options); },
                      std::get<report::Options>(parsed));
  } catch (const std::exception& error) {
    core::print_error("offload-report", error.what());
    return 1;
  }
}
