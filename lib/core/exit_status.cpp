#include "core/exit_status.hpp"

#include <fmt/core.h>
#include <stdio_ext.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <system_error>

#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::core {
namespace {

constexpr const char* kCannotWrite = "cannot write standard output";

/// KiB. A thread gets a stack of the size that the limit has when the program starts; frames of a
/// load or a GPU's driver take some 100 KiB.
constexpr rlim_t kLeastStack = 256;

void require_stack() {
  rlimit limit{};
  check_errno(::getrlimit(RLIMIT_STACK, &limit), "getrlimit");
  if (limit.rlim_cur >= kLeastStack * 1024) return;
  throw Error(ErrorCode::no_memory,
              fmt::format("the stack limit of {} KiB (ulimit -s) is too low: {} KiB is the least",
                          limit.rlim_cur / 1024, kLeastStack));
}

/// Throws Error if not all that was printed could be written.
void close_standard_output() {
  const bool had_failed = std::ferror(stdout) != 0;
  const bool has_pending = ::__fpending(stdout) != 0;
  errno = 0;
  const bool fails = std::fclose(stdout) != 0;
  // A standard output that was closed from the start is no fault of a program that prints nothing.
  if (!had_failed && (!fails || (errno == EBADF && !has_pending))) return;
  if (errno != 0) throw_errno(kCannotWrite);
  throw Error(ErrorCode::io_failed, kCannotWrite);
}

}  // namespace

int exit_status_of(const std::string& program, const std::function<int()>& run) noexcept {
  try {
    require_stack();
    const int status = run();
    close_standard_output();
    return status;
  } catch (const std::system_error& error) {
    // fmt::print() throws it, and does not say for which file.
    const bool is_output = std::ferror(stdout) != 0;
    print_error(program, is_output ? fmt::format("{}: {}", kCannotWrite, error.code().message())
                                   : std::string(error.what()));
  } catch (const std::exception& error) {
    print_error(program, error.what());
  }
  return 1;
}

}  // namespace offload::core
