#pragma once

#include "doca/device.hpp"
#include "doca/include/doca_sync_event.h"
#include "rdma_tasks/operation.hpp"

/// A peer's sync event: the place of its first word, for an RDMA read or write of 8 bytes.
struct doca_sync_event_remote_net {
  offload::doca::DeviceUse device;
  offload::rdma::RemoteAddress event;
};
