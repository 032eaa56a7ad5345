#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/core/process/rights.hpp"

/// deny_syscall NAME ERRNO PROGRAM [ARGUMENT...]: runs a program for which one system call fails,
/// as the seccomp profiles of containers have it. NAME: one of kCalls; ERRNO: a number.
namespace {

struct Call {
  const char* name;
  unsigned number;
};
constexpr Call kCalls[] = {
    {"epoll_pwait2", SYS_epoll_pwait2},
    {"mbind", SYS_mbind},
    {"pidfd_open", SYS_pidfd_open},
    {"set_mempolicy", SYS_set_mempolicy},
};

const Call* call_of(const char* name) {
  for (const Call& call : kCalls) {
    if (std::strcmp(call.name, name) == 0) return &call;
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const Call* const call = argc < 4 ? nullptr : call_of(argv[1]);
  const int errnum = argc < 4 ? 0 : std::atoi(argv[2]);
  if (call == nullptr || errnum <= 0) {
    std::fputs("usage: deny_syscall NAME ERRNO PROGRAM [ARGUMENT...]\n", stderr);
    return 2;
  }
  if (!offload::core::test::deny_syscall(call->number, static_cast<unsigned>(errnum))) {
    std::perror("deny_syscall: seccomp");
    return 3;
  }
  ::execv(argv[3], argv + 3);
  std::perror("deny_syscall: execv");
  return 3;
}
