#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "apps/ctl/options.hpp"
#include "core/error.hpp"
#include "core/escape.hpp"
#include "core/exit_status.hpp"
#include "core/log.hpp"
#include "core/process/out_of_memory.hpp"
#include "net/http_client.hpp"

namespace {

/// More than what the program gives its control thread.
constexpr offload::core::Duration kLimit = offload::core::seconds(10);

/// Explains an error of connecting to the socket of --admin.
std::string_view meaning_of(int errnum) {
  switch (errnum) {
    case ENOENT:
    case ENOTDIR:
      return "there is no such socket: the program does not run, or runs with another --admin";
    case ECONNREFUSED:
      return "no program listens there any more: the program that made the socket was killed";
    case EACCES:
    case EPERM: return "permission denied: only the user of the program and root may give commands";
    case EAGAIN: return "too many commands wait for the program";
    default: return {};
  }
}

/// Returns whether this program did it.
bool ask(const offload::ctl::Options& options, const std::string& socket) {
  using namespace offload;
  try {
    const auto answer = net::ask(
        {"http://offload/" + options.command, socket, options.argument, options.changes}, kLimit);
    const bool good = answer.status == 200;
    std::fputs(core::printable(answer.body).c_str(), good ? stdout : stderr);
    return good;
  } catch (const core::Error& error) {
    const std::string_view meaning = meaning_of(error.system_errno());
    core::print_error("offload-ctl",
                      fmt::format("unix:{}: {}", socket, meaning.empty() ? error.what() : meaning));
    return false;
  } catch (const std::exception& error) {
    core::print_error("offload-ctl", fmt::format("unix:{}: {}", socket, core::what_of(error)));
    return false;
  }
}

/// Asks one program after the other, also after one that failed; returns the exit status.
int run(const offload::ctl::Options& options) {
  bool good = true;
  for (const std::string& socket : options.sockets) {
    if (options.sockets.size() > 1) {
      std::fputs(fmt::format("unix:{}:\n", socket).c_str(), stdout);
      std::fflush(stdout);  // a refusal goes to standard error, after it
    }
    good = ask(options, socket) && good;
    std::fflush(stdout);
    offload::core::flush_log();
  }
  return good ? 0 : 1;
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
