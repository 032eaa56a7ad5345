#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comch/transport/data_connection.hpp"
#include "comch/transport/rdma/adapter.hpp"
#include "comch/transport/rdma/slot_rings.hpp"
#include "comch/transport/slot_path.hpp"
#include "memory/range.hpp"
#include "memory/region.hpp"
#include "rdma/connection/pairing.hpp"
#include "rdma/verbs/completion_queue.hpp"
#include "rdma/verbs/queue_pair.hpp"

/// Channels whose two sides write into each other's slots (kernels/rdma/slot_writer.hpp): the
/// server by work requests of its own, the worker by entries that its back end posts (SlotRings).
/// The server has a receive posted for each slot, for the immediate of a response; the worker has
/// none, as its back end polls memory.
namespace offload::comch {

/// What the peer has to know: where to write, and what connects. Big endian:
///
///   connection's descriptor, with its length u16 | address u64 | length u64 | rkey u32
struct SlotEnd {
  rdma::ConnectionDescriptor connection;
  kernels::rdma::SlotRegion region;
  std::uint64_t length;  ///< of the region, bytes

  [[nodiscard]] std::vector<std::byte> encode() const;
  /// Throws Error (bad_message) for what encode() does not produce.
  static SlotEnd decode(std::span<const std::byte> bytes);
};

/// Returns `device`. Throws Error: not_supported for one without atomic operations.
const rdma::DeviceContext& with_atomics(const rdma::DeviceContext& device);

/// A queue pair in a protection domain of its own, so that a peer reaches the memory of no other,
/// and the slots registered in it: what the peer writes, and what this side writes from.
class SlotQueue {
 public:
  using MakePair = std::function<std::unique_ptr<SlotPair>(const rdma::ProtectionDomain& domain)>;
  /// A region, and what the peer may do there.
  struct Written {
    std::span<std::byte> bytes;
    memory::Access by_peer;
  };

  /// `make`: the queue pair, called once; `adapter` outlives it. Throws Error as with_atomics().
  SlotQueue(const Adapter& adapter, const rdma::PathOptions& path, const MakePair& make,
            const Written& written, std::span<std::byte> own);
  SlotQueue(const SlotQueue&) = delete;
  SlotQueue& operator=(const SlotQueue&) = delete;

  [[nodiscard]] std::vector<std::byte> describe() const;
  /// `peer`: its describe(). Throws Error: bad_message for what is none, or whose region has not
  /// `own`'s length; what the device says.
  void connect(std::span<const std::byte> peer);

  [[nodiscard]] rdma::QueuePair& pair() const noexcept { return pair_->pair(); }
  [[nodiscard]] kernels::rdma::SlotRegion own() const noexcept {
    return {own_.address(), own_.key.local};
  }
  /// Once connected.
  [[nodiscard]] const kernels::rdma::SlotRegion& peer() const noexcept { return peer_; }

 private:
  rdma::ProtectionDomain domain_;
  rdma::Registrar registrar_;
  rdma::Pairing pairing_;
  Registered written_;
  Registered own_;
  std::unique_ptr<SlotPair> pair_;  ///< goes first, as the peer may be writing
  kernels::rdma::SlotRegion peer_{};
};

/// Work requests of a request.
inline constexpr std::uint32_t kMostRequestWrites = 3;

/// The server's end: writes requests into the worker's slots, and makes responses valid, which come
/// into its own, as their completions come.
class RdmaSlotConnection final : public DataConnection, progress::Pollable {
 public:
  /// `queue`: connected, with `completions`. Throws Error.
  RdmaSlotConnection(progress::Engine& engine, std::shared_ptr<Adapter> adapter,
                     rdma::CompletionQueue completions, std::unique_ptr<SlotQueue> queue,
                     const kernels::ChannelView& channel, DataHandler& handler);
  ~RdmaSlotConnection() override;

  [[nodiscard]] bool carries_slots() const noexcept override { return true; }
  void post_send(const protocol::DataHeader& header, const std::byte* content) noexcept override;

 private:
  /// The work requests of a slot: the rest, the half of the header without the flag, and the atomic
  /// operation on the half with it.
  struct Writes {
    ibv_send_wr requests[kMostRequestWrites];
    ibv_sge pieces[kMostRequestWrites];
    kernels::Packet header;  ///< of the latest request
    std::uint32_t first;     ///< of them: there may be no rest
    bool is_asked;           ///< posted, and its response has not come
  };

  bool poll() override;
  [[nodiscard]] progress::Expecting expecting() const override;
  core::Duration arm() override;
  void disarm() override {}
  [[nodiscard]] bool is_busy() const;
  bool post_writes();
  bool poll_completions();
  void check_swap(std::uint64_t sequence);
  void take_response(const ibv_wc& completion);
  [[nodiscard]] Writes& writes_of(std::uint64_t sequence) noexcept {
    return writes_[layout().slot_index(sequence)];
  }

  progress::Engine* engine_;
  kernels::ChannelView channel_;
  std::shared_ptr<Adapter> adapter_;
  rdma::CompletionQueue completions_;
  std::unique_ptr<SlotQueue> queue_;
  std::vector<Writes> writes_;  ///< by slot
  // Slots: prepared >= posted >= completed.
  std::uint64_t prepared_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t completed_ = 0;
};

/// The same before it is started.
class RdmaSlotEndpoint final : public DataEndpoint {
 public:
  /// Throws Error.
  RdmaSlotEndpoint(std::shared_ptr<Adapter> adapter, const rdma::PathOptions& path,
                   const kernels::ChannelView& channel);

  [[nodiscard]] std::vector<std::byte> describe() const { return queue_->describe(); }
  void connect(std::span<const std::byte> peer) { queue_->connect(peer); }
  [[nodiscard]] std::unique_ptr<DataConnection> start(progress::Engine& engine,
                                                      const kernels::ChannelView& channel,
                                                      DataHandler& handler,
                                                      std::uint32_t initial_credits) override;

 private:
  std::shared_ptr<Adapter> adapter_;
  rdma::CompletionQueue completions_;
  std::unique_ptr<SlotQueue> queue_;
};

/// The worker's end: rings for the back end, with what carries out what it posts there.
class RdmaSlotPath final : public SlotPath {
 public:
  /// `channel`: this machine's. Throws Error.
  RdmaSlotPath(std::shared_ptr<Adapter> adapter, const rdma::PathOptions& path,
               const kernels::ChannelView& channel, progress::Engine& engine);
  ~RdmaSlotPath() override;

  [[nodiscard]] std::vector<std::byte> describe() const { return queue_.describe(); }
  void connect(std::span<const std::byte> peer);

  [[nodiscard]] const channel::ResponseWriter& writer() const noexcept override { return writer_; }
  void start() override;
  void stop() noexcept override;

 private:
  std::shared_ptr<Adapter> adapter_;
  SlotRings* rings_ = nullptr;  ///< the queue's
  SlotQueue queue_;
  // What the threads of a back end share.
  kernels::rdma::SharedSendState state_{};
  std::vector<std::uint64_t> marks_;
  channel::ResponseWriter writer_{};
};

}  // namespace offload::comch
