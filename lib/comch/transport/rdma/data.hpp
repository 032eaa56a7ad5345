#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "comch/transport/data_connection.hpp"
#include "comch/transport/rdma/endpoint.hpp"
#include "memory/range.hpp"

namespace offload::comch {

/// Carries them over RDMA, a message each SEND: a short one in the work request if the device takes
/// it, a long one from slot to slot with no copy. The slots are registered for this side's own
/// requests alone.
///
/// A receive is there before its message can come, so that no sender ever finds none: message k of
/// this side is posted behind the receive of the message that only k lets the peer send.
class RdmaDataConnection final : public DataConnection, progress::Pollable, progress::EventHandler {
 public:
  /// `queue`: connected. Throws Error.
  RdmaDataConnection(progress::Engine& engine, RdmaQueue queue, const kernels::ChannelView& channel,
                     DataHandler& end, std::uint32_t unasked);
  ~RdmaDataConnection() override;

  void push(const protocol::DataHeader& header, const std::byte* payload) noexcept override;
  [[nodiscard]] std::uint64_t sent() const noexcept override { return sent_; }

 private:
  /// Memory that the device knows, as long as it lives.
  struct Registered {
    Registered(rdma::Registrar& by, memory::Range of);
    Registered(const Registered&) = delete;
    Registered& operator=(const Registered&) = delete;
    ~Registered() { registrar->deregister(range, key); }
    /// For a work request.
    [[nodiscard]] ibv_sge piece(const void* at, std::uint32_t length) const noexcept {
      return {reinterpret_cast<std::uintptr_t>(at), length, key.local};
    }

    rdma::Registrar* registrar;
    memory::Range range;
    memory::Key key;
  };
  /// What of a message does not lie in its slot: the header, and a payload in packets there.
  struct Staged {
    std::array<std::byte, protocol::kDataHeaderSize> header;
    std::array<std::byte, kernels::kMaxPacketPayload> payload;
  };

  bool poll() override;
  [[nodiscard]] progress::Expecting expecting() const override;
  core::Duration arm() override;
  void disarm() override {}  // nothing can take it back: the event will come, and be dropped
  void on_events(std::uint32_t epoll_events) override;

  void prepare_receive() noexcept;
  bool post();
  bool take_completions();
  bool take_messages();
  void take_message(std::uint32_t bytes);

  [[nodiscard]] std::size_t place(std::uint64_t number) const noexcept {
    return number & (sends_.size() - 1);
  }
  /// Of message `number` of this side, or of the peer's.
  [[nodiscard]] Staged& outgoing(std::uint64_t number) noexcept { return staged_[place(number)]; }
  [[nodiscard]] Staged& incoming(std::uint64_t number) noexcept {
    return staged_[sends_.size() + place(number)];
  }

  progress::Engine* engine_;
  DataHandler* end_;
  std::uint32_t max_length_;
  std::uint32_t unasked_;
  std::uint32_t inline_size_;
  // In this order: the queue pair goes before the memory that it may be writing to.
  std::shared_ptr<Adapter> adapter_;
  Registered slots_;
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
  // Counted from the start: pushed >= posted >= sent; prepared >= receivable >= arrived >= taken.
  std::uint64_t pushed_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t prepared_ = 0;
  std::uint64_t receivable_ = 0;  ///< a receive is posted
  std::uint64_t arrived_ = 0;
  std::uint64_t taken_ = 0;
  bool armed_ = false;  ///< and no event has come since
};

}  // namespace offload::comch
