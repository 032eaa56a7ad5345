#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "memory/buffer.hpp"
#include "memory/remote_region.hpp"
#include "progress/task.hpp"
#include "rdma/verbs/error.hpp"

namespace offload::rdma {

class Connection;
class SharedReceives;

/// One piece of work for a connection. Buffers must be of regions that are registered with the
/// connection's registrar, and stay as they are until the task is done; a source is the data of a
/// buffer and those linked to it, a destination their tailrooms, whose data grows by what came. A
/// buffer that is null is one of no bytes.
///
/// A task that fails in the network ends with io_failed, and cause() and explain() say more.
class Operation : public progress::Task {
 public:
  using ContextType = Connection;

  /// The completion's status and vendor's code. Nothing if it ended well or was not tried.
  [[nodiscard]] core::Cause cause() const noexcept {
    return completion_ == IBV_WC_SUCCESS ? core::Cause{} : cause_of(completion_, vendor_);
  }
  /// The same for people, with what usually causes it.
  [[nodiscard]] std::string explain() const { return rdma::explain(completion_, vendor_); }

 protected:
  enum class Kind : std::uint8_t {
    send,
    receive,
    write,
    read,
    compare_and_swap,
    fetch_and_add,
    sync_event,
  };
  explicit Operation(Kind kind) noexcept : kind_(kind) {}
  ~Operation() = default;

 private:
  friend Connection;
  friend class Receive;
  Kind kind_;
  ibv_wc_status completion_ = IBV_WC_SUCCESS;
  std::uint32_t vendor_ = 0;
};

/// Sends a message into the peer's next receive.
class SendTask final : public Operation {
 public:
  SendTask() noexcept : Operation(Kind::send) {}

  const memory::Buffer* source = nullptr;
  std::optional<std::uint32_t> immediate;  ///< told with the peer's receive
  bool solicited = false;                  ///< wakes a peer that asked to be woken by such alone
};

/// Takes a message, or the notice of a write with an immediate.
class Receive : public Operation {
 public:
  memory::Buffer* destination = nullptr;

  // Once it ended well.

  /// Bytes that were sent, or written elsewhere.
  [[nodiscard]] std::uint32_t length() const noexcept { return length_; }
  [[nodiscard]] std::optional<std::uint32_t> immediate() const noexcept { return immediate_; }
  /// The bytes are not in the destination, but where the peer wrote them.
  [[nodiscard]] bool written_elsewhere() const noexcept { return written_elsewhere_; }

 protected:
  Receive() noexcept : Operation(Kind::receive) {}
  ~Receive() = default;

 private:
  friend Connection;
  friend SharedReceives;
  /// For another submission.
  void clear() noexcept;
  /// What came of it; the destination's data grows if it ended well.
  core::Status take(const ibv_wc& completion) noexcept;

  std::uint32_t length_ = 0;
  std::optional<std::uint32_t> immediate_;
  bool written_elsewhere_ = false;
};

/// A connection's own. They are used in the order in which they were submitted.
class ReceiveTask final : public Receive {};

/// One for whichever connection has a message next.
class SharedReceiveTask final : public Receive {
 public:
  using ContextType = SharedReceives;

  /// Whose message it has, or whose failure: QueuePair::number().
  [[nodiscard]] std::uint32_t queue_pair() const noexcept { return queue_pair_; }

 private:
  friend SharedReceives;
  std::uint32_t queue_pair_ = 0;
};

/// Where in a peer's memory: from `offset` bytes into the range on.
struct RemotePlace {
  memory::RemoteRange range;
  std::uint64_t offset = 0;
};

/// Writes to the peer's memory; the peer is told only if there is an immediate, which takes one of
/// its receives.
class WriteTask final : public Operation {
 public:
  WriteTask() noexcept : Operation(Kind::write) {}

  const memory::Buffer* source = nullptr;
  RemotePlace to;
  std::optional<std::uint32_t> immediate;
};

/// Reads `length` bytes of the peer's memory. RC alone.
class ReadTask final : public Operation {
 public:
  ReadTask() noexcept : Operation(Kind::read) {}

  memory::Buffer* destination = nullptr;
  RemotePlace from;
  std::uint64_t length = 0;
};

/// Makes `swap` of the peer's eight bytes if they are `compare`. What they were goes to the
/// destination, as an integer of this machine. RC alone; the place is aligned to 8 bytes.
class CompareAndSwapTask final : public Operation {
 public:
  CompareAndSwapTask() noexcept : Operation(Kind::compare_and_swap) {}

  memory::Buffer* destination = nullptr;
  RemotePlace at;
  std::uint64_t compare = 0;
  std::uint64_t swap = 0;
};

/// Adds to the peer's eight bytes; all else as above.
class FetchAndAddTask final : public Operation {
 public:
  FetchAndAddTask() noexcept : Operation(Kind::fetch_and_add) {}

  memory::Buffer* destination = nullptr;
  RemotePlace at;
  std::uint64_t add = 0;
};

/// One operation on a sync event (lib/sync) in the peer's memory, with no buffers but room for the
/// device. What this connection wrote before a set or an add is there for who sees it. A card wakes
/// nobody: the event's publisher is Publisher::gpu, so that who sleeps on it looks by itself. RC
/// alone, but for a set. An add is atomic beside others by the peer's card; beside its processors
/// only where DeviceContext::atomics() is global there.
class RemoteSyncEventTask final : public Operation {
 public:
  RemoteSyncEventTask() noexcept : Operation(Kind::sync_event) {}

  enum class Action : std::uint8_t {
    get,
    set,  ///< to `argument`
    add,  ///< `argument`
  };
  Action action = Action::get;
  RemotePlace event;  ///< where its words begin, aligned to 8 bytes
  std::uint64_t argument = 0;
  /// Whose first eight bytes are the device's until the task is done: host memory that may be
  /// written. What is its data does not matter, and stays.
  memory::Buffer* scratch = nullptr;
  /// Once it ended well: what get read, what was there before add.
  std::uint64_t result = 0;
};

}  // namespace offload::rdma
