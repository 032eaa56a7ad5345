#pragma once

#include "channel/channel_memory.hpp"
#include "protocol/control.hpp"

/// Channels of this machine that stand for a server's on another one.
namespace offload::comch {

/// `shape`, as the server described the channel. Throws Error (bad_message) for an impossible one.
const protocol::ChannelDescriptor& checked_shape(const protocol::ChannelDescriptor& shape);

/// `memory` as a back end has it, which posts its responses with `writer`, unless that is null.
/// Throws Error.
channel::SharedChannel import_own(const channel::ChannelMemory& memory,
                                  const channel::ResponseWriter* writer = nullptr);

}  // namespace offload::comch
