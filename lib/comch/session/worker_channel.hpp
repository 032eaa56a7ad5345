#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "channel/channel_memory.hpp"
#include "comch/transport/data_connection.hpp"

namespace offload::comch {

/// Which attachment of a worker to a server: counted from 1, never used again. 0: none.
using WorkerId = std::uint64_t;

/// How an attachment that had served ended.
enum class WorkerLoss : std::uint8_t {
  ended,    ///< by the worker, which was heard of shortly before: it exited or crashed
  given_up  ///< it was to leave, or was silent, stuck or in breach of the protocol
};

/// One channel of one attachment, as the server has it: memory of its own, and what carries its
/// messages where the worker is on another machine. Made by the session, then the I/O thread's.
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
  bool replaces;  ///< the one that has been attached for the longest
  std::vector<std::shared_ptr<WorkerChannel>> channels;  ///< by their index
  std::string backend;                                   ///< as the worker names it
};

}  // namespace offload::comch
