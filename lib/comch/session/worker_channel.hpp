#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "channel/channel_memory.hpp"
#include "comch/transport/data_connection.hpp"

namespace offload::comch {

/// Identifies an attachment of a worker to a server: counted from 1, never reused. 0: none.
using WorkerId = std::uint64_t;

/// How an attachment ended that had served channels.
enum class WorkerLoss : std::uint8_t {
  ended,    ///< by the worker, which was alive shortly before: it exited or crashed
  given_up  ///< it was told to detach, was silent or stuck, or violated the protocol
};

/// One channel of one attachment on the server's side: its memory, and the endpoint that carries
/// its messages if the worker is on another machine. The session makes it; then the I/O thread owns
/// it.
struct WorkerChannel {
  WorkerId worker;
  channel::Wakeup wakeup;  ///< how the worker's responses are noticed
  channel::ChannelMemory memory;
  std::unique_ptr<DataEndpoint> endpoint{};  ///< to its ServerProxy; null on one machine
};

/// A worker that serves: all its channels are ready.
struct AttachedWorker {
  WorkerId id;
  bool stands_by;
  bool replaces;  ///< the worker that has been attached for the longest time
  std::vector<std::shared_ptr<WorkerChannel>> channels;  ///< by their index
  std::string backend;                                   ///< as the worker names it
  std::string key{};  ///< the fingerprint() of the key that it has proven; empty: none is required
};

}  // namespace offload::comch
