#pragma once

#include <sys/uio.h>
#include <unistd.h>

namespace offload::support {

/// Returns whether process_vm_readv(2) works here: containers may deny it, and emulators lack it.
inline bool has_process_memory() {
  char from = 1;
  char to = 0;
  const iovec own{&to, 1};
  const iovec remote{&from, 1};
  return ::process_vm_readv(::getpid(), &own, 1, &remote, 1, 0) == 1 && to == 1;
}

}  // namespace offload::support
