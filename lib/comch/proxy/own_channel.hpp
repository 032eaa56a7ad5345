#pragma once

#include "channel/channel_memory.hpp"
#include "protocol/control.hpp"

/// Channels of this machine that represent the channels of a server on another one.
namespace offload::comch {

/// Returns `shape`, the server's description of the channel. Throws Error (bad_message) if it is
/// invalid.
const protocol::ChannelDescriptor& checked_shape(const protocol::ChannelDescriptor& shape);

/// Imports `memory` for a back end, which posts its responses with `writer` unless that is null.
/// Throws Error.
channel::SharedChannel import_own(const channel::ChannelMemory& memory,
                                  const channel::ResponseWriter* writer = nullptr);

}  // namespace offload::comch
