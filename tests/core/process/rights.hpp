#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstddef>
#include <iterator>

#include "core/error.hpp"

namespace offload::core::test {

/// Makes the system call `number` fail with `errnum` in this thread and what it starts or executes
/// from now on, as the seccomp profiles of containers do: seccomp(2). Returns whether it can.
inline bool deny_syscall(unsigned number, unsigned errnum) {
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

/// The IDs of two users, also of groups, who are not root.
inline constexpr unsigned kNobody = 65534;
inline constexpr unsigned kOther = 65533;

/// Calls `action`, which must not throw, as another user, and returns its result. Only root can.
template <class Action>
auto as_user(unsigned user, Action action) {
  check_errno(::seteuid(user), "seteuid");
  auto result = action();
  check_errno(::seteuid(0), "seteuid");
  return result;
}

}  // namespace offload::core::test
