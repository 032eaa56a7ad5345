#include "packets/privileges.hpp"

#include <fmt/core.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/error.hpp"

namespace offload::packets {
namespace {

struct LinuxCapability {
  unsigned number;
  std::string_view name;
};
/// An AF_XDP socket, loading the program, attaching it (capabilities(7)). CAP_IPC_LOCK is not
/// needed where `ulimit -l` leaves room for the frames, so it is named apart.
constexpr std::array kNeeded = {LinuxCapability{CAP_NET_RAW, "CAP_NET_RAW"},
                                LinuxCapability{CAP_BPF, "CAP_BPF"},
                                LinuxCapability{CAP_NET_ADMIN, "CAP_NET_ADMIN"}};

bool has(unsigned number) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return true;  // then it is not known
  return (data.at(number / 32).effective >> number % 32 & 1U) != 0;
}

}  // namespace

std::string missing_privileges() {
  std::string missing;
  for (const LinuxCapability& each : kNeeded) {
    // CAP_SYS_ADMIN also allows what CAP_BPF does (since Linux 5.8).
    if (has(each.number) || (each.number == CAP_BPF && has(CAP_SYS_ADMIN))) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", each.name);
  }
  if (missing.empty()) return {};
  return fmt::format(
      "; missing: {} (run it as root, or give the program setcap "
      "cap_net_raw,cap_bpf,cap_net_admin,cap_ipc_lock+ep)",
      missing);
}

void throw_port_error(const std::string& action, int errnum) {
  using core::Error;
  using core::ErrorCode;
  const core::Cause cause{core::Cause::Domain::system, errnum};
  const std::string what = fmt::format("{}: {}", action, core::describe_errno(errnum));
  switch (errnum) {
    case EPERM:
    case EACCES: throw Error(ErrorCode::not_permitted, what + missing_privileges(), cause);
    case ENOBUFS:
      throw Error(ErrorCode::no_memory,
                  what + (has(CAP_IPC_LOCK) ? ""
                                            : "; the frames are more than `ulimit -l` lets this "
                                              "process lock, and CAP_IPC_LOCK is missing"),
                  cause);
    case EAFNOSUPPORT:
      throw Error(ErrorCode::not_supported, what + "; this kernel has no AF_XDP", cause);
    case EBUSY: throw Error(ErrorCode::in_use, what + "; another program has it", cause);
    case EOPNOTSUPP: throw Error(ErrorCode::not_supported, what, cause);
    default: core::throw_errno(action, errnum);
  }
}

int check_port(int result, const std::string& action) {
  if (result < 0) throw_port_error(action, errno);
  return result;
}

}  // namespace offload::packets
