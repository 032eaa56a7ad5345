#pragma once

#include <cstdint>

#include "rdma/verbs/device_context.hpp"
#include "rdma/verbs/gid.hpp"
#include "rdma/verbs/queue_pair.hpp"

namespace offload::rdma {

/// Returns the attributes of a queue pair whose peer is the queue pair `to` of the same device.
inline RtrAttributes loopback_path(const DeviceContext& device, std::uint32_t to) {
  const auto gid = choose_gid(device.gids(), {});
  RtrAttributes rtr;
  rtr.ah_attr.grh.dgid = gid.gid;
  rtr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid.gid_index);
  rtr.dest_qp_num = to;
  return rtr;
}

}  // namespace offload::rdma
