#pragma once

#include <cstdint>

namespace offload::channel {

/// How a requester that sleeps learns that a response is there: what the worker at the other end is
/// able to do. The one word for it, from the back end to the I/O thread.
enum class Wakeup : std::uint8_t {
  none,      ///< no worker is attached: no response comes
  doorbell,  ///< the worker rings the requester's doorbell
  polling,   ///< the worker cannot ring (a GPU): the requester looks at intervals
  engine,    ///< responses come by a connection, in turns of the requester's own engine
};

}  // namespace offload::channel
