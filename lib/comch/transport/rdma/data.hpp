#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comch/transport/data_connection.hpp"
#include "comch/transport/rdma/adapter.hpp"
#include "memory/range.hpp"
#include "rdma/connection/pairing.hpp"
#include "rdma/verbs/completion_queue.hpp"
#include "rdma/verbs/queue_pair.hpp"

namespace offload::comch {

/// A queue pair with what it stands on. Move-only.
struct RdmaQueue {
  std::shared_ptr<Adapter> adapter;
  rdma::CompletionChannel events;
  rdma::CompletionQueue completions;
  rdma::QueuePair pair;
};

/// A data connection over an RC queue pair, a SEND for each content: a short one inline if the
/// device has that, a long one from slot to slot with no copy. The slots are registered for this
/// side's own work requests alone.
///
/// A receive is posted before its message can come, so that the peer never meets an RNR NAK:
/// message k of this side is posted behind the receive of the message for which k is the peer's
/// credit.
///
/// It stands on lib/rdma's QueuePair, CompletionQueue and Registrar, but not on its Connection and
/// CompletionLoop, for two reasons. Tasks cost more: a send alone, with its completion and a turn
/// of the engine, is some 980 instructions through a Connection; a message each way is some 1,030
/// here, with three turns (docs/evidence/benchmarks.md). And a CompletionLoop belongs to an engine
/// when it is made, while a queue pair takes its completion queue when the session's thread makes
/// it, before it is on the I/O thread's engine.
class RdmaDataConnection final : public DataConnection, progress::Pollable, progress::EventHandler {
 public:
  /// `queue`: connected. Throws Error.
  RdmaDataConnection(progress::Engine& engine, RdmaQueue queue, const kernels::ChannelView& channel,
                     DataHandler& handler, std::uint32_t initial_credits);
  ~RdmaDataConnection() override;

  void post_send(const protocol::DataHeader& header, const std::byte* content) noexcept override;

 private:
  /// Memory that is registered as long as this lives.
  struct Registered {
    Registered(rdma::Registrar& by, memory::Range of)
        : registrar(&by),
          range(std::move(of)),
          key(by.register_range(range, memory::kLocalAccess)) {}
    Registered(const Registered&) = delete;
    Registered& operator=(const Registered&) = delete;
    ~Registered() { registrar->deregister(range, key); }
    /// For a work request.
    [[nodiscard]] ibv_sge piece(const void* at, std::uint32_t length) const noexcept {
      return {reinterpret_cast<std::uintptr_t>(at), length, key.local};
    }

    [[nodiscard]] bool contains(const void* at) const noexcept {
      return at >= range.address && at < range.address + range.length;
    }

    rdma::Registrar* registrar;
    memory::Range range;
    memory::Key key;
  };
  /// The part of a message that is not sent from or received into its slot: the header, and a
  /// content that goes in packets there.
  struct Staged {
    std::array<std::byte, protocol::kDataHeaderSize> header;
    std::array<std::byte, kernels::kMaxPacketPayload> content;
  };

  /// Of a slot: one side sends from requests and receives into responses, the other the reverse.
  [[nodiscard]] ibv_sge slot_piece(const std::byte* at, std::uint32_t length) const noexcept {
    return (requests_.contains(at) ? requests_ : responses_).piece(at, length);
  }

  bool poll() override;
  [[nodiscard]] progress::Expecting expecting() const override;
  core::Duration arm() override;
  void disarm() override {}  // nothing can take it back: the event will come, and be dropped
  void on_events(std::uint32_t epoll_events) override;

  void prepare_receive() noexcept;
  bool ring_doorbells();
  bool poll_completions();
  bool deliver_arrived();
  void deliver_next(std::uint32_t bytes);

  [[nodiscard]] std::size_t place(std::uint64_t number) const noexcept {
    return number & (sends_.size() - 1);
  }
  /// Of message `number` of this side, or of the peer's.
  [[nodiscard]] Staged& outgoing(std::uint64_t number) noexcept { return staged_[place(number)]; }
  [[nodiscard]] Staged& incoming(std::uint64_t number) noexcept {
    return staged_[sends_.size() + place(number)];
  }

  progress::Engine* engine_;
  std::uint32_t inline_size_;
  // In this order: the queue pair goes before the memory that it may be writing to.
  std::shared_ptr<Adapter> adapter_;
  Registered requests_;
  Registered responses_;
  Registered staging_;
  Staged* staged_;
  rdma::CompletionChannel events_;
  rdma::CompletionQueue completions_;
  rdma::QueuePair pair_;

  // By place; a request and its pieces of memory.
  std::vector<ibv_send_wr> sends_;
  std::vector<std::array<ibv_sge, 2>> send_pieces_;
  std::vector<ibv_recv_wr> receives_;
  std::vector<std::array<ibv_sge, 2>> receive_pieces_;
  std::vector<std::uint32_t> arrived_bytes_;
  // Counted from the start: prepared >= posted >= sent(), and >= arrived >= received().
  std::uint64_t sends_prepared_ = 0;
  std::uint64_t sends_posted_ = 0;
  std::uint64_t receives_prepared_ = 0;
  std::uint64_t receives_posted_ = 0;
  std::uint64_t arrived_ = 0;  ///< their receives have completed
  bool armed_ = false;         ///< and no event has come since
};

/// A reliably connected (RC) queue pair for a channel's messages. Its ends exchange their
/// descriptors over the connection that the channel is attached by: it listens on no port.
class RdmaDataEndpoint final : public DataEndpoint {
 public:
  /// `path`: that of this connection. `depth`: the channel's. Throws Error.
  RdmaDataEndpoint(std::shared_ptr<Adapter> adapter, const rdma::PathOptions& path,
                   std::uint32_t depth);

  /// For the peer's connect().
  [[nodiscard]] std::vector<std::byte> descriptor() const {
    return pairing_.describe(queue_.pair).encode();
  }
  /// `peer`: its descriptor(). Throws Error: bad_message for what is none, and what the device
  /// says.
  void connect(std::span<const std::byte> peer) {
    pairing_.connect(queue_.pair, rdma::ConnectionDescriptor::decode(peer));
  }

  [[nodiscard]] std::unique_ptr<DataConnection> start(progress::Engine& engine,
                                                      const kernels::ChannelView& channel,
                                                      DataHandler& handler,
                                                      std::uint32_t initial_credits) override;

 private:
  RdmaQueue queue_;
  rdma::Pairing pairing_;
};

}  // namespace offload::comch
