#include <fmt/core.h>

#include <optional>

#include "apps/doctor/checks/checks.hpp"
#include "apps/doctor/checks/pair.hpp"
#include "apps/doctor/options.hpp"
#include "apps/doctor/report.hpp"
#include "core/exit_status.hpp"

int main(int argc, char** argv) {
  using namespace offload;
  return core::exit_status_of("offload-doctor", [&] {
    const auto parsed = doctor::parse_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    const auto& options = std::get<doctor::Options>(parsed);
    const doctor::Tree tree(options.root);
    std::optional<doctor::Pair> pair;
    if (!options.pair.empty()) pair = find_pair(tree, options.pair[0], options.pair[1]);
    const auto findings = pair ? check_pair(tree, *pair) : check_machine(tree, options.role);
    fmt::print("{}", options.as_json ? doctor::make_json(findings) : doctor::make_text(findings));
    if (pair && !options.as_json) fmt::print("{}", doctor::make_plan(findings, pair->device));
    return doctor::exit_status(doctor::worst_of(findings));
  });
}
