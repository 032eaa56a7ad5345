#include "comch/session/peer_process.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace offload::comch {

// glibc has pidfd_open() from 2.36 on. SO_PEERCRED tells a process of another PID namespace as 0.
PeerProcess::PeerProcess(int pid)
    : pid_(pid), pidfd_(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1) {}

bool PeerProcess::has_ended() const noexcept {
  pollfd poll{pidfd_.get(), POLLIN, 0};
  return !pidfd_.valid() || ::poll(&poll, 1, 0) > 0;
}

}  // namespace offload::comch
