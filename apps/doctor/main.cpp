#include <fmt/core.h>

#include "apps/doctor/checks/checks.hpp"
#include "apps/doctor/options.hpp"
#include "apps/doctor/report.hpp"
#include "core/exit_status.hpp"

int main(int argc, char** argv) {
  using namespace offload;
  return core::exit_status_of("offload-doctor", [&] {
    const auto parsed = doctor::parse_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    const auto& options = std::get<doctor::Options>(parsed);
    const auto findings = doctor::check_machine(doctor::Tree(options.root), options.role);
    fmt::print("{}", options.as_json ? doctor::make_json(findings) : doctor::make_text(findings));
    return doctor::exit_status(doctor::worst_of(findings));
  });
}
