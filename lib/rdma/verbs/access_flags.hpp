#pragma once

#include <infiniband/verbs.h>

#include "memory/access.hpp"

namespace offload::rdma {

/// The same in libibverbs's words; local reads are always allowed there.
constexpr unsigned access_flags(memory::Access access) noexcept {
  using memory::Access;
  unsigned flags = 0;
  if (includes(access, Access::local_write)) flags |= IBV_ACCESS_LOCAL_WRITE;
  if (includes(access, Access::remote_read)) flags |= IBV_ACCESS_REMOTE_READ;
  if (includes(access, Access::remote_write)) flags |= IBV_ACCESS_REMOTE_WRITE;
  if (includes(access, Access::remote_atomic)) flags |= IBV_ACCESS_REMOTE_ATOMIC;
  return flags;
}

}  // namespace offload::rdma
