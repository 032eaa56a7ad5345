#include <fmt/core.h>

#include <cstdio>
#include <exception>

#include "apps/ctl/options.hpp"
#include "core/log.hpp"
#include "net/http_client.hpp"

namespace {

/// More than what the program gives its control thread.
constexpr offload::core::Duration kLimit = offload::core::seconds(10);

}  // namespace

int main(int argc, char** argv) {
  using namespace offload;
  std::string door;
  try {
    const auto parsed = ctl::parse_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    const auto& options = std::get<ctl::Options>(parsed);
    door = "unix:" + options.socket;
    const auto answer = net::ask(
        {"http://offload/" + options.command, options.socket, options.argument, options.changes},
        kLimit);
    const bool good = answer.status == 200;
    std::fputs(answer.body.c_str(), good ? stdout : stderr);
    return good ? 0 : 1;
  } catch (const std::exception& error) {
    core::print_error("offload-ctl", fmt::format("{}: {}", door, error.what()));
    return 1;
  }
}
