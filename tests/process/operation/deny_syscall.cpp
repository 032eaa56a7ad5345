#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

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

/// Denies the call for this process and the program that it executes: seccomp(2).
bool deny(unsigned number, unsigned errnum) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (errnum & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Call* const call = argc < 4 ? nullptr : call_of(argv[1]);
  const int errnum = argc < 4 ? 0 : std::atoi(argv[2]);
  if (call == nullptr || errnum <= 0) {
    std::fputs("usage: deny_syscall NAME ERRNO PROGRAM [ARGUMENT...]\n", stderr);
    return 2;
  }
  if (!deny(call->number, static_cast<unsigned>(errnum))) {
    std::perror("deny_syscall: seccomp");
    return 3;
  }
  ::execv(argv[3], argv + 3);
  std::perror("deny_syscall: execv");
  return 3;
}
