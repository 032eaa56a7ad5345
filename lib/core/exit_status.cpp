#include "core/exit_status.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/process/out_of_memory.hpp"

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
              fmt::format("the stack limit of {} KiB (ulimit -s) is too low: {} KiB are needed",
                          limit.rlim_cur / 1024, kLeastStack));
}

/// Opens /dev/null for those of the descriptors 0 to 2 that are closed: otherwise the next file or
/// socket would get such a number, and output would go there. The access modes are the wrong ones,
/// so that reading and writing fail with EBADF, as on a closed descriptor.
void occupy_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    check_errno(::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY),
                "cannot open /dev/null instead of a closed standard descriptor");
  }
}

/// Throws Error if not all that was printed could be written.
void close_standard_output() {
  const bool had_failed = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fclose(stdout) == 0 && !had_failed) return;
  if (errno != 0) throw_errno(kCannotWrite);
  throw Error(ErrorCode::io_failed, kCannotWrite);
}

/// fmt::print() throws the error without the file's name.
void print_system_error(const std::string& program, const std::system_error& error) noexcept {
  if (std::ferror(stdout) == 0) return print_error(program, what_of(error));
  try {
    print_error(program, fmt::format("{}: {}", kCannotWrite, describe_errno(error.code().value())));
  } catch (const std::exception&) {
    print_error(program, kCannotWrite);
  }
}

}  // namespace

int exit_status_of(const std::string& program, const std::function<int()>& run) noexcept {
  if (!has_memory_for_errors()) {
    print_without_memory(program, what_of(std::bad_alloc()));
    return 1;
  }
  try {
    occupy_standard_descriptors();
    // A write beyond RLIMIT_FSIZE fails with EFBIG, which is reported, and does not end the
    // process.
    std::signal(SIGXFSZ, SIG_IGN);
    require_stack();
    const int status = run();
    close_standard_output();
    return status;
  } catch (const std::system_error& error) {
    print_system_error(program, error);
  } catch (const std::exception& error) {
    print_error(program, what_of(error));
  }
  return 1;
}

}  // namespace offload::core
