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
#include "rdma/path/pairing.hpp"
#include "rdma/verbs/completion_queue.hpp"
#include "rdma/verbs/queue_pair.hpp"

/// Channels whose two sides write into each other's slots (kernels/rdma/slot_writer.hpp): the
/// server with work requests, the worker with entries that its back end posts (SlotRings). The
/// server posts a receive for each slot, for the immediate data of a response; the worker posts
/// none, because its back end polls memory.
namespace offload::comch {

/// This side's description for the peer: where to write, and how to connect. Big endian:
///
///   connection's descriptor, with its length u16 | address u64 | length u64 | rkey u32
struct SlotDescription {
  rdma::ConnectionDescriptor connection;
  kernels::rdma::SlotRegion region;
  std::uint64_t length;  ///< of the region, bytes

  [[nodiscard]] std::vector<std::byte> encode() const;
  /// Decodes an end. Throws Error (bad_message) for bytes that encode() does not produce.
  static SlotDescription decode(std::span<const std::byte> bytes);
};

/// Returns `device`. Throws Error: not_supported for one without atomic operations.
const rdma::DeviceContext& with_atomics(const rdma::DeviceContext& device);

/// A queue pair in a separate protection domain, so that a peer cannot access the memory of another
/// one, and the slots registered in it: those that the peer writes, and those that this side writes
/// from.
class SlotEndpoint {
 public:
  using MakePair = std::function<std::unique_ptr<SlotPair>(const rdma::ProtectionDomain& domain)>;
  /// A region, and the peer's access to it.
  struct Written {
    std::span<std::byte> bytes;
    memory::Access by_peer;
  };

  /// `make` makes the queue pair and is called once; `adapter` outlives it. Throws Error as
  /// with_atomics().
  SlotEndpoint(const Adapter& adapter, const rdma::PathOptions& path, const MakePair& make,
               const Written& written, std::span<std::byte> own);
  SlotEndpoint& operator=(SlotEndpoint&&) = delete;

  [[nodiscard]] std::vector<std::byte> describe() const;
  /// Connects to `peer`, its describe(). Throws Error: bad_message for an invalid description, or a
  /// region whose length is not that of `own`; errors of the device.
  void connect(std::span<const std::byte> peer);

  [[nodiscard]] rdma::QueuePair& pair() const noexcept { return pair_->pair(); }
  [[nodiscard]] kernels::rdma::SlotRegion own() const noexcept {
    return {own_.address(), own_.key.local};
  }
  /// Returns the peer's region; only when connected.
  [[nodiscard]] const kernels::rdma::SlotRegion& peer() const noexcept { return peer_; }

 private:
  rdma::ProtectionDomain domain_;
  rdma::RdmaRegistrar registrar_;
  rdma::Pairing pairing_;
  Registered written_;
  Registered own_;
  std::unique_ptr<SlotPair> pair_;  ///< goes first, as the peer may be writing
  kernels::rdma::SlotRegion peer_{};
};

/// The maximum number of work requests for one request.
inline constexpr std::uint32_t kMostRequestWrites = 3;

/// An RdmaSlotConnection before it is started.
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
  std::unique_ptr<SlotEndpoint> queue_;
};

/// The worker's end: rings for the back end, and the object that carries out the posted entries.
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
  SlotEndpoint queue_;
  // Shared by the threads of a back end.
  kernels::rdma::SharedSendState state_{};
  std::vector<std::uint64_t> marks_;
  channel::ResponseWriter writer_{};
};

}  // namespace offload::comch
