#pragma once

#include <memory>

#include "channel/channel_memory.hpp"
#include "comch/proxy/server_proxy.hpp"

namespace offload::comch {

/// A channel as a worker has it: the server's own memory, or memory of this machine that a proxy of
/// the server connects to it.
struct AttachedChannel {
  channel::SharedChannel channel;        ///< what a back end serves
  std::unique_ptr<ServerProxy> proxy{};  ///< null where the server is on this machine
};

}  // namespace offload::comch
