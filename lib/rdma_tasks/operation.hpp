#pragma once

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "progress/task.hpp"
#include "rdma/verbs/error.hpp"
#include "tasks/memory/buffer.hpp"
#include "tasks/memory/remote_region.hpp"

namespace offload::rdma {

class Connection;
class SharedReceives;
class WorkRequestBuilder;

/// An RDMA operation: a task of a Connection. Its buffers belong to regions that are registered
/// with the connection's registrar, and stay unchanged until the task is done. A source is the data
/// of a buffer and of those linked to it, a destination their tailrooms, which become data as far
/// as bytes arrive. A null buffer has no bytes.
///
/// A task that fails in the network ends with io_failed; cause() and explain() have the reason.
class RdmaTask : public progress::Task {
 public:
  using ContextType = Connection;

  /// Status and vendor_err of the failed completion; empty after a success or without one.
  [[nodiscard]] core::Cause cause() const noexcept {
    return wc_status_ == IBV_WC_SUCCESS ? core::Cause{} : cause_of(wc_status_, vendor_);
  }
  /// The same as text, with the usual cause.
  [[nodiscard]] std::string explain() const { return rdma::explain(wc_status_, vendor_); }

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
  explicit RdmaTask(Kind kind) noexcept : kind_(kind) {}
  ~RdmaTask() = default;

 private:
  friend Connection;
  friend WorkRequestBuilder;
  friend class Receive;
  Kind kind_;
  ibv_wc_status wc_status_ = IBV_WC_SUCCESS;
  std::uint32_t vendor_ = 0;
};

/// Makes `length` bytes of the tailrooms of a destination its data.
inline void append(memory::Buffer* buffer, std::uint64_t length) noexcept {
  for (; buffer != nullptr && length != 0; buffer = buffer->next()) {
    const std::uint64_t part = std::min<std::uint64_t>(length, buffer->tailroom().size());
    static_cast<void>(buffer->append(part));
    length -= part;
  }
}

/// Sends a message into the peer's next receive.
class SendTask final : public RdmaTask {
 public:
  SendTask() noexcept : RdmaTask(Kind::send) {}

  const memory::Buffer* source = nullptr;
  std::optional<std::uint32_t> immediate;  ///< delivered with the peer's receive
  bool solicited = false;  ///< wakes a peer that armed for solicited completions alone
};

/// Receives a message, or the notification of a write with an immediate.
class Receive : public RdmaTask {
 public:
  memory::Buffer* destination = nullptr;

  // Results of a success.

  /// Bytes of the message, or of the peer's write.
  [[nodiscard]] std::uint32_t length() const noexcept { return length_; }
  [[nodiscard]] std::optional<std::uint32_t> immediate() const noexcept { return immediate_; }
  /// Returns whether it was a write with an immediate, whose bytes are not in the destination.
  [[nodiscard]] bool written_elsewhere() const noexcept { return written_elsewhere_; }

 protected:
  Receive() noexcept : RdmaTask(Kind::receive) {}
  ~Receive() = default;

 private:
  friend Connection;
  friend SharedReceives;
  friend WorkRequestBuilder;
  /// Prepares another submission.
  void clear() noexcept {
    wc_status_ = IBV_WC_SUCCESS;
    vendor_ = 0;
    length_ = 0;
    immediate_.reset();
    written_elsewhere_ = false;
  }
  /// Takes the results from its completion; after a success the destination's data grows.
  core::Status take(const ibv_wc& completion) noexcept {
    if (completion.status != IBV_WC_SUCCESS) {
      wc_status_ = completion.status;
      vendor_ = completion.vendor_err;
      return core::ErrorCode::io_failed;
    }
    length_ = completion.byte_len;
    written_elsewhere_ = completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    if ((completion.wc_flags & IBV_WC_WITH_IMM) != 0) immediate_ = ntohl(completion.imm_data);
    if (!written_elsewhere_) append(destination, length_);
    return {};
  }

