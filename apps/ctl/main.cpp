#include <cstdio>
#include <exception>

#include "apps/ctl/client.hpp"
#include "apps/ctl/options.hpp"
#include "core/log.hpp"

int main(int argc, char** argv) {
  using namespace offload;
  try {
    const auto parsed = ctl::parse_options(argc, argv);
    if (const auto* leave = std::get_if<cli::Leave>(&parsed)) return cli::leave(*leave);
    const ctl::Answer answer = ctl::ask(std::get<ctl::Options>(parsed));
    std::fputs(answer.body.c_str(), answer.good ? stdout : stderr);
    return answer.good ? 0 : 1;
  } catch (const std::exception& error) {
    core::print_error("offload-ctl", error.what());
    return 1;
  }
}
