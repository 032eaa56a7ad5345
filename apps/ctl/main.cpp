#include <fmt/core.h>

#include <cstdio>
#include <exception>

#include "apps/ctl/options.hpp"
#include "core/escape.hpp"
#include "core/exit_status.hpp"
#include "core/log.hpp"
#include "core/process/out_of_memory.hpp"
#include "net/http_client.hpp"

namespace {

/// More than what the program gives its control thread.
constexpr offload::core::Duration kLimit = offload::core::seconds(10);

int run(const offload::ctl::Options& options) {
  using namespace offload;
  try {
    const auto answer = net::ask(
        {"http://offload/" + options.command, options.socket, options.argument, options.changes},
        kLimit);
    const bool good = answer.status == 200;
    std::fputs(core::printable(answer.body).c_str(), good ? stdout : stderr);
    return good ? 0 : 1;
  } catch (const std::exception& error) {
    core::print_error("offload-ctl",
                      fmt::format("unix:{}: {}", options.socket, core::what_of(error)));
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace offload;
  return core::exit_status_of("offload-ctl", [&] {
    const auto parsed = ctl::parse_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    return run(std::get<ctl::Options>(parsed));
  });
}
