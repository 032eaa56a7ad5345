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
#include "rdma/path/pairing.hpp"
#include "rdma/verbs/completion_queue.hpp"
#include "rdma/verbs/queue_pair.hpp"

namespace offload::comch {

/// A queue pair with the objects that it needs. Move-only.
struct RdmaQueue {
  std::shared_ptr<Adapter> adapter;
  rdma::CompletionChannel events;
  rdma::CompletionQueue completions;
  rdma::QueuePair pair;
};

/// A data connection over an RC queue pair, with a SEND for each content: a short one inline if the
/// device supports that, a long one from slot to slot without a copy. The slots are registered only
/// for work requests of this side.
///
/// A receive is posted before its message can arrive, so that the peer never gets an RNR NAK:
/// message k of this side is posted after the receive of the message for which k is the peer's
/// credit.
///
/// It uses QueuePair, CompletionQueue and RdmaRegistrar of lib/rdma, but not Connection and
/// CompletionLoop, for two reasons. Tasks cost more: a send alone, with its completion and a turn
/// of the engine, is some 980 instructions through a Connection; a message each way is some 1,030
/// here, with three turns (docs/evidence/benchmarks.md). And a CompletionLoop is bound to an engine
/// when it is made, while a queue pair needs its completion queue when the session's thread makes
/// it, before the I/O thread's engine has it.
class RdmaDataConnection final : public DataConnection, progress::Pollable, progress::EventHandler {
 public:
  /// `queue`: connected. Throws Error.
  RdmaDataConnection(progress::Engine& engine, RdmaQueue queue, const kernels::ChannelView& channel,
                     DataHandler& handler, std::uint32_t initial_credits);
  ~RdmaDataConnection() override;

  void post_send(const protocol::DataHeader& header, const std::byte* content) noexcept override;

 private:
  /// The part of a message that is not sent from or received into its slot: the header, and a
  /// content that is packets in the slot.
  struct Staged {
    std::array<std::byte, protocol::kDataHeaderSize> header;
    std::array<std::byte, kernels::kMaxPacketPayload> content;
  };

  /// Returns a piece of a slot: one side sends from requests and receives into responses, the other
  /// the reverse.
  [[nodiscard]] ibv_sge slot_piece(const std::byte* at, std::uint32_t length) const noexcept {
    return (requests_.contains(at) ? requests_ : responses_).piece(at, length);
  }

  bool poll() override;
  [[nodiscard]] progress::Expecting expecting() const override;
  core::Duration arm() override;
  void disarm() override {}  // arming cannot be undone: the event will arrive, and be ignored
  void on_events(std::uint32_t epoll_events) override;

  void prepare_receive() noexcept;
  bool ring_doorbells();
  bool poll_completions();
  bool deliver_arrived();
  void deliver_next(std::uint32_t bytes);

  [[nodiscard]] std::size_t place(std::uint64_t number) const noexcept {
    return number & (sends_.size() - 1);
  }
  /// Return the staging of message `number` of this side, or of the peer.
  [[nodiscard]] Staged& outgoing(std::uint64_t number) noexcept { return staged_[place(number)]; }
  [[nodiscard]] Staged& incoming(std::uint64_t number) noexcept {
    return staged_[sends_.size() + place(number)];
  }

  progress::Engine* engine_;
  std::uint32_t inline_size_;
  // In this order: the queue pair is destroyed before the memory that it may be writing to.
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
/// descriptors over the connection that attaches the channel: it listens on no port.
class RdmaDataEndpoint final : public DataEndpoint {
 public:
  /// `path`: that of this connection. `depth`: the channel's. Throws Error.
  RdmaDataEndpoint(std::shared_ptr<Adapter> adapter, const rdma::PathOptions& path,
                   std::uint32_t depth);

  /// Returns the descriptor for the peer's connect().
  [[nodiscard]] std::vector<std::byte> descriptor() const {
    return pairing_.describe(queue_.pair).encode();
  }
  /// Connects to `peer`, its descriptor(). Throws Error: bad_message for an invalid descriptor, and
  /// errors of the device.
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