  std::uint32_t length_ = 0;
  std::optional<std::uint32_t> immediate_;
  bool written_elsewhere_ = false;
};

/// A receive of one connection. Messages take them in the order of submission.
class ReceiveTask final : public Receive {};

/// A receive of SharedReceives, for the next message of any of its connections.
class SharedReceiveTask final : public Receive {
 public:
  using ContextType = SharedReceives;

  /// QueuePair::qp_num() of the connection whose message, or failure, it has.
  [[nodiscard]] std::uint32_t qp_num() const noexcept { return qp_num_; }

 private:
  friend SharedReceives;
  std::uint32_t qp_num_ = 0;
};

/// An address in the peer's memory: `offset` bytes into a range that it exported, or a
/// RemoteBuffer. An operation that the peer did not grant is refused before it is posted.
struct RemoteAddress {
  RemoteAddress() = default;
  RemoteAddress(const memory::RemoteRange& range_, std::uint64_t offset_ = 0,
                memory::Access granted_ = memory::kRemoteAccess) noexcept
      : range(range_), offset(offset_), granted(granted_) {}
  RemoteAddress(const memory::RemoteBuffer& buffer) noexcept  // NOLINT: a conversion
      : range{buffer.address(), buffer.length(), buffer.key()}, granted(buffer.access()) {}

  memory::RemoteRange range;
  std::uint64_t offset = 0;
  /// RemoteRegion::access(); where it is not known, all, and the peer's card refuses.
  memory::Access granted = memory::kRemoteAccess;
};

/// Writes to the peer's memory. The peer is notified only by an immediate, which takes one of its
/// receives.
class WriteTask final : public RdmaTask {
 public:
  WriteTask() noexcept : RdmaTask(Kind::write) {}

  const memory::Buffer* source = nullptr;
  RemoteAddress to;
  std::optional<std::uint32_t> immediate;
};

/// Reads `length` bytes of the peer's memory. RC only.
class ReadTask final : public RdmaTask {
 public:
  ReadTask() noexcept : RdmaTask(Kind::read) {}

  memory::Buffer* destination = nullptr;
  RemoteAddress from;
  std::uint64_t length = 0;
};

/// Replaces the peer's 8 bytes by `swap` if they equal `compare`. Their former value goes to the
/// destination, in the byte order of this machine. RC only; the address is aligned to 8 bytes.
class CompareAndSwapTask final : public RdmaTask {
 public:
  CompareAndSwapTask() noexcept : RdmaTask(Kind::compare_and_swap) {}

  memory::Buffer* destination = nullptr;
  RemoteAddress at;
  std::uint64_t compare = 0;
  std::uint64_t swap = 0;
};

/// Adds to the peer's 8 bytes; else like CompareAndSwapTask.
class FetchAndAddTask final : public RdmaTask {
 public:
  FetchAndAddTask() noexcept : RdmaTask(Kind::fetch_and_add) {}

  memory::Buffer* destination = nullptr;
  RemoteAddress at;
  std::uint64_t add = 0;
};

/// An operation on a sync event (lib/tasks/sync) in the peer's memory. Earlier writes of this
/// connection are visible to a thread that sees its set or add. A device wakes no thread, so the
/// event's publisher is Publisher::gpu, whose waiters poll. RC only, except for set. An add is
/// atomic with respect to others through the peer's device, and to the peer's processors only where
/// its device has IBV_ATOMIC_GLOB.
class RemoteSyncEventTask final : public RdmaTask {
 public:
  RemoteSyncEventTask() noexcept : RdmaTask(Kind::sync_event) {}

  enum class Action : std::uint8_t {
    get,
    set,  ///< to `argument`
    add,  ///< `argument`
  };
  Action action = Action::get;
  RemoteAddress event;  ///< of its first word, aligned to 8 bytes
  std::uint64_t argument = 0;
  /// Its first 8 bytes are the device's until the task is done: registered, writable host memory.
  /// Its data does not matter and stays as it is.
  memory::Buffer* scratch = nullptr;
  /// Result of a success: the value that get read, or that add found.
  std::uint64_t result = 0;
};

}  // namespace offload::rdma
